// Package kind tests hack/kind/up.sh with stand-ins for docker, kind, kubectl and helm. What kind's own nodes do with it is not tried here
// (hack/kind/rehearse.sh).
package kind

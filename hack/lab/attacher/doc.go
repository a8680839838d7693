// Package attacher names the version of Kubernetes' external-attacher that the lab builds. Its command is a package of that module, so
// there is nothing of our own here.
package attacher

package fleet

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

const (
	// RestartAllowance is how long a data server may be not Ready by its own word before it counts as out: a restart takes less.
	RestartAllowance = 10 * time.Second
	// readinessLag is how long after a data server's own word the kubelet may take to call its pod ready, on a busy node, too.
	readinessLag = 30 * time.Second
)

// Server is what counts of a data server, as seen now.
type Server struct {
	Name string
	// Leaving: it is in maintenance, or on its way out. What it has stays, or moves; nothing new comes.
	Leaving bool
	// Serves: it answers, or is about to.
	Serves bool
}

// Obstacle is why a data server may not take something.
type Obstacle string

const (
	// None says that it may.
	None Obstacle = ""
	// Leaving is a data server that is to be idle (spec.drain, spec.replicas), or is being deleted.
	Leaving Obstacle = "Leaving"
	// Ignored is a data server on which the share has given up what it has (spec.ignoreDataOn): it is not looked for there.
	Ignored Obstacle = "Ignored"
	// NotServing is a data server that does not answer, or does not serve the share. It may take something later.
	NotServing Obstacle = "NotServing"
)

// MayTake tells whether new directories of a share may go to a data server: None, or what is in the way. ignoreDataOn is the share's.
func MayTake(server Server, ignoreDataOn []string) Obstacle {
	switch {
	case server.Leaving:
		return Leaving
	case slices.Contains(ignoreDataOn, server.Name):
		return Ignored
	case !server.Serves:
		return NotServing
	}
	return None
}

// Now is a data server of a FileServer as it serves at this moment. Somebody waits for what is to be placed, so one that is only about to serve does not count.
func Now(fileServer *v1alpha1.FileServer, server *internalv1.DataServer) Server {
	return Server{
		Name: server.Name, Leaving: IsLeaving(fileServer, server),
		Serves: server.DeletionTimestamp == nil && server.Status.Unreachable.SeenBy == "" && meta.IsStatusConditionTrue(server.Status.Conditions, v1alpha1.ConditionReady),
	}
}

// Of is a data server of a FileServer for what is placed once and for all, a share's declared directories: one that is about to serve counts as well.
func Of(fileServer *v1alpha1.FileServer, server *internalv1.DataServer, now time.Time) Server {
	return Server{Name: server.Name, Leaving: IsLeaving(fileServer, server), Serves: server.DeletionTimestamp == nil && canServe(fileServer, server, now)}
}

// IsToBeIdle tells whether a FileServer wants a data server in maintenance, or on its way out.
func IsToBeIdle(fileServer *v1alpha1.FileServer, server string) bool {
	spec := &fileServer.Spec
	if spec.Drain != nil && slices.Contains(spec.Drain.Servers, server) {
		return true
	}
	ordinal, ours := naming.DataServerOrdinal(fileServer.Name, server)
	return ours && spec.Replicas > 0 && ordinal >= spec.Replicas
}

// IsLeaving tells whether nothing new is to come to a data server. The FileServer may know it before its DataServer says so.
func IsLeaving(fileServer *v1alpha1.FileServer, server *internalv1.DataServer) bool {
	return server.DeletionTimestamp != nil || server.TakesNone() || IsToBeIdle(fileServer, server.Name)
}

// canServe: the server serves, or is about to: it never did yet, or says itself that it restarts. Directories are placed once,
// often in the very moment in which all servers come up: what counted for that moment would count for ever. A
// DataServer's own status does not tell when its node died: namespace servers say that it does not answer, and where none is
// there to ask, the FileServer sees that its pod is not ready.
func canServe(fileServer *v1alpha1.FileServer, server *internalv1.DataServer, now time.Time) bool {
	if server.Status.Unreachable.SeenBy != "" {
		return false
	}
	if server.Status.ObservedGeneration == nil {
		return true
	}
	ready := meta.FindStatusCondition(server.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return RestartsFor(server, now) > 0
	}
	unavailable := slices.ContainsFunc(fileServer.Status.Servers, func(seen v1alpha1.FileServerServerStatus) bool {
		return seen.Name == server.Name && seen.State == v1alpha1.ServerUnavailable
	})
	return !unavailable || now.Sub(ready.LastTransitionTime.Time) < readinessLag
}

// RestartsFor is how much longer a data server that is not Ready may restart; 0 if it is Ready, or is so no longer. A time
// that is still to come is that of another clock, and not waited for.
func RestartsFor(server *internalv1.DataServer, now time.Time) time.Duration {
	ready := meta.FindStatusCondition(server.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return 0
	}
	if away := now.Sub(ready.LastTransitionTime.Time); away >= 0 {
		return max(0, RestartAllowance-away)
	}
	return 0
}

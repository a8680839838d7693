package fleet

import (
	"slices"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// Server is a data server as a candidate for new directories.
type Server struct {
	Name string
	// Leaving means that it is in maintenance, or about to be removed. It keeps what it has, or that moves; it takes nothing new.
	Leaving bool
	// Serves means that it answers, or will within the time that the caller can wait.
	Serves bool
}

// Obstacle is why a data server may not take something.
type Obstacle string

const (
	// None means that it may.
	None Obstacle = ""
	// Leaving means that the data server is to become idle (spec.drain, spec.replicas), or is being deleted.
	Leaving Obstacle = "Leaving"
	// Ignored means that the share has given up its data there (spec.ignoreDataOn), so nothing there would be found again.
	Ignored Obstacle = "Ignored"
	// NotServing means that the data server does not answer, or does not serve the share. It may take something later.
	NotServing Obstacle = "NotServing"
)

// MayTake tells whether new directories of a share may go to a data server: None, or what prevents it. ignoreDataOn is the share's.
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

// Now is a data server as a candidate for a directory that a client or a claim waits for: it must serve at this moment, by its own report.
func Now(fileServer *v1alpha1.FileServer, server *internalv1.DataServer, now time.Time) Server {
	serves := Observe(server, PodUnknown).State(now) == Serving
	return Server{Name: server.Name, Leaving: IsLeaving(fileServer, server), Serves: server.DeletionTimestamp == nil && serves}
}

// Soon is a data server as a candidate for a share's declared directories. One that starts or restarts counts: these directories are placed once, often
// while all data servers start, and where they are placed they stay.
func Soon(fileServer *v1alpha1.FileServer, server *internalv1.DataServer, now time.Time) Server {
	serves := ObserveWith(fileServer, server.Name, server).State(now) != Unavailable
	return Server{Name: server.Name, Leaving: IsLeaving(fileServer, server), Serves: server.DeletionTimestamp == nil && serves}
}

// IsToBeIdle tells whether a FileServer's specification has a data server in maintenance, or no longer has it.
func IsToBeIdle(fileServer *v1alpha1.FileServer, server string) bool {
	spec := &fileServer.Spec
	if spec.Drain != nil && slices.Contains(spec.Drain.Servers, server) {
		return true
	}
	ordinal, ours := naming.DataServerOrdinal(fileServer.Name, server)
	return ours && spec.Replicas > 0 && ordinal >= spec.Replicas
}

// IsLeaving tells whether nothing new may go to a data server. The FileServer's specification may say so before its DataServer does.
func IsLeaving(fileServer *v1alpha1.FileServer, server *internalv1.DataServer) bool {
	return server.DeletionTimestamp != nil || server.RefusesNewDirectories() || IsToBeIdle(fileServer, server.Name)
}

package fileserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/directorymoves"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
)

// A data server is to be idle if it is in maintenance, or above spec.replicas. New directories go elsewhere at once. Those that it has go to the others
// (controllers/directorymoves), and then the server waits until its clients unmount: in Ceph what they have mounted stays where it is until they leave it
// (docs/design/2026-11-22-moves.md); on volumes it is stale, and who does not use it has not noticed.

const (
	// hearing is how long an empty data server is kept in any case: a namespace server that lags behind may still send clients there.
	hearing = 15 * time.Second
	// settled is how long it was empty when its connections count: they are measured once a minute, and a client that was sent there has
	// mounted by then.
	settled = 90 * time.Second
	// usualLimit is how long a drained server waits for its clients if spec.drain.timeoutSeconds is unset.
	usualLimit = time.Hour
)

// isShared: every data server has the same storage, so directories can move.
func (o *observed) isShared() bool { return backend.Of(o.fileServer).IsShared() }

// isToBeIdle reports whether a data server is in maintenance or to be removed.
func (o *observed) isToBeIdle(server string) bool {
	return fleet.IsToBeIdle(o.fileServer, server)
}

// drainLimit is how long a data server is kept for its clients after its last directory has moved.
func (o *observed) drainLimit() time.Duration {
	limit := usualLimit
	if drain := o.fileServer.Spec.Drain; drain != nil && drain.TimeoutSeconds != nil {
		limit = time.Duration(*drain.TimeoutSeconds) * time.Second
	}
	return max(limit, hearing)
}

// drainOf returns how far the drain of a data server is; empty for servers that are not to be idle.
func (o *observed) drainOf(server string) (drain v1alpha1.ServerDrain) {
	switch {
	case !o.isToBeIdle(server):
		return drain
	case o.movable(server) > 0 || o.moves.Fixed().Copying[server]:
		drain.State = v1alpha1.DrainEmptying
		return drain
	case o.directories[server] > 0:
		return drain // What it has can't move.
	}
	var was v1alpha1.ServerDrain
	for _, before := range o.fileServer.Status.Servers {
		if before.Name == server {
			was = before.Drain
		}
	}
	if !o.isShared() && was.State == "" {
		drain.State = v1alpha1.DrainDone // It had nothing that clients could have mounted.
		return drain
	}
	drain.State, drain.EmptySinceTime = v1alpha1.DrainWaiting, ptr.To(metav1.NewTime(o.now))
	if was.EmptySinceTime != nil && was.EmptySinceTime.Before(drain.EmptySinceTime) { // Or a clock was wrong then.
		drain.EmptySinceTime = was.EmptySinceTime
	}
	if !o.isShared() && was.State == v1alpha1.DrainDone && was.EmptySinceTime == nil {
		return was
	}
	if o.drainLeft(server, drain.EmptySinceTime.Time) <= 0 {
		drain.State = v1alpha1.DrainDone
	}
	return drain
}

// movable is how many of a data server's directories can move.
func (o *observed) movable(server string) int32 {
	if o.isShared() {
		return o.directories[server]
	}
	return o.directories[server] - o.moves.Fixed().Counts[server]
}

// drainLeft is the remaining time for which an empty data server is kept, if nothing changes.
func (o *observed) drainLeft(server string, since time.Time) time.Duration {
	empty := o.now.Sub(since)
	if o.hasNoClients(server) {
		return min(settled, o.drainLimit()) - empty
	}
	return o.drainLimit() - empty
}

// hasNoClients reports whether the server itself counts no connections; a reported 0 is exact. A server that does not
// answer may have clients that wait for it; one that never served has none.
func (o *observed) hasNoClients(server string) bool {
	dataServer := o.dataServers[server]
	if dataServer.Status.ObservedGeneration == nil {
		return true
	}
	used := dataServer.Status.Connections.Used
	return o.stateOf(server) == fleet.Serving && used != nil && *used == 0
}

// replicasUntilIdle is the number of data servers: one that goes is kept until it is idle.
func (o *observed) replicasUntilIdle(existing, eligible int32) int32 {
	wanted := o.fileServer.Spec.Replicas
	if wanted == 0 {
		replicas, _ := placement.Replicas(0, existing, eligible, 0)
		return replicas
	}
	replicas := wanted
	for ordinal := wanted; ordinal < existing; ordinal++ {
		if o.drainOf(naming.DataServer(o.fileServer.Name, ordinal)).State != v1alpha1.DrainDone {
			replicas = ordinal + 1
		}
	}
	return replicas
}

// toBeIdle are the names of the data servers that get nothing new.
func (o *observed) toBeIdle(replicas int32) (names []string) {
	for ordinal := range replicas {
		if name := naming.DataServer(o.fileServer.Name, ordinal); o.isToBeIdle(name) {
			names = append(names, name)
		}
	}
	return names
}

// drainCondition says what data servers that are to be idle wait for; nil if for nothing.
func (o *observed) drainCondition(replicas int32, plan directorymoves.Plan) *metav1.Condition {
	var waiting []string
	for _, name := range o.toBeIdle(replicas) {
		switch drain := o.drainOf(name); drain.State {
		case v1alpha1.DrainEmptying:
			waiting = append(waiting, fmt.Sprintf("%s has %d directories to move", name, o.movable(name)))
		case v1alpha1.DrainWaiting:
			waiting = append(waiting, fmt.Sprintf("%s is empty and waits for clients that have it mounted, until %s at most (spec.drain.timeoutSeconds)",
				name, drain.EmptySinceTime.Add(o.drainLimit()).UTC().Format(time.RFC3339)))
		}
	}
	waiting = append(waiting, o.kept(replicas)...)
	if len(waiting) == 0 {
		return nil
	}
	slices.Reverse(waiting) // The highest numbers keep the number of servers up.
	text := "data servers are made idle: " + conditions.List(waiting, maxPaths)
	if wanted := o.fileServer.Spec.Replicas; wanted > 0 && wanted < replicas {
		text = fmt.Sprintf("spec.replicas is %d, and there are %d; ", wanted, replicas) + text
	}
	if plan.Homeless > 0 {
		text += fmt.Sprintf("; no other data server serves the shares of %d of those directories at present", plan.Homeless)
	}
	text += plan.DescribeStuck()
	condition := conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonDraining, strings.ReplaceAll(text, "has 1 directories", "has 1 directory"))
	return &condition
}

// kept says what servers that are to be idle keep, because it can't move.
func (o *observed) kept(replicas int32) (texts []string) {
	if o.isShared() || !o.moves.MayCopy() {
		return nil
	}
	for _, name := range o.toBeIdle(replicas) {
		if o.moves.Fixed().Counts[name] > 0 {
			texts = append(texts, fmt.Sprintf("%s keeps what can't move on volumes, roots of Single shares and directories of deleted shares (%s)", name, strings.Join(o.moves.Fixed().Paths[name], ", ")))
		}
	}
	return texts
}

// notDrained says which data servers in spec.drain.servers are not emptied: they keep running, and nothing would tell it.
func (o *observed) notDrained(replicas int32) (texts []string) {
	if o.fileServer.Spec.Drain == nil {
		return nil
	}
	for _, name := range slices.Sorted(slices.Values(o.fileServer.Spec.Drain.Servers)) {
		if ordinal, ok := naming.DataServerOrdinal(o.fileServer.Name, name); !ok || ordinal >= replicas {
			has := naming.DataServer(o.fileServer.Name, 0)
			if replicas > 1 {
				has += " to " + naming.DataServer(o.fileServer.Name, replicas-1)
			}
			texts = append(texts, fmt.Sprintf("%s is no data server of this FileServer, which has %s", name, has))
			continue
		}
		if count := o.moves.Fixed().Counts[name]; count > 0 && !o.isShared() && !o.moves.MayCopy() {
			texts = append(texts, strings.ReplaceAll(fmt.Sprintf("%s keeps %d directories (%s), because directories move between volumes only with spec.moves.copying: Allow",
				name, count, conditions.List(o.moves.Fixed().Paths[name], maxPaths)), "keeps 1 directories", "keeps 1 directory"))
		}
	}
	return texts
}

// drainAgain is when the next data server may be idle though nothing happens; 0 if none waits.
func (o *observed) drainAgain(replicas int32) time.Duration {
	var first time.Duration
	for _, name := range o.toBeIdle(replicas) {
		if drain := o.drainOf(name); drain.State == v1alpha1.DrainWaiting {
			first = requeue.Soonest(first, o.drainLeft(name, drain.EmptySinceTime.Time))
		}
	}
	return first
}

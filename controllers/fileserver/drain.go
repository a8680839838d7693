package fileserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/moving"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
)

// A data server is to be idle if it is in maintenance, or above spec.replicas. New directories go elsewhere at once. Those that it has go to the others
// (moves.go), and then the server waits until its clients unmount: in Ceph what they have mounted stays where it is until they leave it
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
	case o.movable(server) > 0 || o.fixed().copying[server]:
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
	return o.directories[server] - o.fixed().counts[server]
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
func (o *observed) drainCondition(replicas int32, plan movePlan) *metav1.Condition {
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
	if plan.homeless > 0 {
		text += fmt.Sprintf("; no other data server serves the shares of %d of those directories at present", plan.homeless)
	}
	text += plan.describeStuck()
	condition := conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonDraining, strings.ReplaceAll(text, "has 1 directories", "has 1 directory"))
	return &condition
}

// kept says what servers that are to be idle keep, because it can't move.
func (o *observed) kept(replicas int32) (texts []string) {
	if o.isShared() || !o.mayCopy() {
		return nil
	}
	for _, name := range o.toBeIdle(replicas) {
		if o.fixed().counts[name] > 0 {
			texts = append(texts, fmt.Sprintf("%s keeps what can't move on volumes, roots of Single shares and directories of deleted shares (%s)", name, strings.Join(o.fixed().paths[name], ", ")))
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

// fixedDirectories are the directories, on volumes, that can't move: roots of Single shares, what deleted shares left, and those of data servers that are not there. counts has
// their number, paths some of them, by data server. copying are the data servers with a part in a copy.
type fixedDirectories struct {
	counts  map[string]int32
	paths   map[string][]string
	copying map[string]bool
}

// fixed looks once for a pass: there can be a hundred thousand directories.
func (o *observed) fixed() *fixedDirectories {
	if o.fixedOnes != nil {
		return o.fixedOnes
	}
	found := &fixedDirectories{counts: map[string]int32{}, paths: map[string][]string{}, copying: map[string]bool{}}
	for i := range o.owned {
		spec := &o.owned[i].Spec
		if spec.Move.ID != "" {
			found.copying[spec.Move.Source.DataServerRef.Name], found.copying[spec.Move.Target.DataServerRef.Name] = true, true
		}
		owner := spec.DataServerRef.Name
		if _, exists := o.dataServers[owner]; owner == "" || exists && !o.isUnmovable(&o.owned[i]) {
			continue
		}
		found.counts[owner]++
		found.paths[owner] = smallest(found.paths[owner], spec.FileShareRef.Name+":"+spec.Path)
	}
	o.fixedOnes = found
	return found
}

// frozenDirectories are those that data servers keep frozen for moves that are in no object any more.
func (o *observed) frozenDirectories() (texts []string) {
	for name := range o.dataServers {
		for _, report := range o.dataServers[name].Status.Moves {
			if report.State == internalv1.MoveStateOrphaned {
				texts = append(texts, name+": "+conditions.Shown(report.Message, maxFailoverMessage))
			}
		}
	}
	slices.Sort(texts)
	return texts
}

// elsewhere is where a directory can go whose target has no room for it.
type elsewhere struct {
	// lacksRoom: the target refuses it for lack of room.
	lacksRoom bool
	// to has room; "" if no data server has. least is then the one that lacks least, with how many bytes.
	to, least string
	missing   int64
}

// emptiestVolume is the volume of a data server with the most space.
func (o *observed) emptiestVolume(server string) int32 {
	dataServer := o.dataServers[server]
	if volume := moving.Emptiest(&dataServer); volume != nil {
		return *volume.Index
	}
	return 0
}

// elsewhere looks for another target of a move. Those for which too many directories wait are left out.
func (o *observed) elsewhere(directory *internalv1.ShareDirectory, live map[string]bool, waiting map[string]int) (found elsewhere) {
	move := &directory.Spec.Move
	need, lacksRoom := moving.RoomIn(o.reportOf(move, move.Target.DataServerRef.Name).MoveReport)
	if !lacksRoom {
		return found
	}
	found.lacksRoom = true
	share := directory.Spec.FileShareRef.Name
	targets := o.targets(live, nil)
	hasRoom := false
	for i := range targets {
		server := targets[i].Server
		dataServer := o.dataServers[server]
		missing, lacksFiles := need.LacksIn(&dataServer)
		isTarget := server != move.Source.DataServerRef.Name && targets[i].Serves(share)
		if isTarget && missing > 0 && (found.least == "" || missing < found.missing) {
			found.least, found.missing = server, missing
		}
		mayTake := isTarget && missing == 0 && !lacksFiles && moving.MayAsk(move, server, o.now) && waiting[server] < mostWaiting
		targets[i].Serves = func(string) bool { return mayTake }
		hasRoom = hasRoom || mayTake
	}
	if !hasRoom {
		return found
	}
	found.to = placement.Best(targets, o.movables(), share)
	return found
}

// advice completes the message that a request is refused.
func (e elsewhere) advice(directory *internalv1.ShareDirectory) string {
	if !e.lacksRoom || e.to == "" {
		return e.without()
	}
	return fmt.Sprintf("; data server %s has room for it: kubectl howdah move %s/%s --to %s", e.to, directory.Spec.FileShareRef.Name, directory.Spec.Path, e.to)
}

// without says that no data server has room, with what to do.
func (e elsewhere) without() string {
	if !e.lacksRoom {
		return ""
	}
	text := "; no other data server has room for it"
	if e.least != "" {
		text += fmt.Sprintf(", %s lacks least, %d MB", e.least, (e.missing+1e6-1)/1e6)
	}
	return text + ": raise spec.storage.volumes.size, delete data there, or add a data server (spec.replicas)"
}

// redirect gives a directory another target in place of one that has no room for it. begins tells whether it is its turn.
func (p *movePlan) redirect(o *observed, directory *internalv1.ShareDirectory, found elsewhere, begins func(to string) bool) {
	move := &directory.Spec.Move
	target := move.Target.DataServerRef.Name
	message := o.reportOf(move, target).message()
	if found.to == "" {
		p.say(directory, ": "+message+found.without())
		return
	}
	if !begins(found.to) {
		p.say(directory, fmt.Sprintf(" goes to %s in its turn, because %s has no room for it", found.to, target))
		return
	}
	after := o.begun(directoryMove{directory: directory, to: found.to})
	after.Spec.Move.Refusals = moving.RefusalsWith(move, o.now)
	p.say(directory, fmt.Sprintf(" goes to %s, because %s has no room for it", found.to, target))
	p.writes = append(p.writes, copyWrite{directory, after, moving.Step, "MoveRedirected", fmt.Sprintf("is copied to data server %s, not to %s: %s", found.to, target, message)})
}

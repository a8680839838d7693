package fileserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/moving"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// On volumes a directory moves by a copy (docs/design/2026-11-25-moves-on-volumes.md). How far it is stands in its ShareDirectory, spec.move, which is
// written against the version that was read, so that nothing is decided twice. What the two data servers are to do follows from it, and stands in their
// DataServers.

const (
	// mostCopies is how many directories a data server gives away, and how many it takes, at a time.
	mostCopies = 1
	// mostWaiting is how many more a data server has no room for, or that were frozen heldUpAfter times to no avail, because files stay open for example: each
	// is tried again by itself and takes no other's turn, and with more the others that are to go there wait. mostParts bounds the moves of a data server,
	// whatever they wait for: its spec.moves takes 64.
	mostWaiting = 8
	heldUpAfter = 3
	mostParts   = 32
)

// copyWrite is a change of a ShareDirectory's spec.move, with its event.
type copyWrite struct {
	before, after *internalv1.ShareDirectory
	outcome       moving.Outcome
	reason, note  string
}

// mayCopy tells whether directories of volumes may move.
func (o *observed) mayCopy() bool {
	return o.fileServer.Spec.Moves.Copying == v1alpha1.MoveCopyingAllow
}

// isSuspended tells whether nothing is copied for now.
func (o *observed) isSuspended() bool {
	return o.fileServer.Spec.Moves.Execution == v1alpha1.ExecutionSuspended
}

// canMoveAny tells whether directories of this FileServer can move at all.
func (o *observed) canMoveAny() bool { return o.isShared() || o.mayCopy() }

const onlyCopied = "directories of storage.volumes are copied to other data servers only with spec.moves.copying: Allow; or copy the data to a new directory yourself"

// unmovable tells why a directory stays on its volume, whatever is asked for; "" if it can move.
func (o *observed) unmovable(directory *internalv1.ShareDirectory) string {
	switch {
	case o.isShared():
	case !o.mayCopy():
		return onlyCopied
	case directory.Spec.Path == tree.RootPath:
		return "the root of a share of layout Single can't move on volumes; copy its content to a new share"
	case !o.isLive(directory.Spec.FileShareRef.Name):
		return "what is left of a deleted share can't move on volumes: it is not exported"
	}
	return ""
}

func (o *observed) isUnmovable(directory *internalv1.ShareDirectory) bool {
	return o.unmovable(directory) != ""
}

// isLive tells whether a share exists. It is asked for each directory.
func (o *observed) isLive(share string) bool {
	if o.liveKeys == nil {
		o.liveKeys, _ = o.liveShares()
	}
	return o.liveKeys[share]
}

// copies turns what is to move into steps of copies. asked has the targets of requests by the directories' places in o.owned.
func (p *movePlan) copies(o *observed, live, still map[string]bool, asked map[int]string) {
	giving, taking, parts := map[string]int{}, map[string]int{}, map[string]int{}
	waiting := o.waitingFor(asked)
	var full []*internalv1.ShareDirectory
	for i := range o.owned {
		directory := &o.owned[i]
		move := &directory.Spec.Move
		if move.ID == "" {
			continue
		}
		source, target := move.Source.DataServerRef.Name, move.Target.DataServerRef.Name
		parts[source]++
		parts[target]++
		wanted, refused := o.isWanted(i, asked), o.reportOf(move, target).isRefused()
		if refused && wanted && asked[i] == "" {
			if _, outcome := o.next(directory, wanted, false); outcome == moving.Refused {
				full = append(full, directory)
				continue // It is tried again by itself, and takes no other's turn.
			}
		}
		switch {
		case refused:
			p.say(directory, ": "+o.reportOf(move, target).message())
		case o.waiting(move) != "":
			p.say(directory, ": "+o.waiting(move))
		case len(move.Refusals) > 0 && move.Step == internalv1.MoveCopying:
			p.say(directory, fmt.Sprintf(" goes to %s, because %s has no room for it", target, move.Refusals[len(move.Refusals)-1].DataServerRef.Name))
		}
		if !isHeldUp(move) {
			giving[source]++
			taking[target]++
		}
		p.step(o, directory, live, wanted, o.isBlocked(directory, live, still))
		if move.IsFrozen() || move.Step == internalv1.MoveCopying {
			p.next = requeue.Soonest(p.next, moving.Again(*move, o.movedTime(directory), o.now))
		}
	}
	begins := func(from, to string) bool {
		if o.isSuspended() || giving[from] >= mostCopies || taking[to] >= mostCopies || waiting[to] >= mostWaiting || parts[from] >= mostParts || parts[to] >= mostParts {
			return false
		}
		giving[from]++
		taking[to]++
		return true
	}
	for _, directory := range full {
		p.redirect(o, directory, o.elsewhere(directory, live, waiting), func(to string) bool {
			return o.canMove(directory, still) && begins(directory.Spec.Move.Source.DataServerRef.Name, to)
		})
	}
	candidates := p.changes
	p.changes = nil
	for _, candidate := range candidates {
		from := candidate.directory.Spec.DataServerRef.Name
		if candidate.directory.Spec.Move.ID == "" && candidate.to != from && begins(from, candidate.to) {
			p.begin(o, candidate)
		}
	}
}

// isWanted tells whether a move is still asked for.
func (o *observed) isWanted(i int, asked map[int]string) bool {
	target := o.owned[i].Spec.Move.Target.DataServerRef.Name
	to, isAsked := asked[i]
	return o.mayCopy() && (isAsked && to == target || !isAsked && o.isToMove(&o.owned[i]) && !o.isToBeIdle(target))
}

// isHeldUp tells whether a directory was frozen often, to no avail.
func isHeldUp(move *internalv1.DirectoryMove) bool {
	return move.Step == internalv1.MoveCopying && move.Attempt >= heldUpAfter
}

// waitingFor is how many directories take no other's turn, by their targets.
func (o *observed) waitingFor(asked map[int]string) map[string]int {
	waiting := map[string]int{}
	for i := range o.owned {
		move := &o.owned[i].Spec.Move
		target := move.Target.DataServerRef.Name
		if move.ID != "" && (isHeldUp(move) || asked[i] == "" && o.reportOf(move, target).isRefused() && o.isWanted(i, asked)) {
			waiting[target]++
		}
	}
	return waiting
}

// say notes why a directory waits.
func (p *movePlan) say(directory *internalv1.ShareDirectory, text string) {
	p.stuck = append(p.stuck, directory.Spec.Path+" of share "+directory.Spec.FileShareRef.Name+text)
}

// begin plans the first step of a copy.
func (p *movePlan) begin(o *observed, candidate directoryMove) {
	p.writes = append(p.writes, copyWrite{candidate.directory, o.begun(candidate), moving.Step, "MoveStarted", "is copied to data server " + candidate.to})
}

func (o *observed) begun(candidate directoryMove) *internalv1.ShareDirectory {
	after := candidate.directory.DeepCopy()
	after.Spec.Move = internalv1.DirectoryMove{
		ID:     string(uuid.NewUUID()),
		Source: internalv1.DirectoryPlace{DataServerRef: after.Spec.DataServerRef, Volume: ptr.To(ptr.Deref(after.Spec.Volume, 0))},
		Target: internalv1.DirectoryPlace{DataServerRef: internalv1.DataServerReference{Name: candidate.to}, Volume: ptr.To(o.emptiestVolume(candidate.to))},
		Step:   internalv1.MoveCopying, StepTime: &metav1.Time{Time: o.now}, Sequence: 1,
	}
	return after
}

// step plans the next step of a copy.
func (p *movePlan) step(o *observed, directory *internalv1.ShareDirectory, live map[string]bool, wanted, blocked bool) {
	move := directory.Spec.Move
	next, outcome := o.next(directory, wanted, blocked)
	if outcome == moving.Stay {
		return
	}
	after := directory.DeepCopy()
	after.Spec.Move = next
	write := copyWrite{before: directory, after: after, outcome: outcome}
	from, to := move.Source.DataServerRef.Name, move.Target.DataServerRef.Name
	switch outcome {
	case moving.Step:
		if next.Step == internalv1.MoveThawing && wanted {
			write.reason, write.note = "MoveDelayed", o.whyDelayed(&move)
		}
	case moving.Flip:
		after.Spec.DataServerRef, after.Spec.Volume = move.Target.DataServerRef, move.Target.Volume
		after.Spec.MovedTime = &metav1.Time{Time: o.now}
		// Another identity makes another file handle of the junction: clients drop what they have mounted there.
		after.Spec.Identity = string(uuid.NewUUID())
		if after.Labels == nil {
			after.Labels = map[string]string{}
		}
		after.Labels[v1alpha1.DataServerLabel] = to
		write.reason, write.note = "Moved", fmt.Sprintf("is on data server %s now; what %s had is in its trash", to, from)
	case moving.Done:
		after.Spec.Move = internalv1.DirectoryMove{}
	case moving.Cancelled:
		after.Spec.Move = internalv1.DirectoryMove{}
		write.reason, write.note = "MoveCancelled", "stays on data server "+from
	case moving.Refused:
		after.Spec.Move = internalv1.DirectoryMove{}
		write.reason, write.note = "MoveRefused", fmt.Sprintf("does not move to %s: %s", to, o.reportOf(&move, to).message())+o.elsewhere(directory, live, nil).advice(directory)
		p.unask(directory, to)
	}
	p.writes = append(p.writes, write)
}

func (o *observed) next(directory *internalv1.ShareDirectory, wanted, blocked bool) (internalv1.DirectoryMove, moving.Outcome) {
	move := &directory.Spec.Move
	return moving.Next(*move, moving.Input{
		Wanted: wanted, Blocked: blocked, Suspended: o.isSuspended(), Moved: o.movedTime(directory), Now: o.now,
		Source: o.reportOf(move, move.Source.DataServerRef.Name).MoveReport, Target: o.reportOf(move, move.Target.DataServerRef.Name).MoveReport,
	})
}

// movedTime is from when on clients of a directory that was copied come to its owner; zero if it was not copied.
func (o *observed) movedTime(directory *internalv1.ShareDirectory) time.Time {
	moved, served := directory.Spec.MovedTime, o.servedAgain(directory.Spec.DataServerRef.Name)
	if moved == nil || served.Before(moved.Time) {
		return ptr.Deref(moved, metav1.Time{}).Time
	}
	return served
}

// whyDelayed says why clients of a directory go on with it on the source.
func (o *observed) whyDelayed(move *internalv1.DirectoryMove) string {
	source, to := o.reportOf(move, move.Source.DataServerRef.Name), move.Target.DataServerRef.Name
	switch {
	case source.MoveReport != nil && source.State == internalv1.MoveStateInUse:
		return fmt.Sprintf("does not move to data server %s yet: %s", to, source.message())
	case move.Step == internalv1.MovePlacing:
		return fmt.Sprintf("does not move to data server %s yet: its clients went on before the copy was in its place", to)
	}
	return fmt.Sprintf("was not copied to data server %s within %s while its clients waited; they go on, and so does the copying", to, moving.FreezeLimit)
}

// notYet begins a message about what ends within moments.
const notYet = "not yet"

// waiting is what keeps a move from going on, as its data servers say it; "" if nothing does.
func (o *observed) waiting(move *internalv1.DirectoryMove) string {
	for _, server := range []string{move.Source.DataServerRef.Name, move.Target.DataServerRef.Name} {
		if message := o.reportOf(move, server).message(); message != "" && !strings.HasPrefix(message, notYet) {
			return server + ": " + message
		}
	}
	return ""
}

// unask takes a request away that can't be fulfilled.
func (p *movePlan) unask(directory *internalv1.ShareDirectory, to string) {
	for i, request := range p.requests {
		if request.Share == directory.Spec.FileShareRef.Name && request.Path == directory.Spec.Path && request.To == to {
			p.requests = slices.Delete(p.requests, i, i+1)
			p.settled = true
			p.pending--
			return
		}
	}
}

// isBlocked tells whether a directory must not be frozen now.
func (o *observed) isBlocked(directory *internalv1.ShareDirectory, live, still map[string]bool) bool {
	move := &directory.Spec.Move
	return !o.canMove(directory, still) || o.stateOf(move.Source.DataServerRef.Name) != fleet.Serving ||
		!o.serves(move.Target.DataServerRef.Name, directory.Spec.FileShareRef.Name, live)
}

// moveReport is what a data server reports of a move; its pointer is nil if it reports nothing.
type moveReport struct{ *internalv1.MoveReport }

func (r moveReport) isRefused() bool {
	return r.MoveReport != nil && r.State == internalv1.MoveStateRefused
}

func (r moveReport) message() string {
	if r.MoveReport == nil {
		return ""
	}
	return r.Message
}

func (o *observed) reportOf(move *internalv1.DirectoryMove, server string) moveReport {
	reports := o.dataServers[server].Status.Moves
	for i := range reports {
		if reports[i].ID == move.ID {
			return moveReport{&reports[i]}
		}
	}
	return moveReport{}
}

// writeCopies writes the steps, and returns how many directories have another owner. d.input.Moves is what data servers are to do then.
func (r *Reconciler) writeCopies(ctx context.Context, o *observed, d *decision) (int64, error) {
	var flipped atomic.Int64
	written := make([]bool, len(d.moves.writes))
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(moveWriters)
	for i, write := range d.moves.writes {
		group.Go(func() error {
			err := r.Patch(writing, write.after, client.MergeFromWithOptions(write.before, client.MergeFromWithOptimisticLock{}))
			switch {
			case err == nil:
				written[i] = true
				if write.outcome == moving.Flip {
					flipped.Add(1)
				}
			case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
				return fmt.Errorf("writing the move of %q of share %s: %w", write.before.Spec.Path, write.before.Spec.FileShareRef.Name, err)
			}
			return nil
		})
	}
	err := group.Wait()
	now := map[*internalv1.ShareDirectory]*internalv1.ShareDirectory{}
	for i, write := range d.moves.writes {
		if !written[i] {
			continue
		}
		now[write.before] = write.after
		if write.reason != "" {
			kind := corev1.EventTypeNormal
			if write.reason == "MoveRefused" || write.reason == "MoveDelayed" {
				kind = corev1.EventTypeWarning
			}
			r.Events.Eventf(o.fileServer, nil, kind, write.reason, "Move", "%s of share %s %s", write.before.Spec.Path, write.before.Spec.FileShareRef.Name, write.note)
		}
	}
	d.input.Moves = o.moveTasks(now)
	return flipped.Load(), err
}

// moveTasks are what data servers are to do, by their names. newer has ShareDirectories that were written in this pass.
func (o *observed) moveTasks(newer map[*internalv1.ShareDirectory]*internalv1.ShareDirectory) map[string][]internalv1.MoveTask {
	tasks := map[string][]internalv1.MoveTask{}
	if o.isShared() {
		return tasks
	}
	for i := range o.owned {
		directory := &o.owned[i]
		if after := newer[directory]; after != nil {
			directory = after
		}
		move := &directory.Spec.Move
		if move.ID == "" {
			continue
		}
		source, target := move.Source.DataServerRef.Name, move.Target.DataServerRef.Name
		add := func(server, peer string, role internalv1.MoveRole, volume *int32) {
			dataServer := o.dataServers[peer]
			tasks[server] = append(tasks[server], internalv1.MoveTask{
				ID: move.ID, Role: role, FileShareRef: directory.Spec.FileShareRef, Path: directory.Spec.Path, Volume: volume,
				Peer: internalv1.DataServerReference{Name: peer}, PeerAddress: dataServer.Spec.Address, Step: move.Step, Attempt: move.Attempt, Sequence: move.Sequence,
				MegabytesPerSecond: o.fileServer.Spec.Moves.MegabytesPerSecond, TrashSeconds: o.fileServer.Spec.Moves.TrashSeconds,
				OpenFiles: internalv1.MoveOpenFiles(o.fileServer.Spec.Moves.OpenFiles), Execution: internalv1.MoveExecution(o.fileServer.Spec.Moves.Execution),
			})
		}
		add(source, target, internalv1.MoveSource, move.Source.Volume)
		add(target, source, internalv1.MoveTarget, move.Target.Volume)
	}
	for server := range tasks {
		slices.SortFunc(tasks[server], func(a, b internalv1.MoveTask) int {
			return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(string(a.Role), string(b.Role)))
		})
	}
	return tasks
}

// copyAgain is when to look at copies again.
func (p *movePlan) copyAgain() time.Duration { return p.next }

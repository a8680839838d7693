package directorymoves

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/moving"
)

// begin plans the first step of a copy.
func (p *Plan) begin(v *View, candidate ownerChange) {
	p.writes = append(p.writes, copyWrite{candidate.directory, v.begun(candidate), moving.Step, "MoveStarted", "is copied to data server " + candidate.to})
}

func (v *View) begun(candidate ownerChange) *internalv1.ShareDirectory {
	after := candidate.directory.DeepCopy()
	after.Spec.Move = internalv1.DirectoryMove{
		ID:     string(uuid.NewUUID()),
		Source: internalv1.DirectoryPlace{DataServerRef: after.Spec.DataServerRef, Volume: ptr.To(ptr.Deref(after.Spec.Volume, 0))},
		Target: internalv1.DirectoryPlace{DataServerRef: internalv1.DataServerReference{Name: candidate.to}, Volume: ptr.To(v.emptiestVolume(candidate.to))},
		Step:   internalv1.MoveCopying, StepTime: &metav1.Time{Time: v.Now}, Sequence: 1,
	}
	return after
}

// step plans the next step of a copy.
func (p *Plan) step(v *View, directory *internalv1.ShareDirectory, live map[string]bool, wanted, blocked bool) {
	move := directory.Spec.Move
	next, outcome := v.next(directory, wanted, blocked)
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
			write.reason, write.note = "MoveDelayed", v.whyDelayed(&move)
		}
	case moving.Flip:
		after.Spec.DataServerRef, after.Spec.Volume = move.Target.DataServerRef, move.Target.Volume
		after.Spec.MovedTime = &metav1.Time{Time: v.Now}
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
		write.reason, write.note = "MoveRefused", fmt.Sprintf("does not move to %s: %s", to, v.reportOf(&move, to).message())+v.elsewhere(directory, live, nil).advice(directory)
		p.unask(directory, to)
	}
	p.writes = append(p.writes, write)
}

func (v *View) next(directory *internalv1.ShareDirectory, wanted, blocked bool) (internalv1.DirectoryMove, moving.Outcome) {
	move := &directory.Spec.Move
	return moving.Next(*move, moving.Input{
		Wanted: wanted, Blocked: blocked, Suspended: v.isSuspended(), Moved: v.movedTime(directory), Now: v.Now,
		Source: v.reportOf(move, move.Source.DataServerRef.Name).MoveReport, Target: v.reportOf(move, move.Target.DataServerRef.Name).MoveReport,
	})
}

// movedTime is from when on clients of a directory that was copied come to its owner; zero if it was not copied.
func (v *View) movedTime(directory *internalv1.ShareDirectory) time.Time {
	moved, served := directory.Spec.MovedTime, v.servedAgain(directory.Spec.DataServerRef.Name)
	if moved == nil || served.Before(moved.Time) {
		return ptr.Deref(moved, metav1.Time{}).Time
	}
	return served
}

// servedAgain is when a data server served again after its last end; now if it does not yet, zero if it never ended.
func (v *View) servedAgain(name string) time.Time {
	for i := range v.FileServer.Status.Servers {
		server := &v.FileServer.Status.Servers[i]
		if server.Name != name || server.LastEnd.EndTime == nil {
			continue
		}
		if server.LastEnd.ServedAfterMilliseconds == nil {
			return v.Now
		}
		return server.LastEnd.EndTime.Add(time.Duration(*server.LastEnd.ServedAfterMilliseconds) * time.Millisecond)
	}
	return time.Time{}
}

// isBlocked tells whether a directory must not be frozen now.
func (v *View) isBlocked(directory *internalv1.ShareDirectory, live, still map[string]bool) bool {
	move := &directory.Spec.Move
	return !v.canMove(directory, still) || v.States[move.Source.DataServerRef.Name] != fleet.Serving ||
		!v.serves(move.Target.DataServerRef.Name, directory.Spec.FileShareRef.Name, live)
}

// unask takes a request away that can't be fulfilled.
func (p *Plan) unask(directory *internalv1.ShareDirectory, to string) {
	for i, request := range p.requests {
		if request.Share == directory.Spec.FileShareRef.Name && request.Path == directory.Spec.Path && request.To == to {
			p.requests = slices.Delete(p.requests, i, i+1)
			p.settled = true
			p.Pending--
			return
		}
	}
}

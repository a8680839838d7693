package directorymoves

import (
	"fmt"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/requeue"
	"github.com/howdah/howdah/internal/moving"
)

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

// isSuspended tells whether nothing is copied for now.
func (v *View) isSuspended() bool {
	return v.FileServer.Spec.Moves.Execution == v1alpha1.ExecutionSuspended
}

// copies turns what is to move into steps of copies. asked has the targets of requests by the directories' places in v.Directories.
func (p *Plan) copies(v *View, live, still map[string]bool, asked map[int]string) {
	giving, taking, parts := map[string]int{}, map[string]int{}, map[string]int{}
	waiting := v.waitingFor(asked)
	var full []*internalv1.ShareDirectory
	for i := range v.Directories {
		directory := &v.Directories[i]
		move := &directory.Spec.Move
		if move.ID == "" {
			continue
		}
		source, target := move.Source.DataServerRef.Name, move.Target.DataServerRef.Name
		parts[source]++
		parts[target]++
		wanted, refused := v.isWanted(i, asked), v.reportOf(move, target).isRefused()
		if refused && wanted && asked[i] == "" {
			if _, outcome := v.next(directory, wanted, false); outcome == moving.Refused {
				full = append(full, directory)
				continue // It is tried again by itself, and takes no other's turn.
			}
		}
		switch {
		case refused:
			p.say(directory, ": "+v.reportOf(move, target).message())
		case v.waiting(move) != "":
			p.say(directory, ": "+v.waiting(move))
		case len(move.Refusals) > 0 && move.Step == internalv1.MoveCopying:
			p.say(directory, fmt.Sprintf(" goes to %s, because %s has no room for it", target, move.Refusals[len(move.Refusals)-1].DataServerRef.Name))
		}
		if !isHeldUp(move) {
			giving[source]++
			taking[target]++
		}
		p.step(v, directory, live, wanted, v.isBlocked(directory, live, still))
		if move.IsFrozen() || move.Step == internalv1.MoveCopying {
			p.next = requeue.Soonest(p.next, moving.Again(*move, v.movedTime(directory), v.Now))
		}
	}
	begins := func(from, to string) bool {
		if v.isSuspended() || giving[from] >= mostCopies || taking[to] >= mostCopies || waiting[to] >= mostWaiting || parts[from] >= mostParts || parts[to] >= mostParts {
			return false
		}
		giving[from]++
		taking[to]++
		return true
	}
	for _, directory := range full {
		p.redirect(v, directory, v.elsewhere(directory, live, waiting), func(to string) bool {
			return v.canMove(directory, still) && begins(directory.Spec.Move.Source.DataServerRef.Name, to)
		})
	}
	candidates := p.changes
	p.changes = nil
	for _, candidate := range candidates {
		from := candidate.directory.Spec.DataServerRef.Name
		if candidate.directory.Spec.Move.ID == "" && candidate.to != from && begins(from, candidate.to) {
			p.begin(v, candidate)
		}
	}
}

// isWanted tells whether a move is still asked for.
func (v *View) isWanted(i int, asked map[int]string) bool {
	target := v.Directories[i].Spec.Move.Target.DataServerRef.Name
	to, isAsked := asked[i]
	return v.MayCopy() && (isAsked && to == target || !isAsked && v.isToMove(&v.Directories[i]) && !v.isToBeIdle(target))
}

// isHeldUp tells whether a directory was frozen often, to no avail.
func isHeldUp(move *internalv1.DirectoryMove) bool {
	return move.Step == internalv1.MoveCopying && move.Attempt >= heldUpAfter
}

// waitingFor is how many directories take no other's turn, by their targets.
func (v *View) waitingFor(asked map[int]string) map[string]int {
	waiting := map[string]int{}
	for i := range v.Directories {
		move := &v.Directories[i].Spec.Move
		target := move.Target.DataServerRef.Name
		if move.ID != "" && (isHeldUp(move) || asked[i] == "" && v.reportOf(move, target).isRefused() && v.isWanted(i, asked)) {
			waiting[target]++
		}
	}
	return waiting
}

// say notes why a directory waits.
func (p *Plan) say(directory *internalv1.ShareDirectory, text string) {
	p.stuck = append(p.stuck, directory.Spec.Path+" of share "+directory.Spec.FileShareRef.Name+text)
}

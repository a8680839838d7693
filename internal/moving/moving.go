package moving

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

const (
	// FreezeLimit is how long clients of a directory wait for the end of the copy. After that they go on, and the copying too.
	FreezeLimit = 30 * time.Second
	// ReleaseLimit is how long the source keeps a directory frozen without a new task: the operator is away. It is longer than FreezeLimit,
	// so that the operator, if it is there, ends the freeze.
	ReleaseLimit = 60 * time.Second
	// pauseStep and pauseMost are the pause before a directory is frozen again: a step for each freeze that took too long.
	pauseStep = 30 * time.Second
	pauseMost = 10 * time.Minute
	// settle is how long a directory that has moved is not frozen again. Linux asks a server that makes it wait every 15 s at last, the source says
	// ESTALE 3 s after the flip, and Linux looks the path up once more for it. A program whose request meets a second move then gets ESTALE.
	settle = 25 * time.Second
)

// Outcome is what happens to a move.
type Outcome int

// Outcomes.
const (
	// Stay: nothing changes.
	Stay Outcome = iota
	// Step: the move goes on with the next step.
	Step
	// Flip: as Step; in the same write the target becomes the owner, and the directory gets another identity.
	Flip
	// Done: the move has ended well. Cancelled: it has ended, and the source has the directory as before. Refused: so it has, because the target can't take it.
	Done
	Cancelled
	Refused
)

// Input is what is known of a move.
type Input struct {
	// Wanted: the move is asked for.
	Wanted bool
	// Blocked: nothing new begins: the directory is being renamed or removed, the share is paused, or a data server of the move does not serve.
	Blocked bool
	// Suspended: no directory is frozen.
	Suspended bool
	// Source and Target are the reports of the data servers, nil if there are none.
	Source, Target *internalv1.MoveReport
	// Moved is from when on clients come to the owner to which the directory moved last; zero if it has not moved.
	Moved, Now time.Time
}

// Next is the next step of a move. Between two steps any process may end, and the next one finds what is written here.
func Next(move internalv1.DirectoryMove, in Input) (internalv1.DirectoryMove, Outcome) {
	target := state(in.Target, move.Attempt)
	switch had := in.newest(); {
	case move.Step == internalv1.MoveLeaving:
	case in.Source != nil && in.Source.State == internalv1.MoveStateLeft, in.Target != nil && in.Target.State == internalv1.MoveStatePlaced:
		// The source has promised, so there is no way back. If this is no placing move, it is the target's since long: the object is of an older backup.
		next := step(move, internalv1.MoveLeaving, in.Now)
		next.Sequence = max(next.Sequence, had.Sequence+1)
		return next, Flip
	case had.Sequence > move.Sequence:
		// The object is of an older backup (or of a cache that is behind: then it can't be written). Data servers take no lower sequence. What they have on
		// their volumes decides where a move is that copies.
		next := step(move, internalv1.MoveCopying, in.Now)
		next.Sequence, next.Attempt = had.Sequence+1, max(move.Attempt, had.Attempt)
		return next, Step
	}
	switch move.Step {
	case internalv1.MoveCopying:
		return nextCopying(move, in, target)
	case internalv1.MoveFreezing:
		// The copy is whole and durable. It is looked at first: a copy that is verified is used, whatever the clock says.
		if target == internalv1.MoveStateVerified && in.Wanted && state(in.Source, move.Attempt) == internalv1.MoveStateFrozen {
			return step(move, internalv1.MovePlacing, in.Now), Step
		}
		if !in.Wanted || state(in.Source, move.Attempt) == internalv1.MoveStateInUse || in.Now.Sub(since(move)) >= FreezeLimit {
			return step(move, internalv1.MoveThawing, in.Now), Step
		}
	case internalv1.MoveThawing:
		if state(in.Source, move.Attempt) == internalv1.MoveStateServing {
			if in.Wanted {
				return step(move, internalv1.MoveCopying, in.Now), Step
			}
			if in.Source.Sequence >= move.Sequence {
				return move, Cancelled
			}
		}
	case internalv1.MovePlacing:
		// The target may have put the copy into the share, so it alone says that there is a way back.
		if target == internalv1.MoveStateReleased {
			return step(move, internalv1.MoveThawing, in.Now), Step
		}
	case internalv1.MoveLeaving:
		if in.Source != nil && in.Source.State == internalv1.MoveStateLeft {
			return move, Done
		}
	}
	return move, Stay
}

func nextCopying(move internalv1.DirectoryMove, in Input, target internalv1.MoveState) (internalv1.DirectoryMove, Outcome) {
	switch {
	case !in.Wanted && in.Source != nil && in.Source.State == internalv1.MoveStateFrozen:
		return move, Stay // It may be promised to the target.
	case !in.Wanted:
		// What is reported may be of the same older backup as the object, and the source may have left since. It answers to a new step.
		return step(move, internalv1.MoveThawing, in.Now), Step
	case target == internalv1.MoveStateRefused:
		return move, Refused
	case in.Blocked || in.Suspended || target != internalv1.MoveStateCaughtUp || untilFreeze(move, in.Moved, in.Now) > 0:
		return move, Stay
	}
	next := step(move, internalv1.MoveFreezing, in.Now)
	next.Attempt++
	return next, Step
}

// newest is the highest sequence and attempt that the data servers report.
func (in *Input) newest() (had internalv1.MoveReport) {
	for _, report := range []*internalv1.MoveReport{in.Source, in.Target} {
		if report != nil {
			had.Sequence, had.Attempt = max(had.Sequence, report.Sequence), max(had.Attempt, report.Attempt)
		}
	}
	return had
}

// pause is how long copying goes on after that many freezes that took too long.
func pause(attempts int32) time.Duration {
	return min(time.Duration(attempts)*pauseStep, pauseMost)
}

// untilFreeze is how long copying goes on at least. If the time of the last move is wrong, the beginning of this one counts.
func untilFreeze(move internalv1.DirectoryMove, moved, now time.Time) time.Duration {
	copied := now.Sub(since(move))
	return max(pause(move.Attempt)-copied, settle-max(now.Sub(moved), copied))
}

// Again is when to look at a move again though nothing happens; 0: it need not be. moved is as in Input.
func Again(move internalv1.DirectoryMove, moved, now time.Time) time.Duration {
	var left time.Duration
	switch move.Step {
	case internalv1.MoveCopying:
		left = untilFreeze(move, moved, now)
	case internalv1.MoveFreezing:
		left = FreezeLimit - now.Sub(since(move))
	}
	return max(left, 0)
}

// state is what is reported of this attempt; "" if nothing is.
func state(report *internalv1.MoveReport, attempt int32) internalv1.MoveState {
	if report == nil || report.Attempt != attempt {
		return ""
	}
	return report.State
}

func since(move internalv1.DirectoryMove) time.Time {
	if move.StepTime == nil {
		return time.Time{}
	}
	return move.StepTime.Time
}

func step(move internalv1.DirectoryMove, to internalv1.MoveStep, now time.Time) internalv1.DirectoryMove {
	next := *move.DeepCopy()
	next.Step, next.StepTime = to, &metav1.Time{Time: now}
	next.Sequence++
	return next
}

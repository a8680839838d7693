package moving

import (
	"cmp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

var start = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func report(state internalv1.MoveState, attempt int32) *internalv1.MoveReport {
	return &internalv1.MoveReport{ID: "move-one", State: state, Attempt: attempt}
}

func had(report *internalv1.MoveReport, sequence int64) *internalv1.MoveReport {
	report.Sequence = sequence
	return report
}

func TestTheNextStepOfAMove(t *testing.T) {
	const (
		copying  = internalv1.MoveCopying
		freezing = internalv1.MoveFreezing
		thawing  = internalv1.MoveThawing
		placing  = internalv1.MovePlacing
		leaving  = internalv1.MoveLeaving
	)
	wanted := Input{Wanted: true}
	tests := map[string]struct {
		step    internalv1.MoveStep
		attempt int32
		after   time.Duration
		in      Input
		source  *internalv1.MoveReport
		target  *internalv1.MoveReport
		want    internalv1.MoveStep
		outcome Outcome
		// freezes is the attempt afterwards.
		freezes int32
		// sequence is that afterwards, if it is not the next one.
		sequence int64
	}{
		"an older object than what is on the volumes": {step: freezing, attempt: 1, in: wanted, source: report(internalv1.MoveStateLeft, 1), want: leaving, outcome: Flip, freezes: 1},
		"the target has it, and the object is older":  {step: copying, in: wanted, target: report(internalv1.MoveStatePlaced, 3), want: leaving, outcome: Flip},
		"an older object, and its data servers are at a later freeze": {
			step: freezing, attempt: 1, in: wanted, source: had(report(internalv1.MoveStateFrozen, 3), 9), target: had(report(internalv1.MoveStateVerified, 2), 8), want: copying, outcome: Step, freezes: 3, sequence: 10,
		},
		"cancelled, but the source may have promised": {step: copying, source: report(internalv1.MoveStateFrozen, 1), want: copying},
		"nothing is reported":                         {step: copying, in: wanted, want: copying},
		"passes are long":                             {step: copying, in: wanted, target: report(internalv1.MoveStateCopying, 0), want: copying},
		"the copy has caught up":                      {step: copying, in: wanted, target: report(internalv1.MoveStateCaughtUp, 0), want: freezing, outcome: Step, freezes: 1},
		"it had caught up before the last freeze":     {step: copying, attempt: 1, after: time.Hour, in: wanted, target: report(internalv1.MoveStateCaughtUp, 0), want: copying, freezes: 1},
		"it has caught up again":                      {step: copying, attempt: 1, after: time.Hour, in: wanted, target: report(internalv1.MoveStateCaughtUp, 1), want: freezing, outcome: Step, freezes: 2},
		"soon after a freeze that took too long":      {step: copying, attempt: 1, after: 29 * time.Second, in: wanted, target: report(internalv1.MoveStateCaughtUp, 1), want: copying, freezes: 1},
		"the directory is being renamed":              {step: copying, in: Input{Wanted: true, Blocked: true}, target: report(internalv1.MoveStateCaughtUp, 0), want: copying},
		"it has just moved":                           {step: copying, after: 5 * time.Second, in: Input{Wanted: true, Moved: start.Add(-time.Second)}, target: report(internalv1.MoveStateCaughtUp, 0), want: copying},
		"it moved some time ago":                      {step: copying, after: 5 * time.Second, in: Input{Wanted: true, Moved: start.Add(-20 * time.Second)}, target: report(internalv1.MoveStateCaughtUp, 0), want: freezing, outcome: Step, freezes: 1},
		"it has just moved, by a clock that is wrong": {
			step: copying, after: settle, in: Input{Wanted: true, Moved: start.Add(time.Hour)}, target: report(internalv1.MoveStateCaughtUp, 0), want: freezing, outcome: Step, freezes: 1,
		},
		"moves are suspended":                                   {step: copying, in: Input{Wanted: true, Suspended: true}, target: report(internalv1.MoveStateCaughtUp, 0), want: copying},
		"there is no room":                                      {step: copying, in: wanted, target: report(internalv1.MoveStateRefused, 0), want: copying, outcome: Refused},
		"cancelled while it copies":                             {step: copying, source: had(report(internalv1.MoveStateServing, 0), 5), target: report(internalv1.MoveStateCaughtUp, 0), want: thawing, outcome: Step},
		"frozen, and not verified":                              {step: freezing, attempt: 1, in: wanted, source: report(internalv1.MoveStateFrozen, 1), target: report(internalv1.MoveStateCopying, 1), want: freezing, freezes: 1},
		"frozen and verified":                                   {step: freezing, attempt: 1, in: wanted, source: report(internalv1.MoveStateFrozen, 1), target: report(internalv1.MoveStateVerified, 1), want: placing, outcome: Step, freezes: 1},
		"what was verified before the last freeze":              {step: freezing, attempt: 2, in: wanted, source: report(internalv1.MoveStateFrozen, 2), target: report(internalv1.MoveStateVerified, 1), want: freezing, freezes: 2},
		"verified, and the source thawed meanwhile":             {step: freezing, attempt: 1, in: wanted, source: report(internalv1.MoveStateServing, 1), target: report(internalv1.MoveStateVerified, 1), want: freezing, freezes: 1},
		"frozen for too long":                                   {step: freezing, attempt: 1, after: FreezeLimit, in: wanted, source: report(internalv1.MoveStateFrozen, 1), want: thawing, outcome: Step, freezes: 1},
		"verified at the last moment":                           {step: freezing, attempt: 1, after: FreezeLimit, in: wanted, source: report(internalv1.MoveStateFrozen, 1), target: report(internalv1.MoveStateVerified, 1), want: placing, outcome: Step, freezes: 1},
		"cancelled while it is frozen":                          {step: freezing, attempt: 1, source: report(internalv1.MoveStateFrozen, 1), target: report(internalv1.MoveStateVerified, 1), want: thawing, outcome: Step, freezes: 1},
		"thawing, and still frozen":                             {step: thawing, attempt: 1, in: wanted, source: report(internalv1.MoveStateFrozen, 1), want: thawing, freezes: 1},
		"thawed":                                                {step: thawing, attempt: 1, in: wanted, source: report(internalv1.MoveStateServing, 1), want: copying, outcome: Step, freezes: 1},
		"what the source reported before it was frozen":         {step: thawing, attempt: 1, in: wanted, source: report(internalv1.MoveStateServing, 0), want: thawing, freezes: 1},
		"thawed and cancelled":                                  {step: thawing, attempt: 1, source: had(report(internalv1.MoveStateServing, 1), 5), want: thawing, outcome: Cancelled, freezes: 1},
		"cancelled, and the report is of the step before":       {step: thawing, attempt: 1, source: had(report(internalv1.MoveStateServing, 1), 4), want: thawing, freezes: 1},
		"cancelled, and the source has left":                    {step: thawing, source: had(report(internalv1.MoveStateLeft, 0), 5), want: leaving, outcome: Flip},
		"cancelled, and the source does not have it":            {step: thawing, source: had(report(internalv1.MoveStateAbsent, 0), 5), want: thawing},
		"the source does not have it, and the target does":      {step: copying, source: had(report(internalv1.MoveStateAbsent, 0), 5), target: report(internalv1.MoveStatePlaced, 0), want: leaving, outcome: Flip},
		"placing, for however long, and cancelled or not":       {step: placing, attempt: 1, after: time.Hour, target: report(internalv1.MoveStateVerified, 1), want: placing, freezes: 1},
		"files are open":                                        {step: freezing, attempt: 2, in: wanted, source: report(internalv1.MoveStateInUse, 2), want: thawing, outcome: Step, freezes: 2},
		"files were open in the freeze before":                  {step: freezing, attempt: 2, in: wanted, source: report(internalv1.MoveStateInUse, 1), want: freezing, freezes: 2},
		"the source has released it before the copy was placed": {step: placing, attempt: 2, in: wanted, target: report(internalv1.MoveStateReleased, 2), want: thawing, outcome: Step, freezes: 2},
		"so it had in the freeze before":                        {step: placing, attempt: 2, in: wanted, target: report(internalv1.MoveStateReleased, 1), want: placing, freezes: 2},
		"placed":                                                {step: placing, attempt: 1, target: report(internalv1.MoveStatePlaced, 1), want: leaving, outcome: Flip, freezes: 1},
		"the source waits":                                      {step: leaving, attempt: 1, in: wanted, source: report(internalv1.MoveStateFrozen, 1), want: leaving, freezes: 1},
		"the source has left":                                   {step: leaving, attempt: 1, in: wanted, source: report(internalv1.MoveStateLeft, 1), want: leaving, outcome: Done, freezes: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			move := internalv1.DirectoryMove{ID: "move-one", Step: tc.step, StepTime: &metav1.Time{Time: start}, Attempt: tc.attempt, Sequence: 5}
			tc.in.Source, tc.in.Target, tc.in.Now = tc.source, tc.target, start.Add(tc.after)
			next, outcome := Next(move, tc.in)
			if next.Step != tc.want || outcome != tc.outcome || next.Attempt != tc.freezes {
				t.Errorf("step %s, outcome %d, attempt %d instead of %s, %d, %d", next.Step, outcome, next.Attempt, tc.want, tc.outcome, tc.freezes)
			}
			if changed := outcome == Step || outcome == Flip; changed && next.Sequence != cmp.Or(tc.sequence, 6) || !changed && next.Sequence != 5 || changed != next.StepTime.Time.Equal(tc.in.Now) && tc.after > 0 {
				t.Errorf("sequence %d at %s", next.Sequence, next.StepTime)
			}
		})
	}
}

func TestWhenToLookAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		step    internalv1.MoveStep
		attempt int32
		after   time.Duration
		moved   time.Time
		want    time.Duration
	}{
		"copying":                   {internalv1.MoveCopying, 0, time.Second, time.Time{}, 0},
		"after three long freezes":  {internalv1.MoveCopying, 3, 30 * time.Second, time.Time{}, time.Minute},
		"after many long freezes":   {internalv1.MoveCopying, 1000, 0, time.Time{}, pauseMost},
		"soon after the last move":  {internalv1.MoveCopying, 0, 2 * time.Second, start.Add(-3 * time.Second), settle - 5*time.Second},
		"frozen":                    {internalv1.MoveFreezing, 1, 10 * time.Second, time.Time{}, 20 * time.Second},
		"frozen for longer than it": {internalv1.MoveFreezing, 1, time.Hour, time.Time{}, 0},
		"placing":                   {internalv1.MovePlacing, 1, time.Second, time.Time{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			move := internalv1.DirectoryMove{Step: tc.step, StepTime: &metav1.Time{Time: start}, Attempt: tc.attempt}
			if got := Again(move, tc.moved, start.Add(tc.after)); got != tc.want {
				t.Errorf("%s instead of %s", got, tc.want)
			}
		})
	}
}

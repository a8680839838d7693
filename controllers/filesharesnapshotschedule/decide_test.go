package filesharesnapshotschedule

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/test/builders"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// world is a schedule with its snapshots, and storage that makes them; what the API server would do is done by turn.
type world struct {
	t        *testing.T
	clock    clock.PassiveClock
	schedule *v1alpha1.FileShareSnapshotSchedule
	share    *v1alpha1.FileShare
	refusal  string
	// slow storage makes none.
	slow bool
	// By how much the operator's clock and the storage's are ahead of the API server's.
	ownAhead, storageAhead time.Duration
	snapshots              []*v1alpha1.FileShareSnapshot
	// everMade counts them, and those that are gone.
	everMade int
}

func newWorld(t *testing.T, clock clock.PassiveClock, schedule string, retention v1alpha1.SnapshotRetention) *world {
	object := builders.Defaulted(&v1alpha1.FileShareSnapshotSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "nightly", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec: v1alpha1.FileShareSnapshotScheduleSpec{
			FileShareRef: v1alpha1.FileShareReference{Name: "data"}, Schedule: schedule, Retention: retention,
		},
	})
	return &world{t: t, clock: clock, schedule: object, share: builders.FileShare("ml", "data", "training").Build()}
}

func (w *world) observed() *observed {
	now := w.clock.Now()
	return &observed{now: now, own: now.Add(w.ownAhead), schedule: w.schedule, share: w.share, refusal: w.refusal, snapshots: w.snapshots}
}

// turn is a pass, and what comes of it.
func (w *world) turn() decision {
	w.t.Helper()
	o := w.observed()
	d := decide(o)
	w.schedule.Status = statusOf(o, d)
	for _, gone := range d.remove {
		w.snapshots = without(w.snapshots, gone)
	}
	if d.create != nil {
		w.everMade++
		d.create.CreationTimestamp = metav1.NewTime(w.clock.Now())
		w.snapshots = append(w.snapshots, d.create)
		if !w.slow {
			w.storageIsDone(d.create)
		}
	}
	return d
}

func (w *world) storageIsDone(snapshot *v1alpha1.FileShareSnapshot) {
	snapshot.Status.ReadyTime = ptr.To(metav1.NewTime(w.clock.Now().Add(w.storageAhead)))
	conditions.SetSummary(&snapshot.Status.Conditions, 1, w.clock.Now(), conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, ""))
}

func without(all []*v1alpha1.FileShareSnapshot, one *v1alpha1.FileShareSnapshot) (rest []*v1alpha1.FileShareSnapshot) {
	for _, s := range all {
		if s.Name != one.Name {
			rest = append(rest, s)
		}
	}
	return rest
}

func (w *world) names() string {
	var names []string
	for _, s := range w.snapshots {
		names = append(names, strings.TrimPrefix(s.Name, "nightly-2026-11-"))
	}
	return strings.Join(names, " ")
}

func (w *world) reason() string {
	return conditions.Reason(w.schedule.Status.Conditions, v1alpha1.ConditionReady)
}

// A fortnight, as the passes ask for the next one themselves.
func TestAFortnightOfNights(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, "0 3 * * *", v1alpha1.SnapshotRetention{KeepLast: 3})
	passes := 0
	for end := noon.Add(14 * 24 * time.Hour); clock.Now().Before(end); passes++ {
		d := w.turn()
		if d.again <= 0 || d.again > longest {
			t.Fatalf("the next pass is in %s", d.again)
		}
		clock.Step(d.again)
	}
	if w.everMade != 14 || w.names() != "nightly-2026-12-04-0300 nightly-2026-12-05-0300 nightly-2026-12-06-0300" {
		t.Errorf("%d made, there are %s", w.everMade, w.names())
	}
	if passes > 14*25 {
		t.Errorf("%d passes", passes)
	}
	if next := w.schedule.Status.NextScheduleTime; next == nil || !next.Equal(&metav1.Time{Time: time.Date(2026, 12, 7, 3, 0, 0, 0, time.UTC)}) {
		t.Errorf("the next is at %v", next)
	}
}

func TestNothingIsMadeForTheTimeBeforeTheSchedule(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon.Add(time.Minute)), "0 * * * *", v1alpha1.SnapshotRetention{KeepLast: 3})
	w.schedule.CreationTimestamp = metav1.NewTime(noon.Add(30 * time.Second))
	if w.turn(); w.everMade != 0 || w.reason() != v1alpha1.ReasonReady {
		t.Errorf("%s, %s", w.names(), w.reason())
	}
}

func TestOfManyMissedOneIsMade(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, "0 * * * *", v1alpha1.SnapshotRetention{KeepLast: 3})
	w.turn()
	clock.Step(50*time.Hour + 20*time.Minute)
	w.turn()
	w.turn()
	if w.names() != "24-1400" {
		t.Errorf("there are %s", w.names())
	}
}

func TestWhatIsTooLateIsLeftOut(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, "0 3 * * *", v1alpha1.SnapshotRetention{KeepLast: 3})
	w.schedule.Spec.StartingDeadlineSeconds = 3600
	w.turn()
	clock.Step(16*time.Hour + time.Second) // 04:00:01
	if w.turn(); w.everMade != 0 {
		t.Errorf("there are %s", w.names())
	}
	clock.Step(23 * time.Hour) // 03:00:01 of the next night
	if w.turn(); w.names() != "24-0300" {
		t.Errorf("there are %s", w.names())
	}
}

func TestNoneIsMadeWhileTheLastIsOnItsWay(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, "0 * * * *", v1alpha1.SnapshotRetention{KeepLast: 3})
	w.slow = true
	for range 5 {
		clock.Step(time.Hour)
		w.turn()
	}
	if w.names() != "22-1300" || w.reason() != v1alpha1.ReasonSnapshotNotReady {
		t.Errorf("there are %s: %s", w.names(), w.reason())
	}
	w.slow = false
	w.storageIsDone(w.snapshots[0])
	if w.turn(); w.names() != "22-1300 22-1700" || w.reason() != v1alpha1.ReasonReady {
		t.Errorf("there are %s: %s", w.names(), w.reason())
	}
}

func TestWhatASuspensionMissesIsNotMadeUpFor(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, "0 * * * *", v1alpha1.SnapshotRetention{KeepForSeconds: 7200})
	set := func(execution v1alpha1.Execution) {
		w.schedule.Spec.Execution = execution
		w.schedule.Generation++
	}
	for range 3 {
		w.turn()
		clock.Step(time.Hour)
	}
	w.turn()
	before := w.names()
	set(v1alpha1.ExecutionSuspended)
	clock.Step(30 * time.Hour)
	if d := w.turn(); w.names() != before || w.reason() != v1alpha1.ReasonSuspended || d.again != 0 || w.schedule.Status.NextScheduleTime != nil {
		t.Errorf("there are %s (before: %s): %s, again in %s", w.names(), before, w.reason(), d.again)
	}
	set(v1alpha1.ExecutionActive)
	clock.Step(90 * time.Minute)
	if w.turn(); w.names() != "22-1500" {
		t.Errorf("of %s there are %s", before, w.names())
	}
}

// A status that was lost, with a backup of the API say, is found again in the snapshots.
func TestALostStatusMakesNothingTwice(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon.Add(90 * time.Minute))
	w := newWorld(t, clock, "0 * * * *", v1alpha1.SnapshotRetention{KeepLast: 3})
	w.turn()
	w.schedule.Status = v1alpha1.FileShareSnapshotScheduleStatus{}
	if w.turn(); w.names() != "22-1300" || w.everMade != 1 {
		t.Errorf("%d made, there are %s", w.everMade, w.names())
	}
}

func TestWhatIsInTheWay(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		reason string
		words  string
	}{
		"no share":              {func(w *world) { w.share = nil }, v1alpha1.ReasonFileShareNotFound, `"data"`},
		"a share that goes":     {func(w *world) { w.share = builders.FileShare("ml", "data", "training").Deleting(noon).Build() }, v1alpha1.ReasonWaitingForShare, "being deleted"},
		"storage without any":   {func(w *world) { w.refusal = "copy what is to be kept" }, v1alpha1.ReasonSnapshotsUnsupported, "copy what is to be kept"},
		"a schedule that isn't": {func(w *world) { w.schedule.Spec.Schedule = "0 25 * * *" }, v1alpha1.ReasonInvalidSpec, "spec.schedule"},
		"one that never comes":  {func(w *world) { w.schedule.Spec.Schedule = "0 0 30 2 *" }, v1alpha1.ReasonInvalidSpec, "no time of the next five years"},
	} {
		w := newWorld(t, clocktesting.NewFakeClock(noon.Add(5*time.Hour)), "0 * * * *", v1alpha1.SnapshotRetention{KeepLast: 3})
		tc.change(w)
		d := w.turn()
		if w.everMade != 0 || d.ready.Reason != tc.reason || !strings.Contains(d.ready.Message, tc.words) {
			t.Errorf("%s: %d made, %s %q", name, w.everMade, d.ready.Reason, d.ready.Message)
		}
	}
}

func TestSnapshotsThatTheScheduleDidNotMakeAreNotItsOwn(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), "0 * * * *", v1alpha1.SnapshotRetention{KeepLast: 1})
	own := snapshotFor(w.observed(), noon)
	for name, change := range map[string]func(*v1alpha1.FileShareSnapshot){
		"without its label": func(s *v1alpha1.FileShareSnapshot) { s.Labels = nil },
		"of another share":  func(s *v1alpha1.FileShareSnapshot) { s.Spec.FileShareRef.Name = "other" },
		"another's":         func(s *v1alpha1.FileShareSnapshot) { s.Labels[v1alpha1.SnapshotScheduleLabel] = "weekly" },
	} {
		other := own.DeepCopy()
		if change(other); isOurs(w.schedule, other) {
			t.Error(name)
		}
	}
	if !isOurs(w.schedule, own) || own.Name != "nightly-2026-11-22-1200" || len(own.OwnerReferences) > 0 {
		t.Errorf("%+v", own)
	}
}

package filesharesnapshotschedule

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
)

const day = 24 * time.Hour

// twentyNights is a schedule that keeps 20 nights by their age, and has them.
func twentyNights(t *testing.T) (*world, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, "0 3 * * *", v1alpha1.SnapshotRetention{KeepForSeconds: int64((20 * day).Seconds())})
	for end := noon.Add(20 * day); clock.Now().Before(end); {
		clock.Step(w.turn().again)
	}
	if len(w.snapshots) != 20 {
		t.Fatalf("%d snapshots: %s", len(w.snapshots), w.names())
	}
	return w, clock
}

// A clock is ahead by so much for some passes, and right again.
func TestAClockThatWasAheadCostsNoSnapshotAndNoNight(t *testing.T) {
	for name, tc := range map[string]struct {
		api, own, storage time.Duration
		// mayGo is how many of the 20 may go, extra how many more there may be.
		mayGo, extra int
		// blamed is what the condition says of it.
		blamed string
	}{
		"the operator's":                       {own: 18 * day, blamed: "operator's node is 18 days ahead of the API server's"},
		"the operator's is behind":             {own: -18 * day, blamed: "operator's node is 18 days behind the API server's"},
		"the API server's":                     {api: 18 * day, own: -18 * day, storage: -18 * day, extra: 1, blamed: "operator's node is 18 days behind the API server's"},
		"both, as on one machine":              {api: 18 * day, storage: -18 * day, mayGo: 1, extra: 1},
		"the storage's":                        {storage: 18 * day},
		"all but the API server's":             {own: 18 * day, storage: 18 * day, blamed: "18 days ahead"},
		"the operator's by less than a minute": {own: 50 * time.Second},
	} {
		w, clock := twentyNights(t)
		clock.Step(tc.api)
		w.ownAhead, w.storageAhead = tc.own, tc.storage
		for range 3 {
			w.turn()
		}
		condition := conditions.Message(w.schedule.Status.Conditions, v1alpha1.ScheduleClocksAgree)
		if agree := conditions.IsTrue(w.schedule.Status.Conditions, v1alpha1.ScheduleClocksAgree); tc.blamed == "" && !agree && tc.api == 0 || !strings.Contains(condition, tc.blamed) {
			t.Errorf("%s: %q", name, condition)
		}
		if left := len(w.snapshots); left < 20-tc.mayGo || left > 20+tc.extra {
			t.Errorf("%s: %d snapshots are left: %s", name, left, w.names())
		}
		clock.SetTime(clock.Now().Add(-tc.api))
		w.ownAhead, w.storageAhead = 0, 0
		w.turn()
		before := w.everMade
		for end := clock.Now().Add(25 * day); clock.Now().Before(end); {
			clock.Step(w.turn().again)
		}
		if made := w.everMade - before; made != 25 {
			t.Errorf("%s: in the 25 nights after, %d snapshots were made: %s", name, made, w.names())
		}
		if len(w.snapshots) < 20 || len(w.snapshots) > 21 || !conditions.IsTrue(w.schedule.Status.Conditions, v1alpha1.ScheduleClocksAgree) {
			t.Errorf("%s: then there are %d: %s", name, len(w.snapshots), condition)
		}
	}
}

func TestAStorageWhoseClockIsWrongIsNamed(t *testing.T) {
	for ahead, want := range map[time.Duration]string{
		3 * day:           "the storage's clock was 3 days ahead of the API server's when FileShareSnapshot nightly-2026-12-13-0300 was made",
		-90 * time.Minute: "the storage's clock was 1h30m behind the API server's",
	} {
		w, clock := twentyNights(t)
		w.storageAhead = ahead
		clock.Step(15*time.Hour + time.Second)
		w.turn()
		w.turn()
		condition := conditions.Message(w.schedule.Status.Conditions, v1alpha1.ScheduleClocksAgree)
		if !strings.Contains(condition, want) || len(w.snapshots) != 21 && len(w.snapshots) != 20 {
			t.Errorf("%s: %q, %d snapshots", ahead, condition, len(w.snapshots))
		}
	}
}

// A storage whose clock is behind stamps the newest as the oldest.
func TestTheNewestIsNotDeletedBecauseItsStampIsOld(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, "0 * * * *", v1alpha1.SnapshotRetention{KeepLast: 3})
	for hour := range 8 {
		if hour == 5 {
			w.storageAhead = -30 * day
		}
		clock.Step(time.Hour)
		w.turn()
	}
	w.turn()
	if w.names() != "22-1800 22-1900 22-2000" {
		t.Errorf("there are %s", w.names())
	}
}

func TestNothingGrowsOldWhileNothingIsMade(t *testing.T) {
	w, clock := twentyNights(t)
	w.slow = true
	for end := clock.Now().Add(60 * day); clock.Now().Before(end); {
		clock.Step(w.turn().again)
	}
	if ready := len(w.snapshots) - 1; ready < 19 {
		t.Errorf("%d are left: %s", ready, w.names())
	}
}

func TestFiveAreDeletedAtATime(t *testing.T) {
	w, _ := twentyNights(t)
	w.schedule.Spec.Retention = v1alpha1.SnapshotRetention{KeepLast: 2}
	o := w.observed()
	if d := decide(o); len(d.remove) != 5 || d.remove[0] != w.snapshots[0] || d.again != removalPause {
		t.Errorf("%d are deleted, again in %s", len(d.remove), d.again)
	}
	o.pause = 20 * time.Second
	if d := decide(o); len(d.remove) != 0 || d.again != 20*time.Second {
		t.Errorf("%d are deleted, again in %s", len(d.remove), d.again)
	}
	var paused removals
	if paused.pause("a") != 0 {
		t.Error("a schedule that deleted nothing waits")
	}
	paused.note("a")
	if p := paused.pause("a"); p < removalPause/2 || p > removalPause || paused.pause("b") != 0 {
		t.Errorf("pauses of %s", p)
	}
}

// Objects that come from a backup are younger than their snapshots.
func TestObjectsOfABackupBlameNoClock(t *testing.T) {
	w, clock := twentyNights(t)
	for i, s := range w.snapshots {
		s.CreationTimestamp = metav1.NewTime(clock.Now().Add(-time.Duration(i) * time.Second))
	}
	w.schedule.Spec.Retention = v1alpha1.SnapshotRetention{KeepLast: 18}
	w.turn()
	if !conditions.IsTrue(w.schedule.Status.Conditions, v1alpha1.ScheduleClocksAgree) || len(w.snapshots) != 18 || w.snapshots[0].Name != "nightly-2026-11-25-0300" {
		t.Errorf("%s: %s", w.names(), conditions.Message(w.schedule.Status.Conditions, v1alpha1.ScheduleClocksAgree))
	}
}

func TestASnapshotThatIsThereTooEarlyDoesNotStandForItsTime(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, "0 * * * *", v1alpha1.SnapshotRetention{KeepLast: 3})
	early := snapshotFor(w.observed(), noon.Add(time.Hour))
	early.CreationTimestamp, early.Status.ReadyTime = metav1.NewTime(noon.Add(-time.Hour)), ptr.To(metav1.NewTime(noon.Add(-time.Hour)))
	w.snapshots = append(w.snapshots, early)
	clock.Step(time.Hour)
	if w.turn(); w.names() != "22-1300 22-1300-2" {
		t.Errorf("there are %s", w.names())
	}
	if w.turn(); w.everMade != 1 {
		t.Errorf("there are %s", w.names())
	}
}

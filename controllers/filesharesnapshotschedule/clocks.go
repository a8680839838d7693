package filesharesnapshotschedule

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
)

// A schedule sees three clocks: the API server's, the operator's own, and the storage's, which stamps snapshots (status.readyTime). Snapshots are asked for by
// the first. One is deleted for its age only if it is old enough by all three, so a clock that is wrong, or was wrong for one pass, costs none.

// clockTolerance is by how much clocks may differ. Responses tell the API server's to the second, and a pass takes a while.
const clockTolerance = time.Minute

// certainTime is what time it is for the ages of snapshots: what the API server's clock and the operator's both say, and not after the time for which
// the snapshot after the newest is due. If that one does not come, then either it is not that late, or no snapshots are made; old ones stay in both cases.
func certainTime(o *observed, when calendar) time.Time {
	var newest time.Time
	for _, snapshot := range o.snapshots {
		if at := snapshot.Status.ReadyTime; at != nil && at.After(newest) && conditions.IsTrue(snapshot.Status.Conditions, v1alpha1.ConditionReady) {
			newest = at.Time
		}
	}
	if newest.IsZero() {
		return time.Time{} // None can be read: none is too old.
	}
	certain := o.now
	for _, t := range []time.Time{o.own, when.next(newest)} {
		if t.Before(certain) {
			certain = t
		}
	}
	return certain
}

// momentOf is when a snapshot was made. A storage whose clock is behind says that it was before it was asked for.
func momentOf(snapshot *v1alpha1.FileShareSnapshot, now time.Time) time.Time {
	at := snapshot.Status.ReadyTime.Time
	if due, ok := scheduledTime(snapshot); ok && due.After(at) && !due.After(now) {
		return due
	}
	return at
}

// scheduledTime is for when a snapshot was asked for.
func scheduledTime(snapshot *v1alpha1.FileShareSnapshot) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, snapshot.Annotations[v1alpha1.ScheduledTimeAnnotation])
	return at, err == nil
}

// isPremature: the snapshot was made long before the time that it is for, by a clock that was ahead. It does not count for that time.
func isPremature(snapshot *v1alpha1.FileShareSnapshot) bool {
	due, ok := scheduledTime(snapshot)
	if !ok {
		return false
	}
	before := func(t time.Time) bool { return !t.IsZero() && t.Add(clockTolerance).Before(due) }
	return before(snapshot.CreationTimestamp.Time) || snapshot.Status.ReadyTime != nil && before(snapshot.Status.ReadyTime.Time)
}

// inForceSince is from when on the schedule counts. A changed one, and one that was suspended, begins again: what it would have asked for before, had
// it been so then, was not missed. A time that is yet to come is a clock's that was ahead.
func inForceSince(o *observed) time.Time {
	status, since := &o.schedule.Status, o.schedule.CreationTimestamp.Time
	switch {
	case status.EffectiveTime == nil:
	case status.ObservedGeneration == nil || *status.ObservedGeneration != o.schedule.Generation:
		return o.now
	default:
		since = status.EffectiveTime.Time
	}
	if since.After(o.now) {
		return o.now
	}
	return since
}

// lastAsked is for when the last snapshot was asked for, by the status or, where that was lost or not written, by the snapshots. What is yet to come was not
// asked for: a clock was ahead, and with it the schedule would stop until then.
func lastAsked(o *observed) (last time.Time) {
	if at := o.schedule.Status.LastScheduleTime; at != nil && !at.After(o.now) {
		last = at.Time
	}
	for _, snapshot := range o.snapshots {
		if at, ok := scheduledTime(snapshot); ok && at.After(last) && !at.After(o.now) && !isPremature(snapshot) {
			last = at
		}
	}
	return last
}

// compareClocks says which of the clocks is wrong, how far, and against what.
func compareClocks(o *observed) metav1.Condition {
	var faults []string
	if ahead := o.own.Sub(o.now); ahead.Abs() > clockTolerance {
		faults = append(faults, fmt.Sprintf("the clock of the operator's node is %s the API server's, which says %s", offset(ahead), o.now.UTC().Format(time.DateOnly)))
	}
	if snapshot, ahead := storageAhead(o); ahead.Abs() > clockTolerance {
		faults = append(faults, fmt.Sprintf("the storage's clock was %s the API server's when FileShareSnapshot %s was made", offset(ahead), snapshot))
	}
	if len(faults) == 0 {
		return conditions.True(v1alpha1.ScheduleClocksAgree, v1alpha1.ReasonReady, "the clocks of the API server, the operator and the storage agree")
	}
	return conditions.False(v1alpha1.ScheduleClocksAgree, v1alpha1.ReasonClockSkewed, strings.Join(faults, "; ")+
		". Snapshots are made by the API server's clock; none is deleted for its age unless it is old enough by all clocks. Set the clock that is wrong (NTP) on its machine")
}

// storageAhead is how far the storage's clock was ahead when it made the schedule's newest snapshot: that one is of later than now, or of before it was
// asked for. Objects that come from a backup are younger than their snapshots; that is no fault.
func storageAhead(o *observed) (name string, ahead time.Duration) {
	var newest *v1alpha1.FileShareSnapshot
	for _, snapshot := range o.snapshots {
		if snapshot.Status.ReadyTime != nil && (newest == nil || snapshot.CreationTimestamp.After(newest.CreationTimestamp.Time)) {
			newest = snapshot
		}
	}
	if newest == nil {
		return "", 0
	}
	ready, created := newest.Status.ReadyTime.Time, newest.CreationTimestamp.Time
	if ahead = ready.Sub(o.now); ahead > clockTolerance {
		return newest.Name, ahead
	}
	due, asked := scheduledTime(newest)
	if behind := ready.Sub(created); asked && behind < -clockTolerance && ready.Before(due) && !due.After(created.Add(clockTolerance)) {
		return newest.Name, behind
	}
	return newest.Name, 0
}

// offset is for messages.
func offset(ahead time.Duration) string {
	size, day := ahead.Abs(), 24*time.Hour
	text := strings.TrimSuffix(size.Round(time.Minute).String(), "0s") // Not to the second: each pass would write another message.
	if size >= 2*day {
		text = fmt.Sprintf("%d days", size.Round(day)/day)
	}
	if ahead < 0 {
		return text + " behind"
	}
	return text + " ahead of"
}

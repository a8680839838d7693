package filesharesnapshotschedule

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
)

// A schedule uses three clocks: the API server's, the operator's, and the storage's, which stamps snapshots
// (status.readyTime). Snapshots are requested by the first one. A snapshot is deleted for its age only if it is old
// enough by all three, so no snapshot is lost because one clock is wrong.

// clockTolerance is the allowed difference of clocks. Responses have the API server's time in whole seconds, and a pass
// takes some time.
const clockTolerance = time.Minute

// certainTime is the time for the ages of snapshots: the earlier one of the API server's and the operator's clocks, and
// not later than the time of the next snapshot after the newest. If that snapshot does not come, either the clocks are
// ahead or no snapshots are made. Old snapshots stay in both cases.
func certainTime(o *observed, when calendar) time.Time {
	var newest time.Time
	for _, snapshot := range o.snapshots {
		if at := snapshot.Status.ReadyTime; at != nil && at.After(newest) && conditions.IsTrue(snapshot.Status.Conditions, v1alpha1.ConditionReady) {
			newest = at.Time
		}
	}
	if newest.IsZero() {
		return time.Time{} // No snapshot can be read, so none is too old.
	}
	certain := o.now
	for _, t := range []time.Time{o.own, when.next(newest)} {
		if t.Before(certain) {
			certain = t
		}
	}
	return certain
}

// momentOf is when a snapshot was made. If the storage's clock is behind, that is the time of the request.
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

// isPremature reports whether the snapshot was made long before its scheduled time, because a clock was ahead. It does
// not count for that time.
func isPremature(snapshot *v1alpha1.FileShareSnapshot) bool {
	due, ok := scheduledTime(snapshot)
	if !ok {
		return false
	}
	before := func(t time.Time) bool { return !t.IsZero() && t.Add(clockTolerance).Before(due) }
	return before(snapshot.CreationTimestamp.Time) || snapshot.Status.ReadyTime != nil && before(snapshot.Status.ReadyTime.Time)
}

// inForceSince is since when the schedule applies. A changed or suspended schedule starts again, so earlier times do
// not count as missed. A time in the future is from a clock that was ahead.
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

// lastAsked is the scheduled time of the last request, from the status or, if that is missing, from the snapshots. A
// time in the future does not count: a clock was ahead, and the schedule would stop until then.
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

// compareClocks returns which clock is wrong, by how much, and compared with which.
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

// storageAhead is how far the storage's clock was ahead or behind when it made the schedule's newest snapshot. Objects
// restored from a backup are younger than their snapshots; that is no fault.
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
	text := strings.TrimSuffix(size.Round(time.Minute).String(), "0s") // Rounded, so that not each pass writes another message.
	if size >= 2*day {
		text = fmt.Sprintf("%d days", size.Round(day)/day)
	}
	if ahead < 0 {
		return text + " behind"
	}
	return text + " ahead of"
}

package filesharesnapshotschedule

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
)

// longest is the maximum time between passes. The timer stops while the machine sleeps, and would be late.
const longest = time.Hour

// decision has what a pass changes and reports.
type decision struct {
	// create is the snapshot to make; nil if none.
	create *v1alpha1.FileShareSnapshot
	// remove has the snapshots that retention does not keep.
	remove []*v1alpha1.FileShareSnapshot
	ready  metav1.Condition
	// clocks is the condition ClocksAgree.
	clocks metav1.Condition
	// since is status.sinceTime; last is for when the last snapshot was asked for, next for when the next will be; zero if there is none.
	since, last, next time.Time
	// again is the time until the next pass if no object changes; 0 means none.
	again time.Duration
}

// decide decides everything. It neither reads nor writes.
func decide(o *observed) decision {
	spec := &o.schedule.Spec
	d := decision{since: inForceSince(o), last: lastAsked(o), clocks: compareClocks(o)}
	when, err := parseCalendar(spec.Schedule, spec.TimeZone)
	if err == nil && when.next(o.now).IsZero() {
		err = fmt.Errorf("spec.schedule: %q is at no time of the next five years", spec.Schedule)
	}
	if err != nil {
		d.ready = conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonInvalidSpec, err.Error())
		return d
	}
	if spec.Execution == v1alpha1.ExecutionSuspended {
		d.ready = conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonSuspended,
			"spec.execution is Suspended: no snapshots are made, and none is deleted; set it to Active to continue")
		return d
	}
	var expiry time.Time
	d.remove, expiry = retire(o, when)
	if d.ready = obstacle(o); d.ready.Type == "" {
		d.plan(o, when)
	}
	d.again = untilNext(o.now, d.next, expiry)
	return d
}

// plan requests a snapshot if its time has come. Of several missed times it requests one.
func (d *decision) plan(o *observed, when calendar) {
	d.next = when.next(o.now)
	d.ready = conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "snapshots are made, and deleted, as they are to be")
	from := d.since
	if d.last.After(from) {
		from = d.last
	}
	due, isDue := when.last(from, o.now)
	if deadline := o.schedule.Spec.StartingDeadlineSeconds; isDue && deadline > 0 && o.now.Sub(due) > time.Duration(deadline)*time.Second {
		isDue = false
	}
	unready := newestUnready(o)
	switch {
	case unready != nil && isDue:
		d.ready = conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonSnapshotNotReady, fmt.Sprintf(
			"no snapshot is made for %s, because FileShareSnapshot %s is not ready: %s", due.Format(time.RFC3339), unready.Name, whyNot(unready)))
	case isDue:
		d.create, d.last = snapshotFor(o, due), due
	}
}

// obstacle is the condition for why no snapshots can be made now; without a type if they can.
func obstacle(o *observed) metav1.Condition {
	say := func(reason, message string) metav1.Condition {
		return conditions.False(v1alpha1.ConditionReady, reason, message)
	}
	switch {
	case o.share == nil:
		return say(v1alpha1.ReasonFileShareNotFound, fmt.Sprintf("spec.fileShareRef: there is no FileShare %q in namespace %q; create it, or delete this schedule and make one that names another",
			o.schedule.Spec.FileShareRef.Name, o.schedule.Namespace))
	case o.share.DeletionTimestamp != nil:
		return say(v1alpha1.ReasonWaitingForShare, fmt.Sprintf("FileShare %s is being deleted; no snapshots are made of it any more", o.share.Name))
	case o.refusal != "":
		return say(v1alpha1.ReasonSnapshotsUnsupported, o.refusal)
	}
	return metav1.Condition{}
}

// newestUnready is the newest snapshot of the schedule that was never Ready; nil if there is none.
func newestUnready(o *observed) (newest *v1alpha1.FileShareSnapshot) {
	for _, snapshot := range o.snapshots {
		if snapshot.Status.ReadyTime == nil && (newest == nil || snapshot.Name > newest.Name) {
			newest = snapshot
		}
	}
	return newest
}

func whyNot(snapshot *v1alpha1.FileShareSnapshot) string {
	if message := conditions.Message(snapshot.Status.Conditions, v1alpha1.ConditionReady); message != "" {
		return message
	}
	return "nothing is known of it yet"
}

// statusOf is the status after a pass. It is pure.
func statusOf(o *observed, d decision) v1alpha1.FileShareSnapshotScheduleStatus {
	status := *o.schedule.Status.DeepCopy()
	generation, count := o.schedule.Generation, int32(len(o.snapshots)-len(d.remove))
	if d.create != nil {
		count++
	}
	status.ObservedGeneration, status.Snapshots = &generation, &count
	status.EffectiveTime, status.LastScheduleTime, status.NextScheduleTime = asTime(d.since), asTime(d.last), asTime(d.next)
	conditions.Set(&status.Conditions, generation, o.now, d.clocks)
	conditions.SetSummary(&status.Conditions, generation, o.now, d.ready)
	return status
}

// asTime is nil for no time, and has no fractions of seconds, which the API would cut off.
func asTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.Truncate(time.Second)}
}

// untilNext returns the time to the first of some times, at most longest.
func untilNext(now time.Time, times ...time.Time) time.Duration {
	in := longest
	for _, t := range times {
		if !t.IsZero() {
			in = min(in, max(t.Sub(now), time.Millisecond))
		}
	}
	return in
}

package view

import "github.com/howdah/howdah/api/v1alpha1"

// ExplainSnapshot explains a FileShareSnapshot.
func ExplainSnapshot(w *World, snapshot *v1alpha1.FileShareSnapshot) Explanation {
	e := newExplainer(w)
	e.snapshot(snapshot)
	return e.result("FileShareSnapshot", &snapshot.ObjectMeta, summary(snapshot.Status.Conditions, v1alpha1.ConditionReady))
}

// ExplainSchedule explains a FileShareSnapshotSchedule; the cause may be its newest snapshot.
func ExplainSchedule(w *World, schedule *v1alpha1.FileShareSnapshotSchedule) Explanation {
	e := newExplainer(w)
	if reasonOf(schedule.Status.Conditions, v1alpha1.ConditionReady) == v1alpha1.ReasonSnapshotNotReady {
		for i := range w.Snapshots {
			s := &w.Snapshots[i]
			if s.Namespace == schedule.Namespace && s.Labels[v1alpha1.SnapshotScheduleLabel] == schedule.Name && s.Status.ReadyTime == nil {
				e.snapshot(s)
			}
		}
	}
	e.conditions("FileShareSnapshotSchedule", &schedule.ObjectMeta, schedule.Status.Conditions, v1alpha1.ConditionReady)
	return e.result("FileShareSnapshotSchedule", &schedule.ObjectMeta, summary(schedule.Status.Conditions, v1alpha1.ConditionReady))
}

func (e *explainer) snapshot(snapshot *v1alpha1.FileShareSnapshot) {
	if share := e.w.FileShare(snapshot.Namespace, snapshot.Spec.FileShareRef.Name); share != nil &&
		reasonOf(snapshot.Status.Conditions, v1alpha1.ConditionReady) == v1alpha1.ReasonWaitingForShare {
		e.fileShare(share)
	}
	e.conditions("FileShareSnapshot", &snapshot.ObjectMeta, snapshot.Status.Conditions, v1alpha1.ConditionReady)
}

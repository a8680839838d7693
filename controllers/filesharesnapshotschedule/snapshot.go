package filesharesnapshotschedule

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// nameTime is the time in a snapshot's name: UTC, so that names sort, and are unique when a time of day comes twice.
const nameTime = "2006-01-02-1504"

// snapshotFor is the snapshot for a time of the schedule. It has no owner reference, so it stays when the schedule is
// deleted. A premature snapshot (isPremature) may have the name already; then this one gets another.
func snapshotFor(o *observed, at time.Time) *v1alpha1.FileShareSnapshot {
	schedule, name := o.schedule, o.schedule.Name+"-"+at.UTC().Format(nameTime)
	if slices.ContainsFunc(o.snapshots, func(s *v1alpha1.FileShareSnapshot) bool { return s.Name == name && isPremature(s) }) {
		name += "-2"
	}
	return &v1alpha1.FileShareSnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   schedule.Namespace,
			Name:        name,
			Labels:      map[string]string{v1alpha1.SnapshotScheduleLabel: schedule.Name},
			Annotations: map[string]string{v1alpha1.ScheduledTimeAnnotation: at.UTC().Format(time.RFC3339)},
		},
		Spec: v1alpha1.FileShareSnapshotSpec{FileShareRef: schedule.Spec.FileShareRef},
	}
}

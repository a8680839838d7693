package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// SetSummary sets the condition that sums up an object, and Stalled or Reconciling: Stalled if the user must act
// (v1alpha1.NeedsUser), otherwise Reconciling; neither if the summary holds or the user has suspended the object.
func SetSummary(into *[]metav1.Condition, generation int64, now time.Time, summary metav1.Condition) bool {
	if summary.Type == v1alpha1.ConditionReady {
		summary.Status = readiness(meta.FindStatusCondition(*into, summary.Type), generation, summary)
	}
	changed := Set(into, generation, now, summary)
	holds := summary.Status == metav1.ConditionTrue
	stalled := !holds && v1alpha1.NeedsUser(summary.Reason)
	changed = setWhile(into, generation, now, stalled, v1alpha1.ConditionStalled, summary) || changed
	return setWhile(into, generation, now, !holds && !stalled && summary.Reason != v1alpha1.ReasonSuspended, v1alpha1.ConditionReconciling, summary) || changed
}

// setWhile sets a condition while it is true, and removes it otherwise.
func setWhile(into *[]metav1.Condition, generation int64, now time.Time, is bool, conditionType string, summary metav1.Condition) bool {
	if !is {
		return meta.RemoveStatusCondition(into, conditionType)
	}
	return Set(into, generation, now, True(conditionType, summary.Reason, summary.Message))
}

// readiness is the status of Ready. While something is made or changed it is Unknown, because waiting is no failure. It
// is False if the user must act, or if something that was served no longer is.
func readiness(before *metav1.Condition, generation int64, now metav1.Condition) metav1.ConditionStatus {
	switch {
	case now.Status == metav1.ConditionTrue:
		return metav1.ConditionTrue
	case v1alpha1.NeedsUser(now.Reason), now.Reason == v1alpha1.ReasonDeleting:
		return metav1.ConditionFalse
	case before == nil, v1alpha1.IsChange(now.Reason):
		return metav1.ConditionUnknown
	case before.Status == metav1.ConditionTrue && before.ObservedGeneration == generation:
		return metav1.ConditionFalse // an outage begins
	case before.Status == metav1.ConditionFalse && !v1alpha1.NeedsUser(before.Reason):
		return metav1.ConditionFalse // it lasts
	}
	return metav1.ConditionUnknown
}

// IsStalled reports whether nothing will happen until the user acts.
func IsStalled(conditions []metav1.Condition) bool {
	return IsTrue(conditions, v1alpha1.ConditionStalled)
}

package conditions

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// News is worth an event.
type News struct {
	// Type is that of the event.
	Type            string
	Reason, Message string
}

// NewsBetween returns the changes between two states of an object's conditions that deserve an event, one for each
// fact: something needs the user, stopped working, or works (again). A changed message alone is progress, not news. A
// summary that repeats one of its parts makes no event.
func NewsBetween(before, after []metav1.Condition) []News {
	var news []News
	for _, c := range after {
		if kind := newsOf(before, after, c); kind != "" {
			news = append(news, News{kind, c.Reason, c.Message})
		}
	}
	return news
}

func newsOf(before, after []metav1.Condition, c metav1.Condition) string {
	old := meta.FindStatusCondition(before, c.Type)
	was := metav1.ConditionUnknown
	if old != nil {
		was = old.Status
	}
	switch {
	case c.Type == v1alpha1.ConditionReconciling || c.Type == v1alpha1.ConditionStalled || c.Type == v1alpha1.ConditionPaused:
		return "" // they repeat the summary, or a request of the user
	case old != nil && was == c.Status && old.Reason == c.Reason:
		return ""
	case isSummary(c.Type) && c.Reason != v1alpha1.ReasonReady && repeatsPart(after, c):
		return ""
	case c.Status == metav1.ConditionTrue && isSummary(c.Type) && was != metav1.ConditionTrue:
		return corev1.EventTypeNormal
	case c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.ReasonReady && !isSummary(c.Type):
		return corev1.EventTypeWarning // a caveat
	case c.Status != metav1.ConditionTrue && v1alpha1.NeedsUser(c.Reason):
		return corev1.EventTypeWarning
	case was == metav1.ConditionTrue && c.Status == metav1.ConditionFalse && !isSummary(c.Type) &&
		old.ObservedGeneration == c.ObservedGeneration && !v1alpha1.IsChange(c.Reason):
		return corev1.EventTypeWarning // an outage
	case c.Reason == v1alpha1.ReasonDeleting:
		return corev1.EventTypeNormal
	}
	return ""
}

func isSummary(conditionType string) bool {
	return conditionType == v1alpha1.ConditionReady || conditionType == v1alpha1.JobSucceeded
}

// repeatsPart reports whether another condition has the summary's reason. That one makes the event.
func repeatsPart(all []metav1.Condition, summary metav1.Condition) bool {
	return slices.ContainsFunc(all, func(c metav1.Condition) bool {
		return c.Type != summary.Type && c.Reason == summary.Reason &&
			c.Type != v1alpha1.ConditionReconciling && c.Type != v1alpha1.ConditionStalled
	})
}

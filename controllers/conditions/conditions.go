package conditions

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/printable"
)

// maxMessage is the maximum size of a message in bytes. The API allows 32768, but users do not read that much, and
// every change is sent to every watcher.
const maxMessage = 2048

// True returns a condition that holds.
func True(conditionType, reason, message string) metav1.Condition {
	return condition(conditionType, metav1.ConditionTrue, reason, message)
}

// False returns a condition that does not hold.
func False(conditionType, reason, message string) metav1.Condition {
	return condition(conditionType, metav1.ConditionFalse, reason, message)
}

// Unknown returns a condition whose status is not known yet.
func Unknown(conditionType, reason, message string) metav1.Condition {
	return condition(conditionType, metav1.ConditionUnknown, reason, message)
}

func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: Shown(message, maxMessage)}
}

// Set writes conditions into a status and reports whether anything changed. generation is that of the object. The
// transition time is set to now only if the status of the condition changes, so a pass without changes writes nothing.
func Set(into *[]metav1.Condition, generation int64, now time.Time, found ...metav1.Condition) bool {
	changed := false
	for _, c := range found {
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(now)
		changed = meta.SetStatusCondition(into, c) || changed
	}
	return changed
}

// SetWithReady sets the conditions, and the condition Ready as their summary, in the given order (see Summarize).
func SetWithReady(into *[]metav1.Condition, generation int64, now time.Time, found ...metav1.Condition) bool {
	changed := Set(into, generation, now, found...)
	types := make([]string, 0, len(found))
	for _, c := range found {
		types = append(types, c.Type)
	}
	return SetSummary(into, generation, now, Summarize(v1alpha1.ConditionReady, found, types...)) || changed
}

// Worst reduces several findings to one condition of the given type. The order is: findings that need the user, other
// False ones, Unknown, True; among equals the first one counts. Without findings the result is Unknown, Pending.
func Worst(conditionType string, findings ...metav1.Condition) metav1.Condition {
	if len(findings) == 0 {
		return Unknown(conditionType, v1alpha1.ReasonPending, "not checked yet")
	}
	worst := findings[0]
	for _, f := range findings[1:] {
		if badness(f) > badness(worst) {
			worst = f
		}
	}
	return condition(conditionType, worst.Status, worst.Reason, worst.Message)
}

// Summarize is the condition of the given type that sums up the conditions of the listed types, the most important
// first. A type that is missing counts as Unknown. If all hold the result is True, with reason Ready or the first
// caveat; otherwise it is the worst. It does not repeat messages of True conditions, so that their changes do not
// change the summary.
func Summarize(conditionType string, conditions []metav1.Condition, types ...string) metav1.Condition {
	var findings, caveats []metav1.Condition
	for _, t := range types {
		found := meta.FindStatusCondition(conditions, t)
		switch {
		case found == nil:
			findings = append(findings, Unknown(t, v1alpha1.ReasonPending, t+": not checked yet"))
		case found.Status != metav1.ConditionTrue:
			findings = append(findings, condition(t, found.Status, found.Reason, t+": "+found.Message))
		case found.Reason != v1alpha1.ReasonReady:
			caveats = append(caveats, *found)
		}
	}
	switch {
	case len(findings) > 0 || len(types) == 0:
		return Worst(conditionType, findings...)
	case len(caveats) > 0:
		return True(conditionType, caveats[0].Reason, caveats[0].Message)
	}
	return True(conditionType, v1alpha1.ReasonReady, "everything is as specified")
}

// IsTrue reports whether the condition of the given type exists and is True.
func IsTrue(conditions []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionTrue(conditions, conditionType)
}

// IsFalse reports whether the condition of the given type exists and is False.
func IsFalse(conditions []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionFalse(conditions, conditionType)
}

// Message is the message of the condition of the given type, "" if it is missing.
func Message(conditions []metav1.Condition, conditionType string) string {
	if found := meta.FindStatusCondition(conditions, conditionType); found != nil {
		return found.Message
	}
	return ""
}

// Reason is the reason of the condition of the given type, "" if it is missing.
func Reason(conditions []metav1.Condition, conditionType string) string {
	if found := meta.FindStatusCondition(conditions, conditionType); found != nil {
		return found.Reason
	}
	return ""
}

func badness(c metav1.Condition) int {
	switch {
	case c.Status == metav1.ConditionTrue:
		return 0
	case c.Status == metav1.ConditionUnknown:
		return 1
	case !v1alpha1.NeedsUser(c.Reason):
		return 2
	}
	return 3
}

// Shown returns a text for a condition or an event: without characters that control terminals, and at most limit bytes.
// Every message goes through it.
func Shown(text string, limit int) string { return Cut(printable.Text(text), limit) }

// Cut cuts a text to at most limit bytes, at a rune boundary, and marks the cut.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const more = " …"
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}

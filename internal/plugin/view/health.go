package view

import (
	"fmt"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/plugin/text"
)

// Health is how an object is, in one word.
type Health string

// Healths.
const (
	// Well: everything that the spec asks for is there.
	Well Health = "Ready"
	// Busy: something is in progress; no action is needed.
	Busy Health = "Progressing"
	// Broken: it should serve and does not.
	Broken Health = "NotReady"
	// Stuck: it needs an action of a user.
	Stuck Health = "Stalled"
	// Paused: the operator does not change it.
	Paused Health = "Paused"
	// Unseen: the operator has not seen it.
	Unseen Health = "Unknown"
)

func (h Health) style() text.Style {
	switch h {
	case Well:
		return text.Good
	case Busy, Paused, Unseen:
		return text.Busy
	}
	return text.Bad
}

// Condition is how an object is and why, by the condition that sums it up.
type Condition struct {
	Health  Health `json:"health"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// summary is the health of an object by its condition Ready, or Succeeded for a job.
func summary(all []metav1.Condition, kind string) Condition {
	c := condition(all, kind)
	if c == nil {
		return Condition{Health: Unseen, Message: "the operator has not seen it yet"}
	}
	is := Condition{Health: Broken, Reason: c.Reason, Message: c.Message}
	switch {
	case c.Status == metav1.ConditionTrue:
		is.Health = Well
	case condition(all, v1alpha1.ConditionStalled) != nil || v1alpha1.NeedsUser(c.Reason):
		is.Health = Stuck
	case c.Status == metav1.ConditionUnknown:
		is.Health = Busy
	}
	if paused := condition(all, v1alpha1.ConditionPaused); paused != nil && is.Health != Well {
		is.Health = Paused
	}
	return is
}

// words are the health, with reason and message unless it is Ready without a caveat.
func (c Condition) words() []text.Span {
	spans := []text.Span{text.S(c.Health.style(), string(c.Health))}
	if c.Health == Well && (c.Reason == v1alpha1.ReasonReady || c.Reason == v1alpha1.ReasonCompleted) {
		return spans
	}
	return append(spans, text.S(text.Plain, strings.TrimPrefix(c.Reason+": "+c.Message, ": ")))
}

// bytes is a size as people read it: 6.1Gi.
func bytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d", n)
	}
	exponent := int(math.Log2(float64(n)) / 10)
	value := float64(n) / math.Pow(1024, float64(exponent))
	if value >= 999.5 { // %.3g would print an exponent.
		return fmt.Sprintf("%.0f%ci", value, units[exponent-1])
	}
	return fmt.Sprintf("%.3g%ci", value, units[exponent-1])
}

// Space is how full something is, in bytes.
type Space struct {
	Used  int64 `json:"usedBytes"`
	Total int64 `json:"totalBytes"`
}

// words are like "6.1Gi of 1Ti (1%)"; "" if the size is not known.
func (s Space) words() string {
	if s.Total <= 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s used (%d%%)", bytes(s.Used), bytes(s.Total), s.Used*100/s.Total)
}

// Connections are those of NFS clients.
type Connections struct {
	Used  int32 `json:"used"`
	Limit int32 `json:"limit"`
}

func (c *Connections) words() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d connections", c.Used, c.Limit)
}

func connectionsOf(c v1alpha1.FileServerConnections) *Connections {
	if c.Used == nil {
		return nil
	}
	return &Connections{Used: *c.Used, Limit: c.Limit}
}

// age is how long ago something was, in kubectl's form; "" if that is not known.
func age(now time.Time, at metav1.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(at.Time)))
}

// plural is "1 directory", "2 directories".
func plural(n int, one string) string {
	switch {
	case n == 1:
		return "1 " + one
	case strings.HasSuffix(one, "s"):
		return fmt.Sprintf("%d %ses", n, one)
	case strings.HasSuffix(one, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(one, "y"))
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func some(words ...string) []text.Span {
	var spans []text.Span
	for _, w := range words {
		if w != "" {
			spans = append(spans, text.S(text.Plain, w))
		}
	}
	return spans
}

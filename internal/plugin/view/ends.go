package view

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/plugin/text"
)

// End is the last time that a data server stopped serving because something of it ended.
type End struct {
	v1alpha1.ServerEnd
	// Age is how long ago that was.
	Age string `json:"age"`
}

// lastEnd is what a data server reports; nil if none is known. data may be nil: users with few rights have only the
// FileServer's status, which is up to a minute older.
func lastEnd(now time.Time, reported *v1alpha1.FileServerServerStatus, data *internalv1.DataServer) *End {
	end := reported.LastEnd
	if data != nil && data.Status.LastEnd != nil {
		end = *data.Status.LastEnd
	}
	if end.EndTime == nil {
		return nil
	}
	return &End{ServerEnd: end, Age: age(now, *end.EndTime)}
}

// isOver reports whether the data server has served since.
func (e *End) isOver() bool { return e.ServedAfterMilliseconds != nil }

// words are when it ended, why, and how long it took until it served again.
func (e *End) words() []text.Span {
	style, after := text.Plain, "does not serve again yet"
	if e.isOver() {
		style = text.Faint
		after = fmt.Sprintf("served again after %.1f s", (time.Duration(*e.ServedAfterMilliseconds) * time.Millisecond).Seconds())
	}
	spans := []text.Span{text.S(style, "last end "+e.Age+" ago"), text.S(style, e.Message), text.S(style, after)}
	if count := ptr.Deref(e.Count, 0); count > 1 {
		spans = append(spans, text.S(style, fmt.Sprintf("%d ends so far", count)))
	}
	return spans
}

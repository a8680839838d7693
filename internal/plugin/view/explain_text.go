package view

import (
	"fmt"
	"strings"

	"github.com/howdah/howdah/internal/plugin/text"
)

// Text is the explanation as text, the root cause first.
func (e Explanation) Text(page text.Page) string {
	var b strings.Builder
	head := append([]text.Span{text.S(text.Strong, e.Kind+" "+e.Namespace+"/"+e.Name)}, text.S(e.Health.style(), string(e.Health)))
	head = append(head, some(e.Reason, e.Message)...)
	b.WriteString(page.Paragraph("", "  ", head...))
	if len(e.Causes) > 0 {
		b.WriteString("\n" + page.Paragraph("", "", text.S(text.Strong, "Why (root cause first)")))
		for i, c := range e.Causes {
			c.write(&b, page, i+1)
		}
	}
	if len(e.Advice) > 0 {
		b.WriteString("\n" + page.Paragraph("", "", text.S(text.Strong, "What to do")))
		for _, a := range e.Advice {
			b.WriteString(page.Paragraph("  - ", "    ", text.S(text.Plain, a)))
		}
	} else if e.Health != Well {
		b.WriteString("\n" + page.Paragraph("", "", text.S(text.Plain, "No action is needed: it continues by itself when what it waits for is ready.")))
	}
	if len(e.Hidden) > 0 {
		b.WriteString("\n" + hiddenText(page, e.Hidden))
	}
	return b.String()
}

func (c *Cause) write(b *strings.Builder, page text.Page, number int) {
	name := c.Kind + " " + c.Name
	what := c.Reason
	if c.Type != "" {
		what = c.Type + ": " + c.Reason
	}
	spans := []text.Span{text.S(text.Strong, name), text.S(text.Busy, what)}
	if c.Since != "" {
		spans = append(spans, text.S(text.Faint, "for "+c.Since))
	}
	b.WriteString(page.Paragraph(fmt.Sprintf("%3d. ", number), "     ", spans...))
	if c.Message != "" {
		b.WriteString(page.Paragraph("     ", "     ", text.S(text.Plain, c.Message)))
	}
	for _, ev := range c.Events {
		times := ""
		if ev.Count > 1 {
			times = fmt.Sprintf(" (%d times)", ev.Count)
		}
		b.WriteString(page.Paragraph("     ", "       ", text.S(text.Faint, fmt.Sprintf("event %s ago, %s%s: %s", ev.Age, ev.Reason, times, ev.Message))))
	}
}

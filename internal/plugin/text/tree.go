package text

import "strings"

// Line is a line of a tree with the lines below it.
type Line struct {
	Spans []Span
	Below []*Line
}

// NewLine is a line of spans, which are put apart by two blanks.
func NewLine(spans ...Span) *Line { return &Line{Spans: spans} }

// Add puts a line below and returns it.
func (l *Line) Add(spans ...Span) *Line {
	below := NewLine(spans...)
	l.Below = append(l.Below, below)
	return below
}

// Tree draws a line with everything below it.
func (p Page) Tree(root *Line) string {
	var b strings.Builder
	p.branch(&b, root, "", "")
	return b.String()
}

// branch draws a line: first is in front of it, rest in front of the lines that follow it.
func (p Page) branch(b *strings.Builder, l *Line, first, rest string) {
	hanging := rest + "  "
	if len(l.Below) > 0 {
		hanging = rest + "│ "
	}
	p.wrap(b, l.Spans, first, hanging)
	for i, below := range l.Below {
		if i == len(l.Below)-1 {
			p.branch(b, below, rest+"└─ ", rest+"   ")
		} else {
			p.branch(b, below, rest+"├─ ", rest+"│  ")
		}
	}
}

// Paragraph draws spans, broken at blanks; first and rest are in front of its first line and of the others.
func (p Page) Paragraph(first, rest string, spans ...Span) string {
	var b strings.Builder
	p.wrap(&b, spans, first, rest)
	return b.String()
}

// leastText is what a line has room for at least, however deep it is in a tree: a terminal wraps what is left over.
const leastText = 20

func (p Page) wrap(b *strings.Builder, spans []Span, first, rest string) {
	room := func(indent string) int { return max(p.Width-width(indent), leastText) }
	left, line := room(first), []Span{}
	end := func(indent string) {
		b.WriteString(p.paint(Span{indent, Faint}))
		for _, s := range line {
			b.WriteString(p.paint(s))
		}
		b.WriteByte('\n')
	}
	indent := first
	for _, span := range spans {
		gap := "  "
		for _, word := range strings.Fields(Clean(span.Text)) {
			if len(line) > 0 && p.Width > 0 && width(gap)+width(word) > left {
				end(indent)
				indent, left, line, gap = rest, room(rest), nil, " "
			}
			switch {
			case len(line) == 0:
				line = append(line, Span{word, span.Style})
				left -= width(word)
			case gap == " ": // A span goes on.
				line[len(line)-1].Text += gap + word
				left -= 1 + width(word)
			default:
				line = append(line, Span{gap, Plain}, Span{word, span.Style})
				left -= width(gap) + width(word)
			}
			gap = " "
		}
	}
	end(indent)
}

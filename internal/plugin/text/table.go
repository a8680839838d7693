package text

import "strings"

// Table draws rows in columns below a heading. The last column is cut where the page ends.
func (p Page) Table(heading []string, rows [][]Span) string {
	all := [][]Span{make([]Span, 0, len(heading))}
	for _, title := range heading {
		all[0] = append(all[0], Span{title, Strong})
	}
	all = append(all, rows...)
	widths := make([]int, len(heading))
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], width(Clean(cell.Text)))
		}
	}
	var b strings.Builder
	for _, row := range all {
		for len(row) > 0 && row[len(row)-1].Text == "" {
			row = row[:len(row)-1]
		}
		used := 0
		for i, cell := range row {
			text := Clean(cell.Text)
			if i == len(row)-1 {
				b.WriteString(p.paint(Span{p.cut(text, used), cell.Style}))
				break
			}
			b.WriteString(p.paint(Span{text, cell.Style}))
			b.WriteString(strings.Repeat(" ", widths[i]-width(text)+3))
			used += widths[i] + 3
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// cut is the part of a text that fits after a number of columns.
func (p Page) cut(text string, used int) string {
	room := max(p.Width-used, leastText)
	if p.Width == 0 || width(text) <= room {
		return text
	}
	return string([]rune(text)[:room-1]) + "…"
}

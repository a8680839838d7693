package text

import (
	"unicode/utf8"

	"github.com/howdah/howdah/internal/printable"
)

// Style is how a word looks with colours. No information is in a colour alone.
type Style int

// Styles.
const (
	Plain Style = iota
	// Strong is for names and headings.
	Strong
	// Faint is for explanations.
	Faint
	// Good, Busy and Bad are for health.
	Good
	Busy
	Bad
)

// escapes are SGR parameters (ECMA-48, section 8.3.117) of the 16 colours that every terminal has and lets its user choose.
var escapes = map[Style]string{Strong: "1", Faint: "2", Good: "32", Busy: "33", Bad: "31"}

// Span is a text with one style.
type Span struct {
	Text  string
	Style Style
}

// S makes a span.
func S(style Style, text string) Span { return Span{text, style} }

// Page is the place for text.
type Page struct {
	// Width is the number of columns; 0: no limit.
	Width int
	// Colour is whether styles are shown.
	Colour bool
}

// paint is a text in a style, with control characters escaped: text from a cluster must not control the terminal.
func (p Page) paint(s Span) string {
	text := Clean(s.Text)
	code := escapes[s.Style]
	if !p.Colour || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Clean is a text of one line with control characters escaped: names of directories are any that NFS clients may give, and must not
// steer a terminal.
func Clean(text string) string { return printable.Text(text) }

func width(text string) int { return utf8.RuneCountInString(text) }

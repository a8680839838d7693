package printable

import (
	"io"
	"regexp"
	"strings"
)

// sgr are the sequences that set and end a style (SGR, ECMA-48 section 8.3.117). They only change how text looks.
var sgr = regexp.MustCompile(`\x1b\[[0-9;]{0,16}m`)

// Terminal is a writer to a terminal for whole texts. It keeps lines, tabs and styles (SGR), and escapes everything else that Text escapes.
// It is the last defence: callers escape names before they add styles.
func Terminal(to io.Writer) io.Writer { return terminal{to} }

type terminal struct{ to io.Writer }

func (t terminal) Write(p []byte) (int, error) {
	if _, err := io.WriteString(t.to, Lines(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Lines is Text for several lines, with styles.
func Lines(text string) string {
	if isCleanLines(text) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body, end := strings.CutSuffix(line, "\n")
		for i, part := range strings.Split(body, "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(styled(part))
		}
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// styled escapes what is between styles.
func styled(text string) string {
	var b strings.Builder
	at := 0
	for _, found := range sgr.FindAllStringIndex(text, -1) {
		b.WriteString(Text(text[at:found[0]]))
		b.WriteString(text[found[0]:found[1]])
		at = found[1]
	}
	b.WriteString(Text(text[at:]))
	return b.String()
}

// JSONLines is a writer that applies JSON to each record; a record is one call of Write, as log handlers do.
func JSONLines(to io.Writer) io.Writer { return jsonLines{to} }

type jsonLines struct{ to io.Writer }

func (j jsonLines) Write(p []byte) (int, error) {
	if _, err := io.WriteString(j.to, JSON(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

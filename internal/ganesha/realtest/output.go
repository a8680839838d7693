package realtest

import (
	"bytes"
	"testing"
)

// lines logs what the test inside writes, line by line.
type lines struct {
	t      *testing.T
	rest   []byte
	passed bool
}

// Write is called by one goroutine: both streams are the same writer.
func (l *lines) Write(text []byte) (int, error) {
	l.rest = append(l.rest, text...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(text), nil
		}
		l.rest = rest
		l.passed = l.passed || bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("--- PASS: ")) && bytes.Contains(line, []byte("/"))
		l.t.Logf("inside: %s", line)
	}
}

package realtest

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// keptLines is how much of what a failed test inside wrote is repeated at the end.
const keptLines = 8

var (
	// speaker is the line above what a test says.
	speaker = regexp.MustCompile(`^=== (?:RUN|NAME|CONT|PAUSE) +(\S+)`)
	verdict = regexp.MustCompile(`^ *--- (PASS|FAIL): (\S+)`)
)

// lines logs what the test inside writes, line by line.
type lines struct {
	t       *testing.T
	rest    []byte
	passed  bool
	speaker string
	wrote   map[string][]string
	failed  []string
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
		l.take(string(line))
		l.t.Logf("inside: %s", line)
	}
}

func (l *lines) take(line string) {
	if match := speaker.FindStringSubmatch(line); match != nil {
		l.speaker = match[1]
		return
	}
	if match := verdict.FindStringSubmatch(line); match != nil {
		l.speaker = ""
		l.passed = l.passed || match[1] == "PASS" && strings.Contains(match[2], "/")
		if match[1] == "FAIL" {
			l.failed = append(l.failed, match[2])
		}
		return
	}
	if l.wrote == nil {
		l.wrote = map[string][]string{}
	}
	wrote := append(l.wrote[l.speaker], line)
	l.wrote[l.speaker] = wrote[max(0, len(wrote)-keptLines):]
}

// failures are the tests that failed inside, each with the last lines that it wrote: go test shows verdicts long after the words, and a log
// that is cut in the middle has none of these.
func (l *lines) failures() string {
	var out strings.Builder
	for _, name := range l.failed {
		out.WriteString("failed inside: " + name + "\n")
		for _, line := range l.wrote[name] {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

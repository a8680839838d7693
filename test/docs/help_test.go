package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// What make help prints is a line for each of these in the Makefile; make help-all has those with ##+, too.
var (
	section = regexp.MustCompile(`^##@ (.+)$`)
	target  = regexp.MustCompile(`^([a-z0-9-]+):.*?##(\+?) (.+)$`)
	phony   = regexp.MustCompile(`^\.PHONY: ([a-z0-9-]+)$`)
)

func TestHelpFitsAScreen(t *testing.T) {
	const rows, columns = 24, 120
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	shown, described, all := 0, map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if section.MatchString(line) {
			shown++
		}
		if found := phony.FindStringSubmatch(line); found != nil {
			all[found[1]] = true
		}
		found := target.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		described[found[1]] = true
		if width := len("  make ") + 18 + utf8.RuneCountInString(found[3]); width > columns {
			t.Errorf("make help's line of %s has %d columns, more than %d", found[1], width, columns)
		}
		if found[2] == "" {
			shown++
		}
	}
	if shown > rows-1 || shown < 10 {
		t.Errorf("make help has %d lines: more than a screen of %d and its prompt; mark what is needed less with ##+", shown, rows)
	}
	for name := range all {
		if !described[name] {
			t.Errorf("make %s has no ## that says what it does", name)
		}
	}
}

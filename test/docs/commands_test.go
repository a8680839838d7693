package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ranBy is the comment before a block of commands that something runs: the file that does, and in parentheses words of that
// file that show it. Blocks that nothing runs say why: <!-- not run: … -->.
var ranBy = regexp.MustCompile(`^run by: (\S+) \((.+)\)$`)

// generated pages have their commands from elsewhere.
var generated = map[string]string{"charts/howdah/README.md": "README.md.gotmpl beside it"}

func TestCommandsSayWhoRunsThem(t *testing.T) {
	run, not := 0, 0
	for file, page := range pages(t) {
		for _, block := range page.Blocks {
			if !isCommands(block) || generated[file] != "" {
				continue
			}
			if reason, found := strings.CutPrefix(block.Marker, "not run: "); found && strings.TrimSpace(reason) != "" {
				not++
				continue
			}
			by := ranBy.FindStringSubmatch(block.Marker)
			if by == nil {
				t.Errorf("%s:%d: commands without <!-- run by: FILE (WORDS OF IT) --> or <!-- not run: WHY --> before them:\n%s", file, block.Line, block.Text)
				continue
			}
			run++
			text, err := os.ReadFile(filepath.Join(root, by[1]))
			if err != nil {
				t.Errorf("%s:%d: %v", file, block.Line, err)
			} else if !strings.Contains(string(text), by[2]) {
				t.Errorf("%s:%d: %s does not have %q", file, block.Line, by[1], by[2])
			}
		}
	}
	t.Logf("%d blocks of commands are run by something, %d are not", run, not)
	if run == 0 || not == 0 {
		t.Error("no block was found: the test looks at nothing")
	}
}

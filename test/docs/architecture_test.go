package docs

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const architecture = "docs/contribute/architecture.md"

// Files and folders that the page names exist, and each of its six paths passes some.
func TestTheArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, architecture))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, name := range spans(string(text)) {
		if !isRepositoryPath(name) {
			continue
		}
		named++
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
			t.Errorf("%s names %s, which does not exist", architecture, name)
		}
	}
	if named < 40 {
		t.Errorf("%s names %d files and folders, want at least 40: the test looks at nothing", architecture, named)
	}
	rows, err := Table(filepath.Join(root, architecture), "path")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 6 {
		t.Errorf("%d paths, want 6", len(rows))
	}
	for _, row := range rows {
		files := slices.DeleteFunc(spans(row[1]), func(name string) bool { return !isRepositoryPath(name) })
		t.Logf("%s: %d files in %d packages", row[0], len(files), len(packagesOf(files)))
		if len(files) < 3 {
			t.Errorf("path %q names %d files, want at least 3", row[0], len(files))
		}
	}
}

// isRepositoryPath reports whether a code span is a path of this repository: one that begins with a folder of Go code.
func isRepositoryPath(name string) bool {
	first, _, isPath := strings.Cut(name, "/")
	return isPath && slices.Contains([]string{"api", "cmd", "controllers", "internal"}, first) && !strings.Contains(name, "<")
}

func packagesOf(files []string) map[string]bool {
	packages := map[string]bool{}
	for _, file := range files {
		packages[path.Dir(file)] = true
	}
	return packages
}

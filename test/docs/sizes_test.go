package docs

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Limits of what a maintainer has to read.
const (
	// readmeWords fit three screens.
	readmeWords = 1000
	// packageFiles is how many files without tests a package may have.
	packageFiles = 30
	// fileLines is how many lines a file without tests may have (CONTRIBUTING.md). API types have more: most are comments.
	fileLines, apiLines = 400, 450
)

// TestSizes prints how much there is to read, and keeps it bounded: go test ./test/docs -run 'TestSizes|TestPlainEnglish|TestParagraphs' -v.
func TestSizes(t *testing.T) {
	count := func(file string) int {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		return len(strings.Fields(string(text)))
	}
	total, byFolder, longest := 0, map[string]int{}, ""
	for file := range pages(t) {
		if !strings.HasPrefix(file, "docs/") || dated.MatchString(file) {
			continue
		}
		n := count(file)
		total += n
		byFolder[path.Dir(file)] += n
		if longest == "" || n > count(longest) {
			longest = file
		}
	}
	readme := count("README.md")
	t.Logf("README.md: %d words", readme)
	t.Logf("docs: %d words without design notes and reference, by folder %v", total, byFolder)
	t.Logf("the longest page: %s, %d words", longest, count(longest))
	if readme > readmeWords {
		t.Errorf("README.md has %d words, more than %d", readme, readmeWords)
	}
	checkPackages(t)
}

// checkPackages prints the largest package and the longest file, without tests and generated files.
func checkPackages(t *testing.T) {
	t.Helper()
	tracked, err := exec.Command("git", "-C", root, "ls-files", "-z", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, largest, longest, lines := map[string]int{}, "", "", 0
	for file := range strings.SplitSeq(strings.TrimRight(string(tracked), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil || strings.HasSuffix(file, "_test.go") || strings.Contains(string(text), "DO NOT EDIT") {
			continue // Or deleted, but not committed yet.
		}
		files[path.Dir(file)]++
		if largest == "" || files[path.Dir(file)] > files[largest] {
			largest = path.Dir(file)
		}
		n := strings.Count(string(text), "\n")
		if n > lines {
			longest, lines = file, n
		}
		limit := fileLines
		if strings.HasPrefix(file, "api/") {
			limit = apiLines
		}
		if n > limit {
			t.Errorf("%s has %d lines, more than %d", file, n, limit)
		}
	}
	t.Logf("the largest package: %s, %d files; the longest file: %s, %d lines", largest, files[largest], longest, lines)
	if files[largest] > packageFiles {
		t.Errorf("package %s has %d files, more than %d", largest, files[largest], packageFiles)
	}
	if len(files) < 50 {
		t.Errorf("%d packages, want at least 50: the test looks at nothing", len(files))
	}
}

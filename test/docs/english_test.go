package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// written are the ends of names of files that people write.
var written = []string{".go", ".md", ".gotmpl", ".yaml", ".yml", ".sh", ".txt", ".tpl", ".py", ".json", "Makefile", "Dockerfile"}

// unchecked are files that have banned words for a reason: generated ones, notes that keep their first wording, patches
// for other projects, licenses, the passwd file of an image (it has the user nobody), and the list of words itself.
var unchecked = regexp.MustCompile(`(^|/)(zz_generated[^/]*|go\.(mod|sum)|LICENSE)$|(^|/)(applyconfiguration|testdata/fuzz)/|^docs/design/|^internal/ganesha/build/patches/|^hack/lab/internal/cache/baseimages\.go$|^test/docs/(words\.txt|english_test\.go)$`)

// address is a link to elsewhere, whose words are not ours.
var address = regexp.MustCompile(`https?://[^\s)"]+`)

// TestPlainEnglish looks for the words of words.txt in the folders of checked.txt.
func TestPlainEnglish(t *testing.T) {
	banned := regexp.MustCompile(`(?i)\b(` + strings.Join(lines(t, "words.txt"), "|") + `)\b`)
	checked := lines(t, "checked.txt")
	tracked, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for file := range strings.SplitSeq(strings.TrimRight(string(tracked), "\x00"), "\x00") {
		if !slices.ContainsFunc(checked, func(of string) bool { return of == "." || file == of || strings.HasPrefix(file, of+"/") }) ||
			!slices.ContainsFunc(written, func(end string) bool { return strings.HasSuffix(file, end) }) || unchecked.MatchString(file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if os.IsNotExist(err) {
			continue // Deleted, but not committed yet.
		} else if err != nil {
			t.Fatal(err)
		}
		looked++
		if bytes.Contains(text, []byte("DO NOT EDIT")) && path.Ext(file) == ".go" {
			continue
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			if file == "CHANGELOG.md" && strings.HasPrefix(line, "|") {
				continue // Tables there have old names.
			}
			if found := banned.FindString(words(line)); found != "" {
				t.Errorf("%s:%d: %q is a word that we do not use (test/docs/words.txt):\n\t%s", file, number, found, strings.TrimSpace(line))
			}
		}
	}
	t.Logf("%d files", looked)
	if looked < len(checked) {
		t.Error("too few files: checked.txt names what is not there")
	}
}

var (
	hump     = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	initials = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// words splits the identifiers of a line.
func words(line string) string {
	line = address.ReplaceAllString(line, "")
	line = hump.ReplaceAllString(line, "$1 $2")
	line = initials.ReplaceAllString(line, "$1 $2")
	return strings.ReplaceAll(line, "_", " ")
}

func TestWordsAreFoundInIdentifiers(t *testing.T) {
	banned := regexp.MustCompile(`(?i)\b(` + strings.Join(lines(t, "words.txt"), "|") + `)\b`)
	for line, want := range map[string]string{
		"func patienceOf(x int)":            "patience",
		"HOWDAH_E2E_PATIENCE=1":             "PATIENCE",
		"TestStrangersAreRefused":           "Strangers",
		"lastTold time.Time":                "Told",
		"kind: frontDoor":                   "front Door",
		"the front-door pods":               "front-door",
		"an untold number of doors":         "",
		"https://example.com/patience/said": "",
		"it impatiently whispers":           "",
	} {
		if got := banned.FindString(words(line)); got != want {
			t.Errorf("%q: found %q, want %q", line, got, want)
		}
	}
}

// lines are those of a list beside this file, without comments.
func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}

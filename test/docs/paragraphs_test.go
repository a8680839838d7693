package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// longest is how many words a paragraph, an item of a list or a cell of a table may have.
const longest = 120

// dated are pages that keep what they are: notes of their day, and generated ones.
var dated = regexp.MustCompile(`^docs/(design|reference)/|^charts/howdah/README\.md$`)

func TestParagraphsAreShort(t *testing.T) {
	most, looked := 0, 0
	for file := range pages(t) {
		if dated.MatchString(file) || !isUserPage(file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paragraphs(string(text)) {
			looked++
			count := len(strings.Fields(p.text))
			most = max(most, count)
			if count > longest {
				t.Errorf("%s:%d: a paragraph of %d words, more than %d: %.60s…", file, p.line, count, longest, p.text)
			}
		}
	}
	t.Logf("%d paragraphs, the longest has %d words", looked, most)
	if looked < 100 {
		t.Error("too few paragraphs were found: the test looks at nothing")
	}
}

// isUserPage tells whether a page is of docs/ or at the root of the repository.
func isUserPage(file string) bool {
	return strings.HasPrefix(file, "docs/") || !strings.Contains(file, "/")
}

// Every page of docs begins with a sentence that says what it is for.
func TestPagesBeginWithWhatTheyAreFor(t *testing.T) {
	for file := range pages(t) {
		if dated.MatchString(file) || !isUserPage(file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		first := paragraphs(string(text))
		if len(first) < 2 || !strings.HasPrefix(first[0].text, "# ") || strings.HasPrefix(first[1].text, "#") || strings.HasPrefix(first[1].text, "|") {
			t.Errorf("%s does not begin with a title and a paragraph", file)
		}
	}
}

type paragraph struct {
	line int
	text string
}

// begins is a line that is a paragraph of its own or begins one without an empty line before it.
var begins = regexp.MustCompile(`^\s*(#{1,6} |[-*+] |\d+[.)] )`)

// paragraphs are those of Markdown: prose, headings, items of lists, and each cell of a table. Code is none.
func paragraphs(text string) []paragraph {
	var all []paragraph
	closing, open := "", false
	number := 0
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		if found := fence.FindStringSubmatch(line); closing == "" && found != nil {
			closing, open = found[2], false
			continue
		}
		switch {
		case closing != "":
			if strings.HasPrefix(trimmed, closing) {
				closing = ""
			}
		case trimmed == "" || strings.HasPrefix(trimmed, "<!--"):
			open = false
		case !open && strings.HasPrefix(line, "    ") && !begins.MatchString(line):
		case strings.HasPrefix(trimmed, "|"):
			for cell := range strings.SplitSeq(strings.Trim(trimmed, "|"), "|") {
				all = append(all, paragraph{number, strings.TrimSpace(cell)})
			}
			open = false
		case !open || begins.MatchString(line):
			all = append(all, paragraph{number, trimmed})
			open = !strings.HasPrefix(trimmed, "#")
		default:
			all[len(all)-1].text += " " + trimmed
		}
	}
	return all
}

func TestParagraphsAreFound(t *testing.T) {
	got := paragraphs("# Title\nFirst\nand more\n\n- item\n  goes on\n- other\n\n| a | b c |\n|---|---|\n\n```\ncode\n```\nlast\n")
	want := []string{"# Title", "First and more", "- item goes on", "- other", "a", "b c", "---", "---", "last"}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i].text != want[i] {
			t.Errorf("%d: %q, want %q", i, got[i].text, want[i])
		}
	}
}

// The changelog is for users: an entry has at most two lines of the text that they read.
func TestEntriesOfTheChangelogAreShort(t *testing.T) {
	const columns = 200
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries := 0
	for _, p := range paragraphs(string(text)) {
		if !strings.HasPrefix(p.text, "- ") {
			continue
		}
		entries++
		if shown := linked.ReplaceAllString(p.text, "$1"); len(shown) > columns {
			t.Errorf("CHANGELOG.md:%d: an entry of %d characters, more than %d (two lines): %.60s…", p.line, len(shown), columns, p.text)
		}
	}
	if entries < 10 {
		t.Error("too few entries were found")
	}
}

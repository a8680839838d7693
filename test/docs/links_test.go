package docs

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// pages are all of the repository, by their files.
func pages(t *testing.T) map[string]Page {
	t.Helper()
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Page{}
	for _, file := range files {
		if all[file], err = Read(root, file); err != nil {
			t.Fatal(err)
		}
	}
	if _, found := all["docs/README.md"]; !found {
		t.Fatal("docs/README.md was not found: not the root of the repository")
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for file, page := range all {
		for _, link := range page.Links {
			if strings.Contains(link.Target, "://") || strings.HasPrefix(link.Target, "mailto:") {
				continue
			}
			target, anchor, _ := strings.Cut(link.Target, "#")
			to := file
			if target != "" {
				to = path.Join(path.Dir(file), target)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil {
				t.Errorf("%s:%d: nothing at %s", file, link.Line, link.Target)
				continue
			}
			if anchor == "" {
				continue
			}
			if other, isPage := all[to]; !isPage || !other.Anchors[anchor] {
				t.Errorf("%s:%d: %s has no heading for #%s", file, link.Line, to, anchor)
			}
		}
	}
}

// Every page of docs is found from docs/README.md, but for design notes, which their folder lists.
func TestPagesAreListed(t *testing.T) {
	all := pages(t)
	listed := map[string]bool{}
	for _, link := range all["docs/README.md"].Links {
		target, _, _ := strings.Cut(link.Target, "#")
		listed[path.Join("docs", target)] = true
	}
	for file := range all {
		if strings.HasPrefix(file, "docs/") && file != "docs/README.md" && !listed[file] && !listed[path.Dir(file)] {
			t.Errorf("docs/README.md does not link to %s", file)
		}
	}
}

package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePageShowsTheOutputOfThePlugin(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "use", "plugin.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"status-well.txt", "explain-share.txt", "tree.txt", "clients.txt", "top.txt", "plan-mkdir.txt"} {
		shown, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), string(shown)) {
			t.Errorf("docs/use/plugin.md does not have the text of testdata/%s: copy it there", name)
		}
	}
}

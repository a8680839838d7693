package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a small one.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for file, text := range files {
		if err := write(filepath.Join(root, filepath.FromSlash(file)), text); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPagesAreStagedWithTheirLinks(t *testing.T) {
	root := repository(t, map[string]string{
		"README.md":            "# Top\n[docs](docs/README.md) [a](docs/a.md#b) [folder](config) [file](config/x.yaml) [lab](lab) [else](https://example.com/x.md)\n",
		"docs/README.md":       "# Docs\n[up](../README.md) ![p](p.svg) [self](#docs)\n\n## Start\n\n- [First](a.md): a\n- [Notes](notes)\n\n## Use\n\n- [Again](a.md)\n- [Lab](../lab/README.md)\n",
		"docs/a.md":            "# A\n\n## b\n\n## b\n\n<!-- run by: hack/x_y.sh (y) -->\n\n```\n# [no](a.md)\n```\n<!-- not run: <why> -->\n",
		"docs/notes/one.md":    "# One `note`\n",
		"docs/p.svg":           "<svg/>",
		"config/x.yaml":        "a: b\n",
		"config/sub/y.go":      "package y\n",
		"lab/README.md":        "# Lab\n",
		"hack/site/mkdocs.yml": "site_name: Howdah\n",
	})
	into := t.TempDir()
	if err := stage(root, into); err != nil {
		t.Fatal(err)
	}
	for file, wants := range map[string][]string{
		"content/README.md": {
			"title: \"Top\"", "[docs](docs/README.md)", "[a](docs/a.md#b)", "[folder](config/files.md)", "[file](config/x.yaml.txt)", "[lab](lab/README.md)",
			"[else](https://example.com/x.md)",
		},
		"content/docs/README.md":      {"[up](../README.md)", "![p](p.svg)", "[self](#docs)"},
		"content/docs/a.md":           {"## b { #b }", "## b { #b-1 }", "Run by hack/x\\_y.sh\n{: .ran }", "\n# [no](a.md)\n", "Not run by a test: &lt;why&gt;"},
		"content/config/files.md":     {"[sub/](sub/files.md)", "[x.yaml](x.yaml.txt)"},
		"content/config/sub/files.md": {"[y.go](y.go.txt)"},
		"content/config/x.yaml.txt":   {"a: b"},
		"content/docs/p.svg":          {"<svg/>"},
		"mkdocs.yml": {`site_name: Howdah
docs_dir: content
nav:
  - Home: README.md
  - "Start":
      - "All pages": docs/README.md
      - "First": docs/a.md
      - "Notes":
          - "One note": docs/notes/one.md
  - "Use":
      - "Lab": lab/README.md
`},
	} {
		text, err := os.ReadFile(filepath.Join(into, filepath.FromSlash(file)))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s does not have %s:\n%s", file, want, text)
			}
		}
	}
}

func TestListsAreIndentedByFour(t *testing.T) {
	for _, c := range []struct{ name, from, want string }{
		{"a list after a paragraph", "text\n- a\n- b", "text\n\n- a\n- b"},
		{"a list in a list", "- a\n  - b\n    - c\n- d", "- a\n    - b\n        - c\n- d"},
		{"a block in an item", "1. a\n\n   ```\n   x\n     y\n   ```\n2. b", "1. a\n\n    ```\n    x\n      y\n    ```\n\n2. b"},
		{"lines of an item", "- a\n  more\n\n  and more", "- a\n    more\n\n    and more"},
		{"an indented block", "text\n\n    a:\n    - b\n      c: d\n\nend", "text\n\n    a:\n    - b\n      c: d\n\nend"},
		{"a fenced block", "```\n- a\n  - b\n```", "```\n- a\n  - b\n```"},
	} {
		if got := indented(c.from); got != c.want {
			t.Errorf("%s:\n%s\nis, but should be:\n%s", c.name, got, c.want)
		}
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	good := map[string]string{
		"index.html": `<h2 id="here"></h2><a href="b/c.html#x">c</a><a href="#here">h</a><code>href="nowhere"</code><img src="p.svg"><a href="https://example.com">e</a>`,
		"b/c.html":   `<h2 id="x"></h2><a href="../index.html">up</a>`,
		"p.svg":      "<svg/>",
	}
	if pages, links, err := check(repository(t, good)); err != nil || pages != 2 || links != 5 {
		t.Errorf("%d pages, %d links: %v", pages, links, err)
	}
	bad := map[string]string{"index.html": `<a href="none.html">n</a><a href="#gone">g</a><a href="b">folder</a><script async src="https://cdn.example.com/x.js"></script>`, "b/c.html": ""}
	_, _, err := check(repository(t, bad))
	for _, want := range []string{"nothing at none.html", "no heading for #gone", "nothing at b", "loads https://cdn.example.com/x.js"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not among %v", want, err)
		}
	}
	if _, _, err := check(t.TempDir()); err == nil {
		t.Error("a site without a page is good")
	}
}

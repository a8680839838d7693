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
		"README.md":       "# Top\n[docs](docs/README.md) [a](docs/a.md#b) [folder](config) [file](config/x.yaml) [lab](lab) [else](https://example.com/x.md)\n",
		"docs/README.md":  "# Docs\n[up](../README.md) ![p](p.svg) [self](#docs)\n",
		"docs/a.md":       "# A\n\n## b\n\n<!-- run by: hack/x.sh (y) -->\n\n```\n[no](a.md)\n```\n<!-- not run: <why> -->\n",
		"docs/p.svg":      "<svg/>",
		"config/x.yaml":   "a: b\n",
		"config/sub/y.go": "package y\n",
		"lab/README.md":   "# Lab\n",
	})
	into := t.TempDir()
	if err := stage(root, into); err != nil {
		t.Fatal(err)
	}
	for file, wants := range map[string][]string{
		"content/_index.md": {
			"title: \"Top\"", "[docs](docs/index.html)", "[a](docs/a.html#b)", "[folder](config/files.html)", "[file](config/x.yaml.txt)", "[lab](lab/index.html)",
			"[else](https://example.com/x.md)",
		},
		"content/docs/_index.md":      {"[up](../index.html)", "![p](p.svg)", "[self](#docs)"},
		"content/docs/a.md":           {`<p class="ran">Run by hack/x.sh</p>`, "[no](a.md)", "Not run by a test: &lt;why&gt;"},
		"content/config/files.md":     {"[sub/](sub/files.html)", "[x.yaml](x.yaml.txt)", "url: /config/files.html"},
		"content/config/sub/files.md": {"[y.go](y.go.txt)"},
		"static/config/x.yaml.txt":    {"a: b"},
		"static/docs/p.svg":           {"<svg/>"},
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

func TestBrokenLinksAreFound(t *testing.T) {
	good := map[string]string{
		"index.html": `<h2 id="here"></h2><a href="b/c.html#x">c</a><a href="#here">h</a><code>href="nowhere"</code><img src="p.svg"><a href="https://example.com">e</a>`,
		"b/c.html":   `<h2 id="x"></h2><a href="../index.html">up</a>`,
		"p.svg":      "<svg/>",
	}
	if pages, links, err := check(repository(t, good)); err != nil || pages != 2 || links != 5 {
		t.Errorf("%d pages, %d links: %v", pages, links, err)
	}
	bad := map[string]string{"index.html": `<a href="none.html">n</a><a href="#gone">g</a><a href="b">folder</a>`, "b/c.html": ""}
	_, _, err := check(repository(t, bad))
	for _, want := range []string{"nothing at none.html", "no heading for #gone", "nothing at b"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not among %v", want, err)
		}
	}
	if _, _, err := check(t.TempDir()); err == nil {
		t.Error("a site without a page is good")
	}
}

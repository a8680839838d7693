package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestFindMirror(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"one line": {"# comment\ndeb http://mirror.example/debian bookworm main\n", "http://mirror.example/debian"},
		"options":  {"deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian trixie main", "http://mirror.example/debian"},
		"deb822": {
			"Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n",
			"http://mirror.example/debian",
		},
		"security comes first": {
			"Types: deb\nURIs: http://mirror.example/security\nSuites: bookworm-security\n\n" +
				"Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\n",
			"http://mirror.example/debian",
		},
		"packages of a third party": {"deb https://packages.example/apt tool-bookworm main\nURIs: https://x.example\nSuites: nodistro", ""},
		"source only":               {"deb-src http://mirror.example/debian bookworm main", ""},
	}
	for name, test := range tests {
		if got := findMirror(test.text); got != test.want {
			t.Errorf("%s: findMirror = %q, want %q", name, got, test.want)
		}
	}
}

func TestIgnoreRules(t *testing.T) {
	rules := parseIgnore("# comment\n/docs\nhack/\n**/*.md\n*.out\n!keep.out\n!docs/used.txt\n")
	for file, want := range map[string]bool{
		"docs/a/b.txt":      true,
		"docs/used.txt":     false,
		"hack/lab/main.go":  true,
		"README.md":         true,
		"internal/a/b.md":   true,
		"x.out":             true,
		"keep.out":          false,
		"internal/x.out":    false,
		"internal/hack/a":   false,
		"cmd/howdah/doc.go": false,
	} {
		if got := rules.match(file); got != want {
			t.Errorf("match(%q) = %t, want %t", file, got, want)
		}
	}
	allow := parseIgnore("*\n!cmd\n!go.mod\n")
	for file, want := range map[string]bool{"cmd/x.go": false, "go.mod": false, "docs/x": true} {
		if got := allow.match(file); got != want {
			t.Errorf("with an allow list: match(%q) = %t, want %t", file, got, want)
		}
	}
}

func TestEnsure(t *testing.T) {
	c := &Cache{Dir: t.TempDir(), Say: func(string, ...any) {}}
	file := c.Path("thing")
	made := 0
	p := product{name: "thing", files: []string{file}, stamp: "1", make: func() error {
		made++
		return os.WriteFile(file, nil, 0o644)
	}}
	steps := []struct {
		name   string
		change func()
		want   int
	}{
		{"at first", func() {}, 1},
		{"again", func() {}, 1},
		{"from other inputs", func() { p.stamp = "2" }, 2},
		{"after its file was removed", func() { os.Remove(file) }, 3},
	}
	for _, step := range steps {
		step.change()
		if err := c.ensure(p); err != nil || made != step.want {
			t.Errorf("%s: made %d times (%v), want %d", step.name, made, err, step.want)
		}
	}
	p.stamp, p.make = "3", func() error { return errors.New("no") }
	if err := c.ensure(p); err == nil {
		t.Error("a failure is no error")
	}
	if _, err := os.Stat(c.Path("stamps", "thing")); err == nil {
		t.Error("a failed product has a stamp")
	}
}

func TestHashTree(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	sum := func() string {
		got, err := hashTree(dir, []string{"a", "gone"})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	empty := sum()
	for _, text := range []string{"one", "two"} {
		before := sum()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if sum() == before {
			t.Errorf("the sum does not change with the content %q", text)
		}
	}
	if err := os.Remove(path); err != nil || sum() != empty {
		t.Errorf("a removed file still counts (%v)", err)
	}
}

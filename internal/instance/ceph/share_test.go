package ceph

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secrets is a directory with files of these texts.
func secrets(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestAShareIsReadFromItsEntry(t *testing.T) {
	directory := secrets(t, map[string]string{
		"unet3d.json":             `{"path": "/volumes/g/s/1", "user": "howdah-a"}`,
		"client.howdah-a.keyring": "[client.howdah-a]\n\tkey = AQ==\n",
	})
	if got, err := readShare(directory, "unet3d"); err != nil || got != (share{"/volumes/g/s/1", "howdah-a"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatIsWrongWithAnEntryIsSaid(t *testing.T) {
	for name, tc := range map[string]struct{ entry, want string }{
		"none":                  {"", "has no entry s.json"},
		"no JSON":               {"path: /a", "no JSON object"},
		"no path":               {`{"user": "a"}`, `has the path ""`},
		"a relative path":       {`{"path": "a", "user": "a"}`, `has the path "a"`},
		"a path out of it":      {`{"path": "/a/../b", "user": "a"}`, `has the path "/a/../b"`},
		"the whole file system": {`{"path": "/", "user": "a"}`, "below the root"},
		"no user":               {`{"path": "/a"}`, `has the user ""`},
		"the daemon's name":     {`{"path": "/a", "user": "client.a"}`, `without "client."`},
		"a path as the user":    {`{"path": "/a", "user": "../a"}`, `has the user "../a"`},
		"no key":                {`{"path": "/a", "user": "b"}`, "no key of user client.b"},
	} {
		files := map[string]string{"client.a.keyring": "[client.a]\n"}
		if tc.entry != "" {
			files["s.json"] = tc.entry
		}
		if got, err := readShare(secrets(t, files), "s"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

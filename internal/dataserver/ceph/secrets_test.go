package ceph

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secretOf returns a Secret with these files.
func secretOf(t *testing.T, files map[string]string) secrets {
	t.Helper()
	directory := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return secrets{directory: directory, name: "ceph-shares"}
}

const keyOfA = "[client.a]\n\tkey = AQ==\n"

func TestAShareIsReadFromItsEntry(t *testing.T) {
	s := secretOf(t, map[string]string{"unet3d.json": `{"path": "/volumes/g/s/1", "user": "a"}`, "client.a.keyring": keyOfA})
	if got, err := s.share("unet3d"); err != nil || got != (share{"/volumes/g/s/1", "a"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMessageForAWrongEntry(t *testing.T) {
	for name, tc := range map[string]struct{ entry, want string }{
		"none":                         {"", "no entry s.json is in Secret ceph-shares. It must be {"},
		"no JSON":                      {"path: /a", "entry s.json of Secret ceph-shares is not a JSON object"},
		"no path":                      {`{"user": "a"}`, `has the path ""`},
		"a relative path":              {`{"path": "a", "user": "a"}`, `has the path "a"`},
		"a path out of it":             {`{"path": "/a/../b", "user": "a"}`, `has the path "/a/../b"`},
		"the whole file system":        {`{"path": "/", "user": "a"}`, "below the file system's root"},
		"a path that ends the string":  {`{"path": "/a\"; b", "user": "a"}`, "quotes"},
		"no user":                      {`{"path": "/a"}`, `has the user ""`},
		"the daemon's name":            {`{"path": "/a", "user": "client.a"}`, `without "client."`},
		"a user of all rights":         {`{"path": "/a", "user": "admin"}`, "has the user admin, which may do everything"},
		"a path as the user":           {`{"path": "/a", "user": "../a"}`, `has the user "../a"`},
		"a user in two lines":          {`{"path": "/a", "user": "a\nb"}`, "has the user"},
		"a longer user than ganesha's": {`{"path": "/a", "user": "` + strings.Repeat("a", 65) + `"}`, "entry s.json of Secret ceph-shares names what ganesha can't export: User_Id is longer than 64 bytes"},
		"a longer path than ganesha's": {`{"path": "/` + strings.Repeat("a", 4096) + `", "user": "a"}`, "can't export: Path is longer than 4096 bytes"},
		"a path with a tab":            {`{"path": "/a\tb", "user": "a"}`, "can't export: Path has the character"},
		"a user with a tab":            {`{"path": "/a", "user": "a\tb"}`, "can't export: User_Id has the character"},
		"no key":                       {`{"path": "/a", "user": "b"}`, "no entry client.b.keyring is in Secret ceph-shares"},
		"another's key":                {`{"path": "/a", "user": "c"}`, "entry client.c.keyring of Secret ceph-shares has no key of client.c"},
	} {
		files := map[string]string{"client.a.keyring": keyOfA, "client.c.keyring": keyOfA}
		if tc.entry != "" {
			files["s.json"] = tc.entry
		}
		if got, err := secretOf(t, files).share("s"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestMessageForAMissingSecret(t *testing.T) {
	const want = "there is no Secret ceph-shares, or it is empty"
	// This is how a kubelet mounts an optional Secret that does not exist.
	if err := secretOf(t, map[string]string{"..data": ""}).key("rec"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "client.rec.keyring") {
		t.Errorf("%v", err)
	}
}

func TestMessageForAMissingEntryNamesTheSteward(t *testing.T) {
	s := secretOf(t, nil)
	s.steward = "training"
	_, err := s.share("unet3d")
	if err == nil || !strings.Contains(err.Error(), "the steward has not written entry unet3d.json to Secret ceph-shares yet") {
		t.Errorf("%v", err)
	}
}

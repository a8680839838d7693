package ceph

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// secrets are the files of the Secret with the shares' directories and the users' keys. What is wrong with them goes into statuses, so it
// names the Secret, the entry and what to do.
type secrets struct {
	// directory is where the Secret is mounted, name is its name, steward who writes it; "" if people do.
	directory, name, steward string
}

// share is where a share's data is, and whose it is: the entry <share>.json.
type share struct {
	// Path is the share's directory in the file system.
	Path string `json:"path"`
	// User is its cephx user, without "client."; the key is in the entry client.<user>.keyring.
	User string `json:"user"`
}

func (s secrets) keyring(user string) string {
	return filepath.Join(s.directory, "client."+user+".keyring")
}

// missing tells that an entry is not there, with what belongs into it. The Secret is mounted whether it exists or not.
func (s secrets) missing(entry, content string) error {
	if s.steward != "" {
		return fmt.Errorf("the steward has put no entry %s into Secret %s yet, or it has not come here: kubectl get stewards,sharestorages say what it waits for", entry, s.name)
	}
	// The kubelet's own names begin with two dots, and are there in any case.
	found, err := filepath.Glob(filepath.Join(s.directory, "[^.]*"))
	if err == nil && len(found) == 0 {
		return fmt.Errorf("there is no Secret %s, or nothing is in it; what is new takes up to two minutes to come here. It must have an entry %s: %s", s.name, entry, content)
	}
	return fmt.Errorf("no entry %s is in Secret %s; what is new takes up to two minutes to come here. It must be %s", entry, s.name, content)
}

// key looks whether there is a key of a user.
func (s secrets) key(user string) error {
	text, err := os.ReadFile(s.keyring(user))
	entry := filepath.Base(s.keyring(user))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.missing(entry, "what ceph auth get client."+user+" prints")
	case err != nil:
		return fmt.Errorf("reading entry %s of Secret %s: %w", entry, s.name, err)
	case !strings.Contains(string(text), "[client."+user+"]") || !strings.Contains(string(text), "key"):
		return fmt.Errorf("entry %s of Secret %s has no key of client.%s: it must be what ceph auth get client.%s prints", entry, s.name, user, user)
	}
	return nil
}

// keyOf is a user's key, "" if none is there.
func (s secrets) keyOf(user string) string {
	text, err := os.ReadFile(s.keyring(user))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, "="); found && strings.TrimSpace(name) == "key" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// share reads and judges the entry of a share.
func (s secrets) share(name string) (share, error) {
	entry := name + ".json"
	text, err := os.ReadFile(filepath.Join(s.directory, entry))
	if errors.Is(err, fs.ErrNotExist) {
		return share{}, s.missing(entry, `{"path": its directory in the file system, "user": its cephx user}`)
	}
	if err != nil {
		return share{}, fmt.Errorf("reading entry %s of Secret %s: %w", entry, s.name, err)
	}
	var found share
	if err := json.Unmarshal(text, &found); err != nil {
		return share{}, fmt.Errorf("entry %s of Secret %s is no JSON object with path and user: %w", entry, s.name, err)
	}
	switch {
	case !strings.HasPrefix(found.Path, "/") || path.Clean(found.Path) != found.Path || found.Path == "/":
		return share{}, fmt.Errorf("entry %s of Secret %s has the path %q: it must be a directory below the file system's root, without a slash at the end", entry, s.name, found.Path)
	case strings.ContainsAny(found.Path, "\"\\\n\r\x00"):
		return share{}, fmt.Errorf("entry %s of Secret %s has the path %q: quotes, backslashes and ends of lines can't be in it", entry, s.name, found.Path)
	case found.User == "" || strings.HasPrefix(found.User, "client.") || strings.ContainsAny(found.User, "/\\\"\n\r\x00 ;#$'"):
		return share{}, fmt.Errorf("entry %s of Secret %s has the user %q: it must be a cephx user without \"client.\"", entry, s.name, found.User)
	}
	if found.User == "admin" {
		return share{}, fmt.Errorf("entry %s of Secret %s has the user admin, who may do everything: clients of the share could reach all that is in the file system. Give it a user that is good for its directory alone", entry, s.name)
	}
	return found, s.key(found.User)
}

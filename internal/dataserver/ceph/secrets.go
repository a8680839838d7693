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

	"github.com/howdah/howdah/internal/ganesha"
)

// secrets are the files of the Secret with the shares' directories and the users' keys. Its errors appear in statuses,
// so they name the Secret, the entry and what to do.
type secrets struct {
	// directory is where the Secret is mounted. name is its name. steward is the steward that writes it; "" if an
	// administrator does.
	directory, name, steward string
}

// share is the entry <share>.json: where a share's data is, and its user.
type share struct {
	// Path is the share's directory in the file system.
	Path string `json:"path"`
	// User is its cephx user, without "client."; the key is in the entry client.<user>.keyring.
	User string `json:"user"`
}

func (s secrets) keyring(user string) string {
	return filepath.Join(s.directory, "client."+user+".keyring")
}

// missing returns the error for a missing entry, which must have this content. The Secret is optional, so it may not
// exist.
func (s secrets) missing(entry, content string) error {
	if s.steward != "" {
		return fmt.Errorf("the steward has not written entry %s to Secret %s yet, or the change has not reached this pod: "+
			"kubectl get stewards,sharestorages shows what the steward waits for", entry, s.name)
	}
	// The kubelet's own files start with two dots, and always exist.
	found, err := filepath.Glob(filepath.Join(s.directory, "[^.]*"))
	if err == nil && len(found) == 0 {
		return fmt.Errorf("there is no Secret %s, or it is empty. It must have an entry %s: %s. Changes take up to two minutes to reach the pods", s.name, entry, content)
	}
	return fmt.Errorf("no entry %s is in Secret %s. It must be %s. Changes take up to two minutes to reach the pods", entry, s.name, content)
}

// key checks that there is a key of a user.
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

// keyOf returns a user's key; "" if there is none.
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

// share reads and validates the entry of a share.
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
		return share{}, fmt.Errorf("entry %s of Secret %s is not a JSON object with path and user: %w", entry, s.name, err)
	}
	switch {
	case !strings.HasPrefix(found.Path, "/") || path.Clean(found.Path) != found.Path || found.Path == "/":
		return share{}, fmt.Errorf("entry %s of Secret %s has the path %q: it must be a directory below the file system's root, without a slash at the end", entry, s.name, found.Path)
	case strings.ContainsAny(found.Path, "\"\\\n\r\x00"):
		return share{}, fmt.Errorf("entry %s of Secret %s has the path %q: it can't contain quotes, backslashes or line breaks", entry, s.name, found.Path)
	case found.User == "" || strings.HasPrefix(found.User, "client.") || strings.ContainsAny(found.User, "/\\\"\n\r\x00 ;#$'"):
		return share{}, fmt.Errorf("entry %s of Secret %s has the user %q: it must be a cephx user without \"client.\"", entry, s.name, found.User)
	}
	if found.User == "admin" {
		return share{}, fmt.Errorf("entry %s of Secret %s has the user admin, which may do everything: clients of the share could reach the whole file system. Use a user that has rights to the share's directory only", entry, s.name)
	}
	// Whatever ganesha can't have is a fault of this share alone.
	if err := ganesha.CheckCephFS(found.Path, found.User); err != nil {
		return share{}, fmt.Errorf("entry %s of Secret %s names what ganesha can't export: %w", entry, s.name, err)
	}
	return found, s.key(found.User)
}

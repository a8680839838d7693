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

// share is where a share's data is, and whose it is: the file <share>.json among the secrets.
type share struct {
	// Path is the share's directory in the file system.
	Path string `json:"path"`
	// User is its cephx user, without "client."; the key is in client.<user>.keyring beside the file.
	User string `json:"user"`
}

// readShare reads and judges an entry. Its words go into statuses, so they name the file and what to do.
func readShare(secrets, name string) (share, error) {
	file := filepath.Join(secrets, name+".json")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return share{}, fmt.Errorf("the Secret with the shares' users has no entry %s.json (it may take a minute to come): it must have "+
			`{"path": its directory in the file system, "user": its cephx user}`, name)
	}
	if err != nil {
		return share{}, fmt.Errorf("reading whose directory the share is: %w", err)
	}
	var found share
	if err := json.Unmarshal(text, &found); err != nil {
		return share{}, fmt.Errorf("%s.json in the Secret with the shares' users is no JSON object with path and user: %w", name, err)
	}
	switch {
	case !strings.HasPrefix(found.Path, "/") || path.Clean(found.Path) != found.Path || found.Path == "/":
		return share{}, fmt.Errorf("%s.json in the Secret with the shares' users has the path %q: it must be a directory below the root, without a slash at the end", name, found.Path)
	case found.User == "" || strings.HasPrefix(found.User, "client.") || strings.ContainsAny(found.User, "/\\\"\n\x00 "):
		return share{}, fmt.Errorf("%s.json in the Secret with the shares' users has the user %q: it must be a cephx user without \"client.\"", name, found.User)
	}
	if _, err := os.Stat(keyring(secrets, found.User)); err != nil {
		return share{}, fmt.Errorf("the Secret with the shares' users has no key of user client.%s: it must have an entry client.%s.keyring", found.User, found.User)
	}
	return found, nil
}

func keyring(secrets, user string) string { return filepath.Join(secrets, "client."+user+".keyring") }

package steward

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// credential is a Ceph account: a user without "client." and its key.
type credential struct{ user, key string }

// readCredential reads the account from the directory where its Secret is mounted. An error names the Secret and the entry,
// and never the key.
func readCredential(directory, secret string) (credential, error) {
	read := func(entry string) (string, error) {
		text, err := os.ReadFile(filepath.Join(directory, entry))
		switch value := strings.TrimSpace(string(text)); {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("there is no Secret %s, or it has no entry %s; what is new takes up to two minutes to come here. "+
				"It must have userID, a cephx user without \"client.\", and userKey, its key", secret, entry)
		case err != nil:
			return "", fmt.Errorf("reading entry %s of Secret %s: %w", entry, secret, err)
		case value == "" || strings.ContainsAny(value, " \t\r\n\"[]\\/\x00") && entry == "userID" || strings.ContainsAny(value, " \t\r\n\"[]\x00"):
			return "", fmt.Errorf("entry %s of Secret %s is empty, or has blanks, quotes or brackets in it", entry, secret)
		default:
			return value, nil
		}
	}
	user, err := read("userID")
	if err != nil {
		return credential{}, err
	}
	if strings.HasPrefix(user, "client.") {
		return credential{}, fmt.Errorf("entry userID of Secret %s is %q: leave \"client.\" out", secret, user)
	}
	key, err := read("userKey")
	return credential{user, key}, err
}

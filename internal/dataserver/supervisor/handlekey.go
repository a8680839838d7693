package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// HandleKeyBytes is the length of a key (SipHash).
const HandleKeyBytes = 16

// HandleKeys are the files with which ganesha signs file handles and checks them (internal/ganesha/build/patches/0400-signed-handles.patch).
type HandleKeys struct {
	// Current signs, and checks.
	Current string
	// Previous checks only, so that clients keep the handles that they have; none but while a key is
	// being replaced.
	Previous string
}

// Check tells what is wrong with the keys. Ganesha would not start without them; it could not say so in a status.
func (k HandleKeys) Check() error {
	for _, path := range k.files() {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return fmt.Errorf("the key that signs file handles is not there, and without it clients could make handles themselves: %w", err)
		case !info.Mode().IsRegular() || info.Size() != HandleKeyBytes:
			return fmt.Errorf("%s is no file of %d bytes, so it is no key for file handles; does the Secret have this data server's?", path, HandleKeyBytes)
		}
	}
	return nil
}

// environment is what ganesha reads them by.
func (k HandleKeys) environment() []string {
	variables := []string{"HOWDAH_HANDLE_KEY", "HOWDAH_HANDLE_OLD_KEY"}
	var environment []string
	for i, path := range k.files() {
		environment = append(environment, variables[i]+"="+path)
	}
	return environment
}

func (k HandleKeys) files() []string {
	if _, err := os.Stat(k.Previous); errors.Is(err, fs.ErrNotExist) {
		return []string{k.Current}
	}
	return []string{k.Current, k.Previous}
}

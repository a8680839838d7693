package dataserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// handleKeyBytes is the length of a key (SipHash).
const handleKeyBytes = 16

// handleKeys are the files with which ganesha signs file handles and checks them (internal/ganesha/build/patches/0400-signed-handles.patch).
type handleKeys struct {
	// current signs, and checks.
	current string
	// previous checks only, so that clients keep the handles that they have; none but while a key is
	// being replaced.
	previous string
}

// check tells what is wrong with the keys. Ganesha would not start without them; it could not say so in a status.
func (k handleKeys) check() error {
	for _, path := range k.files() {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return fmt.Errorf("the key that signs file handles is not there, and without it clients could make handles themselves: %w", err)
		case !info.Mode().IsRegular() || info.Size() != handleKeyBytes:
			return fmt.Errorf("%s is no file of %d bytes, so it is no key for file handles; does the Secret have this data server's?", path, handleKeyBytes)
		}
	}
	return nil
}

// environment is what ganesha reads them by.
func (k handleKeys) environment() []string {
	variables := []string{"HOWDAH_HANDLE_KEY", "HOWDAH_HANDLE_OLD_KEY"}
	var environment []string
	for i, path := range k.files() {
		environment = append(environment, variables[i]+"="+path)
	}
	return environment
}

func (k handleKeys) files() []string {
	if _, err := os.Stat(k.previous); errors.Is(err, fs.ErrNotExist) {
		return []string{k.current}
	}
	return []string{k.current, k.previous}
}

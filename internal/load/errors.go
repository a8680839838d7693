package load

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// isErrno tells whether an error is, or wraps, this error number.
func isErrno(err error, errno syscall.Errno) bool {
	var found syscall.Errno
	return errors.As(err, &found) && found == errno
}

// isListing tells whether an error is of a listing of a directory that is open (os.File.Readdirnames).
func isListing(err error) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && failed.Op == "readdirent"
}

// step is an error with the step of an operation that failed.
func step(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

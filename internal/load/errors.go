package load

import (
	"errors"
	"fmt"
	"syscall"
)

// isErrno tells whether an error is, or wraps, this error number.
func isErrno(err error, errno syscall.Errno) bool {
	var found syscall.Errno
	return errors.As(err, &found) && found == errno
}

// step is an error with the step of an operation that failed.
func step(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

package steward

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/howdah/howdah/internal/ceph/client"
)

// rights names the documentation of the provisioning account's permissions.
const rights = "docs/operate/ceph.md#the-account-for-howdah has the rights that it needs"

// unconnected explains an error of a connection that was not made.
func unconnected(err error, user, secret string, monitors []string) error {
	switch {
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no monitor answers at %s: are these the addresses, and does the network let pods reach them? (%w)", strings.Join(monitors, ", "), err)
	case client.IsRefusal(err, syscall.EIO, syscall.EACCES, syscall.EPERM, syscall.EINVAL, syscall.ENOENT):
		return fmt.Errorf("the monitors do not take the key of client.%s: userID and userKey of Secret %s must be a cephx user without \"client.\" and what ceph auth get-key client.%s prints (%w)",
			user, secret, user, err)
	}
	return err
}

// refused explains the error of a command that failed. what is what was attempted.
func refused(err error, what, user string) error {
	switch {
	case isDenied(err):
		return fmt.Errorf("%s: client.%s may not do that; %s (%w)", what, user, rights, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s: the Ceph cluster is full (%w)", what, err)
	case isOutage(err):
		return fmt.Errorf("%s: Ceph did not do it in time: are its managers and metadata servers well (ceph health)? (%w)", what, err)
	}
	return fmt.Errorf("%s: Ceph refused it: %w", what, err)
}

// isOutage reports whether Ceph did not answer at all, so that other commands would fail as well.
func isOutage(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, client.ErrGone) || errors.Is(err, syscall.ETIMEDOUT)
}

// isDenied reports whether permissions are missing.
func isDenied(err error) bool { return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) }

// isAbsent reports whether the object does not exist.
func isAbsent(err error) bool { return errors.Is(err, syscall.ENOENT) }

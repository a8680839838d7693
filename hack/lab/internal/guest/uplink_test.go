package guest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestOnlyAHostThatIsNotFoundCounts(t *testing.T) {
	dial := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)}
	}
	for name, test := range map[string]struct {
		before int
		err    error
		want   int
	}{
		"found":                      {2, nil, 0},
		"not found":                  {2, dial(syscall.EHOSTUNREACH), 3},
		"not found, wrapped":         {0, fmt.Errorf("dial: %w", dial(syscall.EHOSTUNREACH)), 1},
		"powered off: refused":       {2, dial(syscall.ECONNREFUSED), 0},
		"frozen, or cut by a filter": {2, os.ErrDeadlineExceeded, 0},
		"another fault":              {2, errors.New("no such host"), 0},
	} {
		if got := nextUnreachable(test.before, test.err); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// usualMemory is what the program may have while it lists directories: 4 KiB for each that a share shows at the most, and something for itself.
	usualMemory = 512 << 20
	// memoryEvery is how often that is looked at.
	memoryEvery = 50 * time.Millisecond
	// maxAnswer is the longest answer, in bytes: twice what package listing passes on.
	maxAnswer = 64 << 20
)

// errTooMany tells that a share has more directories at some depth than are listed. Clients can make any number of them below those that are spread,
// and the program and this process have the memory of a data server.
var errTooMany = errors.New("the share has more directories at this depth than can be listed")

// list is a request whose answer is a list of directories. It ends the program if that takes too much memory.
func (c *Client) list(ctx context.Context, request map[string]any, result any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		ticker := time.NewTicker(memoryEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if residentBytes(c.command.Process.Pid) > c.memory {
				cancel(errTooMany)
				return
			}
		}
	}()
	err := c.request(ctx, request, result)
	if err != nil && errors.Is(context.Cause(ctx), errTooMany) {
		return errTooMany
	}
	return err
}

// residentBytes is the memory of a process; 0 if it is not known. man 5 proc_pid_statm: the second number is of pages.
func residentBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// line reads an answer.
func (c *Client) line() ([]byte, error) {
	var line []byte
	for {
		part, err := c.output.ReadSlice('\n')
		if len(line)+len(part) > maxAnswer {
			return nil, errTooMany
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

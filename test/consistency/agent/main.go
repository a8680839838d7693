// Command agent does the operations of test/consistency on a file system: it reads requests as lines of JSON from its standard input
// and writes the answers to its standard output, each as soon as it is there. Requests run at the same time.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/howdah/howdah/test/consistency"
)

// lockPause is the time between tries to get a lock. Linux' own wait for a lock of NFS doubles up to 30 s.
const lockPause = 20 * time.Millisecond

func main() {
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	var writing sync.Mutex
	var running sync.WaitGroup
	for lines.Scan() {
		var r consistency.WireRequest
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, "agent: bad request:", err)
			os.Exit(1)
		}
		running.Go(func() {
			answer := do(r.Root, r.Request)
			writing.Lock()
			defer writing.Unlock()
			_ = out.Encode(consistency.WireAnswer{ID: r.ID, Answer: answer})
		})
	}
	running.Wait()
}

func do(root string, r consistency.Request) (a consistency.Answer) {
	path := filepath.Join(root, r.Path)
	var err error
	switch r.Kind {
	case consistency.Mkdir:
		err = os.Mkdir(path, 0o777)
	case consistency.Rmdir:
		err = syscall.Rmdir(path)
	case consistency.Rename:
		// Not os.Rename: it looks at the target first.
		err = syscall.Rename(path, filepath.Join(root, r.To))
	case consistency.Stat:
		_, err = os.Lstat(path)
	case consistency.List:
		a.Names, err = list(path)
	case consistency.Read, consistency.Write, consistency.Swap:
		a.Got, err = file(path, r)
	default:
		err = syscall.ENOSYS
	}
	a.Error = name(err)
	return a
}

// name is the name of an error number.
func name(err error) string {
	var number syscall.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &number):
		return unix.ErrnoName(number)
	}
	return err.Error()
}

func list(path string) ([]string, error) {
	directory, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = directory.Close() }()
	names, err := directory.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// file opens a file, reads or writes its first bytes, and closes it. The answer to a Read of an empty file is "".
func file(path string, r consistency.Request) (got string, err error) {
	flags := os.O_RDONLY
	if r.Kind != consistency.Read || r.Locked {
		flags = os.O_RDWR // A lock for writing needs a descriptor that can write.
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return "", err
	}
	// What was written is on the server when close returns; its error is the write's.
	defer func() { err = errors.Join(err, f.Close()) }()
	if r.Locked {
		if err := lock(f, unix.F_WRLCK); err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, lock(f, unix.F_UNLCK)) }()
	}
	if r.Kind != consistency.Write {
		buffer := make([]byte, consistency.ValueSize)
		n, err := f.ReadAt(buffer, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		got = string(buffer[:n])
	}
	if r.Kind != consistency.Read {
		_, err = f.WriteAt([]byte(r.Value), 0)
	}
	return got, err
}

// lock sets or removes a lock that belongs to the open file: others of this process are kept out, too (fcntl(2), F_OFD_SETLK).
func lock(f *os.File, kind int16) error {
	for {
		err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind})
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR) {
			return err
		}
		time.Sleep(lockPause)
	}
}

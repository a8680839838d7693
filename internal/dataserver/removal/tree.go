package removal

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// deepest is how many directories, each in the other, are open at a time. os.RemoveAll has no such limit: each takes a descriptor and 10 KiB,
	// and a client can make directories in each other without end.
	deepest = 64
	// batch is how many names of a directory are held in memory at a time.
	batch = 1000
	// deeper begins the names of directories that were too deep. Names of users' own data beside the tree don't begin with a dot.
	deeper = ".deeper-"
)

// Tree removes what has a name on a volume and everything below it, until the context ends. What is too deep is moved beside the tree first, and then
// removed. After a crash it is left there for whoever empties that directory.
func Tree(ctx context.Context, volume *os.Root, name string) error {
	beside, err := volume.Open(filepath.Dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = beside.Close() }()
	t := tree{ctx: ctx, beside: int(beside.Fd()), prefix: deeper + rand.Text() + "-"}
	err = t.remove(t.beside, filepath.Base(name), 0)
	for removed := 1; removed <= t.moved && ctx.Err() == nil; removed++ {
		err = errors.Join(err, t.remove(t.beside, t.prefix+strconv.Itoa(removed), 0))
	}
	return errors.Join(err, ctx.Err())
}

type tree struct {
	ctx context.Context
	// beside is the directory that has the tree. Directories that were too deep have names there, with a prefix and a number up to moved.
	beside int
	prefix string
	moved  int
}

// remove removes what has a name in a directory that is so deep in the tree. Nothing here follows a symbolic link.
func (t *tree) remove(directory int, name string, depth int) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	err := again(func() error { return unix.Unlinkat(directory, name, 0) })
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES): // By file system, for a directory.
		return &fs.PathError{Op: "unlinkat", Path: name, Err: err}
	}
	if depth == deepest {
		next := t.prefix + strconv.Itoa(t.moved+1)
		if err := again(func() error { return unix.Renameat(directory, name, t.beside, next) }); err != nil {
			return &fs.PathError{Op: "renameat", Path: name, Err: err}
		}
		t.moved++
		return nil
	}
	descriptor := -1
	openErr := again(func() (err error) {
		descriptor, err = unix.Openat(directory, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	switch {
	case errors.Is(openErr, unix.ENOENT):
		return nil
	case errors.Is(openErr, unix.ENOTDIR), errors.Is(openErr, unix.ELOOP):
		return &fs.PathError{Op: "unlinkat", Path: name, Err: err} // It is no directory, and may not be removed.
	case openErr != nil:
		return &fs.PathError{Op: "openat", Path: name, Err: openErr}
	}
	file := os.NewFile(uintptr(descriptor), name)
	err = t.empty(file, depth)
	_ = file.Close()
	if err != nil {
		return err
	}
	if err := again(func() error { return unix.Unlinkat(directory, name, unix.AT_REMOVEDIR) }); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "unlinkat", Path: name, Err: err}
	}
	return nil
}

// empty removes what is in a directory. One fault does not keep the others there.
func (t *tree) empty(directory *os.File, depth int) error {
	for {
		removed, fault := 0, error(nil)
		for {
			names, err := directory.Readdirnames(batch)
			for _, name := range names {
				switch err := t.remove(int(directory.Fd()), name, depth+1); {
				case t.ctx.Err() != nil:
					return t.ctx.Err()
				case err == nil:
					removed++
				case fault == nil:
					fault = err
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		if removed == 0 || fault != nil {
			return fault
		}
		// A list of names may leave some out while others are removed.
		if _, err := directory.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// again repeats what a signal has interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

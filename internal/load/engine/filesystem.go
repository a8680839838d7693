package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/howdah/howdah/internal/load"
)

// Locks is the kind of locks that a load takes.
type Locks string

// Kinds of locks. NFS servers know one kind; the client's kernel has a way for each.
const (
	Flock Locks = "flock"
	Fcntl Locks = "fcntl"
)

// directory is a real directory under load.
type directory struct {
	path  string
	locks Locks
}

func (d directory) at(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// Create implements load.FileSystem.
func (d directory) Create(name string, exclusive bool) (load.File, error) {
	flags := os.O_RDWR | os.O_CREATE
	if exclusive {
		flags |= os.O_EXCL
	}
	return d.open(name, flags)
}

// Open implements load.FileSystem.
func (d directory) Open(name string) (load.File, error) { return d.open(name, os.O_RDWR) }

func (d directory) open(name string, flags int) (load.File, error) {
	opened, err := os.OpenFile(d.at(name), flags, 0o666)
	if err != nil {
		return nil, err
	}
	return &file{File: opened, locks: d.locks}, nil
}

// Mkdir implements load.FileSystem.
func (d directory) Mkdir(name string) error { return os.Mkdir(d.at(name), 0o777) }

// Remove implements load.FileSystem.
func (d directory) Remove(name string) error { return unix.Unlink(d.at(name)) }

// RemoveDirectory implements load.FileSystem.
func (d directory) RemoveDirectory(name string) error { return unix.Rmdir(d.at(name)) }

// Rename implements load.FileSystem.
func (d directory) Rename(from, to string) error { return os.Rename(d.at(from), d.at(to)) }

// Names implements load.FileSystem.
func (d directory) Names(name string) ([]string, error) {
	opened, err := os.Open(d.at(name))
	if err != nil {
		return nil, err
	}
	names, err := opened.Readdirnames(-1)
	return names, errors.Join(err, opened.Close())
}

// Exists implements load.FileSystem.
func (d directory) Exists(name string) (bool, error) {
	_, err := os.Lstat(d.at(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// file is an open file. Direct reads need a buffer of their own, which is aligned.
type file struct {
	*os.File
	locks  Locks
	direct *os.File
	// cached is true if the file system has no direct reads.
	cached bool
	buffer []byte
}

// WriteBlock implements load.File.
func (f *file) WriteBlock(block int, p []byte) error {
	_, err := f.WriteAt(p, int64(block)*load.BlockSize)
	return err
}

// ReadBlock implements load.File.
func (f *file) ReadBlock(block int, p []byte) (int, error) {
	offset := int64(block) * load.BlockSize
	if !f.cached {
		n, err := f.readDirect(p, offset)
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EOPNOTSUPP) {
			return n, err
		}
		f.cached = true
	}
	// It brings clean pages out of the cache; if it fails, they are read from the cache.
	_ = unix.Fadvise(int(f.Fd()), offset, load.BlockSize, unix.FADV_DONTNEED)
	return readAll(f.File, p, offset)
}

func (f *file) readDirect(p []byte, offset int64) (int, error) {
	if f.direct == nil {
		opened, err := os.OpenFile(f.Name(), os.O_RDONLY|unix.O_DIRECT, 0)
		if err != nil {
			return 0, err
		}
		f.direct, f.buffer = opened, aligned()
	}
	n, err := readAll(f.direct, f.buffer, offset)
	return copy(p, f.buffer[:n]), err
}

// readAll reads until the buffer is full or the file ends.
func readAll(from *os.File, p []byte, offset int64) (int, error) {
	read := 0
	for read < len(p) {
		n, err := unix.Pread(int(from.Fd()), p[read:], offset+int64(read))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return read, err
		}
		read += n
	}
	return read, nil
}

// aligned is a buffer of a block for direct reads: file systems ask for the alignment of a page at most.
func aligned() []byte {
	const page = 4096
	raw := make([]byte, load.BlockSize+page)
	at := page - int(uintptr(unsafe.Pointer(&raw[0]))%page) //nolint:gosec // alignment can't be known otherwise
	return raw[at : at+load.BlockSize]
}

// TryLock implements load.File.
func (f *file) TryLock() error {
	if f.locks == Fcntl {
		// A lock of this open file, not of the process: a process loses its own with the first file that it closes.
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	}
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// Close implements load.File.
func (f *file) Close() error {
	if f.direct != nil {
		_ = f.direct.Close() // Nothing is written through it.
	}
	return f.File.Close()
}

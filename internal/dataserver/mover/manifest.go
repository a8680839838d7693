package mover

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// clockMargin is by how much a file may have changed before its time says so: the kernel stamps with the last tick.
const clockMargin = 2 * time.Second

// entry is what a move must keep of a file or directory.
type entry struct {
	Path  name   `json:"p"`
	Mode  uint32 `json:"m"`
	UID   uint32 `json:"u"`
	GID   uint32 `json:"g"`
	Size  int64  `json:"s,omitempty"`
	Mtime int64  `json:"t"`
	Links uint64 `json:"l,omitempty"`
	To    name   `json:"to,omitempty"`
	// Attributes is a digest of the extended attributes that clients can set, Content of the file's bytes if that was asked for.
	Attributes string `json:"a,omitempty"`
	Content    string `json:"c,omitempty"`
}

// name is a text of any bytes: JSON has UTF-8 only, so it is in base64.
type name string

// MarshalText implements encoding.TextMarshaler.
func (n name) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, []byte(n)), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *name) UnmarshalText(text []byte) error {
	decoded, err := base64.StdEncoding.AppendDecode(nil, text)
	*n = name(decoded)
	return err
}

// last is the line after the last entry.
type last struct {
	Error   string `json:"error,omitempty"`
	Entries int64  `json:"entries"`
}

// describe returns an entry. content asks for a digest of the bytes.
func describe(root, path string, content func(changed time.Time) bool) (*entry, error) {
	whole := filepath.Join(root, path)
	info, err := os.Lstat(whole)
	if err != nil {
		return nil, err
	}
	stat := info.Sys().(*syscall.Stat_t)
	found := &entry{Path: name(path), Mode: stat.Mode, UID: stat.Uid, GID: stat.Gid, Mtime: stat.Mtim.Nano()}
	if !info.IsDir() {
		found.Links = uint64(stat.Nlink) //nolint:unconvert // It is 32 bits on arm64.
	}
	switch {
	case info.Mode().IsRegular():
		found.Size = info.Size()
		if content(time.Unix(0, stat.Ctim.Nano())) {
			if found.Content, err = digest(whole); err != nil {
				return nil, err
			}
		}
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(whole)
		if err != nil {
			return nil, err
		}
		found.To = name(to)
		return found, nil // NFS gives symbolic links no extended attributes.
	}
	found.Attributes, err = attributesOf(whole)
	return found, err
}

func digest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// attributesOf is a digest of the extended attributes of users and of the access lists; "" if there are none.
func attributesOf(path string) (string, error) {
	names, err := listAttributes(path)
	if err != nil || len(names) == 0 {
		return "", err
	}
	sum := sha256.New()
	for _, name := range names {
		value := make([]byte, 64<<10) // XATTR_SIZE_MAX
		n, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			return "", fmt.Errorf("reading attribute %q of %q: %w", name, path, err)
		}
		fmt.Fprintf(sum, "%d %s %d ", len(name), name, n)
		_, _ = sum.Write(value[:n]) // Never fails.
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func listAttributes(path string) (names []string, err error) {
	list := make([]byte, 64<<10) // XATTR_LIST_MAX
	n, err := unix.Llistxattr(path, list)
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the attributes of %q: %w", path, err)
	}
	for name := range bytes.SplitSeq(list[:n], []byte{0}) {
		if text := string(name); strings.HasPrefix(text, "user.") || strings.HasPrefix(text, "system.posix_acl_") {
			names = append(names, text)
		}
	}
	slices.Sort(names)
	return names, nil
}

// writeManifest writes the entries of a directory, in no order. Files that changed after since have a digest.
func writeManifest(to io.Writer, root string, since time.Time) error {
	writer := bufio.NewWriterSize(to, 1<<18)
	count := int64(0)
	err := walk(root, false, func(path string, _ fs.FileInfo) error {
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found, err := describe(root, relative, func(changed time.Time) bool { return !changed.Before(since) })
		if err != nil {
			return err
		}
		count++
		return writeLine(writer, found)
	})
	end := last{Entries: count}
	if err != nil {
		end.Error = err.Error()
	}
	return errors.Join(writeLine(writer, entry{Path: endOfManifest}), writeLine(writer, end), writer.Flush())
}

// endOfManifest is no path that walk gives.
const endOfManifest = "//end"

// compareManifest reads a manifest and compares a directory with it. An error says what differs first. Names that are one file here, with another number of
// names than the source's, are removed: rsync, which writes in place, never parts them. That takes all further names of the file, also if fewer are left by
// then: two of them that are two files at the source would have rsync make all of them one again.
func compareManifest(from *bufio.Reader, root string) error {
	var linked error
	tooMany := map[uint64]bool{}
	count := int64(0)
	seen := int64(0)
	for {
		var theirs entry
		if err := readLine(from, &theirs); err != nil {
			return fmt.Errorf("the source's list of files ends too early: %w", err)
		}
		if theirs.Path == endOfManifest {
			break
		}
		seen++
		if !filepath.IsLocal(string(theirs.Path)) {
			return fmt.Errorf("the source's list of files has the path %q", theirs.Path)
		}
		ours, err := describe(root, string(theirs.Path), func(time.Time) bool { return theirs.Content != "" })
		if err != nil {
			return fmt.Errorf("the copy of %q: %w", theirs.Path, err)
		}
		if ours.Links > 1 {
			inode, err := inodeOf(filepath.Join(root, string(theirs.Path)))
			if err != nil {
				return fmt.Errorf("the copy of %q: %w", theirs.Path, err)
			}
			if ours.Links != theirs.Links || tooMany[inode] {
				tooMany[inode] = true
				linked = cmp.Or(linked, fmt.Errorf("the copy of %q has %d names instead of %d", theirs.Path, ours.Links, theirs.Links))
				if err := removeIn(root, string(theirs.Path)); err != nil {
					return errors.Join(linked, err)
				}
				continue
			}
		}
		if linked == nil && *ours != theirs {
			return fmt.Errorf("the copy of %q differs: %+v instead of %+v", theirs.Path, *ours, theirs)
		}
	}
	var end last
	if err := readLine(from, &end); err != nil {
		return fmt.Errorf("the source's list of files has no end: %w", err)
	}
	if end.Error != "" {
		return errors.New("the source could not read all files: " + end.Error)
	}
	if linked != nil {
		return linked
	}
	err := walk(root, false, func(string, fs.FileInfo) error {
		count++
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the copy: %w", err)
	}
	if seen != end.Entries || count != end.Entries {
		return fmt.Errorf("the copy has %d files and directories instead of %d", count, end.Entries)
	}
	return nil
}

// removeIn removes a file below a directory, and follows no link out of it.
func removeIn(root, path string) error {
	directory, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = directory.Close() }()
	return directory.Remove(path)
}

// measure returns what a directory uses, and how many files and directories it has. What vanishes meanwhile does not count.
func measure(root string) (bytes, files int64, err error) {
	counted := map[uint64]bool{}
	err = walk(root, true, func(_ string, info fs.FileInfo) error {
		files++
		stat := info.Sys().(*syscall.Stat_t)
		if stat.Nlink > 1 && !info.IsDir() {
			if counted[stat.Ino] {
				return nil
			}
			counted[stat.Ino] = true
		}
		bytes += stat.Blocks * 512
		return nil
	})
	return bytes, files, err
}

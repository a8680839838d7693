package mover

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/howdah/howdah/internal/dataserver/durable"
)

// errLinked says that a file of the directory has another name outside of it.
var errLinked = errors.New("has hard links outside of the directory")

// walkInodes returns the inodes of a directory and of everything below it, sorted. A file with names outside of it is an error: its handles would be
// refused under these, too.
func walkInodes(root string) ([]uint64, error) {
	var inodes []uint64
	type file struct {
		seen, links uint64
		path        string
	}
	linked := map[uint64]*file{}
	err := walk(root, false, func(path string, info fs.FileInfo) error {
		stat := info.Sys().(*syscall.Stat_t)
		inodes = append(inodes, stat.Ino)
		if !info.IsDir() && stat.Nlink > 1 {
			if linked[stat.Ino] == nil {
				linked[stat.Ino] = &file{links: uint64(stat.Nlink), path: path} //nolint:unconvert // It is 32 bits on arm64.
			}
			linked[stat.Ino].seen++
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking at the directory: %w", err)
	}
	for _, file := range linked {
		if file.seen != file.links {
			return nil, fmt.Errorf("%q %w: %d names, of which %d are in it", file.path, errLinked, file.links, file.seen)
		}
	}
	slices.Sort(inodes)
	return slices.Compact(inodes), nil
}

// writeInodes writes a list for ganesha: sorted numbers of this machine.
func writeInodes(path string, inodes []uint64) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return fmt.Errorf("writing the inodes of a move: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // Fails after the rename, as it should.
	writer := bufio.NewWriterSize(file, 1<<20)
	var number [8]byte
	for _, inode := range inodes {
		binary.NativeEndian.PutUint64(number[:], inode)
		_, _ = writer.Write(number[:]) // Flush has the error.
	}
	err = errors.Join(writer.Flush(), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err == nil {
		err = durable.SyncDirectory(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("writing the inodes of a move: %w", err)
	}
	return nil
}

// inodeOf is the inode of a path.
func inodeOf(path string) (uint64, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Ino, nil
}

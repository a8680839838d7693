package mover

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
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
func (p place) writeInodes(inodes []uint64) error {
	list := make([]byte, 0, 8*len(inodes))
	for _, inode := range inodes {
		list = binary.NativeEndian.AppendUint64(list, inode)
	}
	if err := p.put(inodesFile, list); err != nil {
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

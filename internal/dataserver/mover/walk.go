package mover

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// walkBatch is how many entries of a directory are held in memory at a time: one can have millions.
const walkBatch = 1000

// walk visits a directory and everything below it, in no order. vanishing allows for what is removed meanwhile; the directory itself must be there.
func walk(root string, vanishing bool, visit func(path string, info fs.FileInfo) error) error {
	info, err := os.Lstat(root)
	if err != nil {
		return err
	}
	if err := visit(root, info); err != nil {
		return err
	}
	left := []string{root}
	for len(left) > 0 {
		at := left[len(left)-1]
		left = left[:len(left)-1]
		below, err := walkOne(at, vanishing, visit)
		if err != nil && !(vanishing && errors.Is(err, fs.ErrNotExist) && at != root) {
			return err
		}
		left = append(left, below...)
	}
	return nil
}

// walkOne visits the entries of one directory, and returns those that are directories.
func walkOne(directory string, vanishing bool, visit func(path string, info fs.FileInfo) error) (below []string, err error) {
	// A client may have put a symbolic link in its place.
	file, err := os.OpenFile(directory, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	for {
		entries, err := file.ReadDir(walkBatch)
		for _, entry := range entries {
			info, err := entry.Info()
			if vanishing && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			path := filepath.Join(directory, entry.Name())
			if err := visit(path, info); err != nil {
				return nil, err
			}
			if info.IsDir() {
				below = append(below, path)
			}
		}
		if errors.Is(err, io.EOF) {
			return below, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

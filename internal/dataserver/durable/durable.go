// Package durable replaces files so that a crash leaves the old text or the new one. It imports nothing of Howdah's.
package durable

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Write replaces a file by one with the text: after a crash at any moment
// the file has either the old text or the new one. It does nothing if the file has the text already.
func Write(path string, text []byte) error {
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() { _ = folder.Close() }()
	return WriteIn(folder, filepath.Base(path), text)
}

// WriteIn is Write for a name in a directory, which no symbolic link leads out of.
func WriteIn(folder *os.Root, name string, text []byte) error {
	path := filepath.Join(folder.Name(), name)
	if old, err := folder.ReadFile(name); err == nil && bytes.Equal(old, text) {
		if _, is := unsynced.Load(path); !is {
			return nil
		}
	}
	if err := replace(folder, name, text); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// unsynced are the paths of files whose last rename may not be durable: after an error of the volume a file has its new text as long as the text is in
// memory.
var unsynced sync.Map

func replace(folder *os.Root, name string, text []byte) error {
	next := name + ".new-" + rand.Text()
	file, err := folder.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Remove(next) }() // Fails after the rename, as it should.
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	path := filepath.Join(folder.Name(), name)
	unsynced.Store(path, true)
	if err := folder.Rename(next, name); err != nil {
		return err
	}
	if err := SyncIn(folder, filepath.Dir(name)); err != nil {
		return err
	}
	unsynced.Delete(path)
	return nil
}

// SyncIn makes renames and new entries of a directory durable.
func SyncIn(folder *os.Root, name string) error {
	directory, err := folder.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = directory.Close() }()
	return syncOf(directory)
}

// syncOf is replaced by tests.
var syncOf = (*os.File).Sync

// Package durable replaces files so that a crash leaves the old text or the new one. It imports nothing of Howdah's.
package durable

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
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
	if old, err := folder.ReadFile(name); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := replace(folder, name, text); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Join(folder.Name(), name), err)
	}
	return nil
}

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
	if err := folder.Rename(next, name); err != nil {
		return err
	}
	return SyncIn(folder, filepath.Dir(name))
}

// SyncIn makes renames and new entries of a directory durable.
func SyncIn(folder *os.Root, name string) error {
	directory, err := folder.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = directory.Close() }()
	return directory.Sync()
}

package realtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// scratchName begins the names of the folders that tests have on the disk while they run.
const scratchName = "howdah-ganesha-"

// newScratch makes a folder that this process holds a lock of until it ends, and removes those of tests that were killed: their locks are free.
// The lock is held as long as the file is not closed.
func newScratch(in string) (folder string, lock *os.File, err error) {
	if err := removeLeft(in); err != nil {
		return "", nil, err
	}
	for {
		if folder, err = os.MkdirTemp(in, scratchName); err != nil {
			return "", nil, err
		}
		lock, err = lockOf(folder)
		if err == nil {
			return folder, lock, nil
		}
		// Another test came between the two, and takes it for one that was left.
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK) {
			return "", nil, err
		}
	}
}

func removeLeft(in string) error {
	folders, err := filepath.Glob(filepath.Join(in, scratchName+"*"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		lock, err := lockOf(folder)
		if err != nil {
			continue // It is in use, or gone.
		}
		err = os.RemoveAll(folder)
		_ = lock.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// lockOf takes the lock of a folder that exists after that, too.
func lockOf(folder string) (*os.File, error) {
	lock, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		_, err = os.Stat(folder)
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

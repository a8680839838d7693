package removal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// deep makes directories in each other, with a file in each.
func deep(t *testing.T, folder string, levels int) {
	t.Helper()
	at, err := unix.Open(folder, unix.O_DIRECTORY, 0)
	for level := 0; level < levels && err == nil; level++ {
		err = unix.Mkdirat(at, "below", 0o700)
		if err != nil {
			break
		}
		next, openErr := unix.Openat(at, "below", unix.O_DIRECTORY, 0)
		_ = unix.Close(at)
		if err = openErr; err != nil {
			break
		}
		at = next
		file, openErr := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
		_ = unix.Close(file)
		err = openErr
	}
	_ = unix.Close(at)
	if err != nil {
		t.Fatal(err)
	}
}

// mayOpen limits the descriptors of this process.
func mayOpen(t *testing.T, most uint64) {
	t.Helper()
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: most, Max: before.Max}))
	t.Cleanup(func() { must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)) })
}

func TestDirectoriesDeepInEachOtherAreRemoved(t *testing.T) {
	folder, volume := open(t)
	must(t, os.Mkdir(filepath.Join(folder, "gone"), 0o700))
	for i := range 3 {
		branch := filepath.Join(folder, "gone", strconv.Itoa(i))
		must(t, os.Mkdir(branch, 0o700))
		deep(t, branch, 1000)
	}
	mayOpen(t, 256)
	must(t, Tree(t.Context(), volume, "gone"))
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

func TestAllEntriesOfALargeDirectoryAreRemoved(t *testing.T) {
	folder, volume := open(t)
	must(t, os.Mkdir(filepath.Join(folder, "gone"), 0o700))
	for i := range 3*batch + 1 {
		must(t, os.WriteFile(filepath.Join(folder, "gone", strconv.Itoa(i)), nil, 0o600))
	}
	must(t, Tree(t.Context(), volume, "gone"))
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

func TestNothingIsRemovedBehindALink(t *testing.T) {
	folder, volume := open(t)
	must(t, os.MkdirAll(filepath.Join(folder, "kept", "below"), 0o700))
	must(t, os.Mkdir(filepath.Join(folder, "gone"), 0o700))
	must(t, os.Symlink("../kept", filepath.Join(folder, "gone", "link")))
	must(t, os.Symlink("kept", filepath.Join(folder, "itself")))
	must(t, Tree(t.Context(), volume, "gone"))
	must(t, Tree(t.Context(), volume, "itself"))
	must(t, Tree(t.Context(), volume, "never/was"))
	if _, err := os.Stat(filepath.Join(folder, "kept", "below")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

func TestARemovalEndsWithItsContext(t *testing.T) {
	folder, volume := open(t)
	deep(t, folder, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Tree(ctx, volume, "below"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "below", "file")); err != nil {
		t.Error(err)
	}
}

func open(t *testing.T) (folder string, volume *os.Root) {
	t.Helper()
	folder = t.TempDir()
	volume, err := os.OpenRoot(folder)
	must(t, err)
	t.Cleanup(func() { must(t, volume.Close()) })
	return folder, volume
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

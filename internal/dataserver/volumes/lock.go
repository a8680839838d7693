package volumes

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lockEvery is the pause between two tries to take the lock.
	lockEvery = 50 * time.Millisecond
	// tellAfter is for how long a process waits before it tells so, and tellEvery how often it does then.
	tellAfter = 3 * time.Second
	tellEvery = 30 * time.Second
)

// Take waits until no other process serves from the volumes below a directory, and keeps others away until release. ok is false if the context ended before. waits is called
// now and then if that takes longer than usual.
//
// A pod that is deleted by force is gone from the API before its processes have ended, and the next one can start on the same node meanwhile. Two
// ganeshas would know nothing of each other's locks; and the second one puts the recovery records in order, so those of the first, whose clients
// had not all reclaimed, would be lost, and the clients' locks with them.
//
// What can't be locked is served all the same, as a file system without locks. Kubernetes keeps a volume with ReadWriteOnce from other nodes.
func Take(ctx context.Context, root string, log *slog.Logger, waits func()) (release func(), ok bool) {
	file, err := openLock(layout{root: root})
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) { // There are none with Ceph.
			log.Warn("can't find out whether another process serves from these volumes: their lock can't be opened", "err", err)
		}
		return func() {}, true
	}
	release = func() { _ = file.Close() }
	for next := time.Now().Add(tellAfter); ; {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return release, true
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			log.Warn("can't find out whether another process serves from these volumes: they can't be locked", "err", err)
			return release, true
		}
		if time.Now().After(next) {
			next = time.Now().Add(tellEvery)
			waits()
		}
		select {
		case <-ctx.Done():
			release()
			return nil, false
		case <-time.After(lockEvery):
		}
	}
}

// openLock opens what is locked: the first volume itself, so nothing is written to it before it is known to be the right one.
func openLock(where layout) (*os.File, error) {
	volume, err := where.open(0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = volume.Close() }()
	return volume.Open(".")
}

package mover

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// Clients of the target's other directories take the room that was there when the copy began. What was copied is of no use then, and keeps room from them.
func TestACopyWithoutRoomGivesBackWhatItHas(t *testing.T) {
	w := shortWorld(t)
	w.target.end()
	volume := filepath.Join(w.target.root, "0")
	if err := unix.Mount("tmpfs", volume, "tmpfs", 0, "size=16m"); errors.Is(err, unix.EPERM) {
		t.Skip("needs the right to mount")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.target.end()
		must(t, unix.Unmount(volume, unix.MNT_DETACH))
	})
	must(t, os.MkdirAll(filepath.Join(volume, share), 0o755))
	must(t, os.MkdirAll(movesIn(w.target.root, 0), 0o755))
	w.target.start()
	must(t, os.MkdirAll(w.shown(w.source), 0o755))
	must(t, os.WriteFile(filepath.Join(w.shown(w.source), "data"), make([]byte, 4<<20), 0o600))
	noise, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.shown(w.source), "noise"), noise[:4<<20], 0o600))
	want := contents(t, w.shown(w.source))

	reports := func(state internalv1.MoveState) func() bool {
		return func() bool {
			report := w.target.report()
			return report != nil && report.State == state
		}
	}
	w.source.set(w.task(internalv1.MoveSource))
	w.target.set(w.task(internalv1.MoveTarget))
	w.await("the directory is copied", reports(internalv1.MoveStateCaughtUp))
	neighbour := filepath.Join(volume, share, "neighbour")
	if err := os.WriteFile(neighbour, make([]byte, 16<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the volume is not full: %v", err)
	}
	w.await("there is no room", reports(internalv1.MoveStateRefused))
	if report := w.target.report(); report.Reason != internalv1.MoveNoRoom || report.Bytes == nil || *report.Bytes < 8<<20 {
		t.Errorf("%+v does not say what has no room", report)
	}
	var free unix.Statfs_t
	must(t, unix.Statfs(volume, &free))
	if room := int64(free.Bavail) * free.Bsize; room < 4<<20 {
		t.Errorf("%d bytes are free, and the copy has 4 MiB", room)
	}

	// When there is room it is copied again.
	must(t, os.Remove(neighbour))
	w.move.Sequence++ // It is tried every minute, and when its task changes.
	w.target.set(w.task(internalv1.MoveTarget))
	w.await("it is copied again", reports(internalv1.MoveStateCaughtUp))
	w.run()
	w.mustHaveMoved(want)
}

package dataserver

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/ganesha/realtest"
	"github.com/howdah/howdah/internal/serverpod"
)

// Ways out of ganesha's root, of internal/ganesha/build/tests/attack.c.
var (
	waysOfFiles = []string{
		"a path", "/proc of another process", "a handle, by a path", ".. of a descriptor", "a handle, by a descriptor", "chroot again", "chroot after exec",
	}
	waysOfTheSupervisor = []string{"memory of the supervisor", "ptrace of the supervisor", "descriptors of the supervisor"}
	// A pod never has the capabilities for these.
	waysOfOtherRights = []string{
		"a device node of the disk", "mount of proc", "mount namespace", "user namespace", "namespaces of the supervisor",
	}
)

const (
	attackOrder = serverpod.StateDir + "/attack"
	// outside is what no way may reach.
	outside = "/run/outside-of-ganesha"
)

// takenOverGaneshaStays: code in ganesha's process reaches the container's files, the node's disk and the supervisor without a root of ganesha's own,
// and nothing of that with it. The supervisor is kept by two things, each of which is enough.
func takenOverGaneshaStays(t *testing.T) {
	if isEmulated() {
		t.Skip("with QEMU ganesha can't enter a root directory of its own")
	}
	mustWork(t, "write", os.WriteFile(outside, []byte("outside"), 0o600))
	mustWork(t, "write", os.WriteFile("/run/ganesha-taken-over",
		[]byte("#!/bin/sh\nexport LD_PRELOAD=/usr/lib/howdah/attack.so\nexec "+serverpod.GaneshaBinary+" \"$@\"\n"), 0o755))
	ganeshaOf["own"] = "/run/ganesha-taken-over"
	t.Cleanup(func() {
		delete(ganeshaOf, "own")
		delete(withoutRoot, "own")
		mustWork(t, "let other processes in again", unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
	})
	for _, tc := range []struct {
		name          string
		root, keptOut bool
		reached       []string
	}{
		{"without a root of its own", false, false, slices.Concat(waysOfFiles, waysOfTheSupervisor)},
		{"without a root of its own, and kept out of the supervisor", false, true, waysOfFiles},
		{"in a root of its own", true, false, nil},
		{"in a root of its own, and kept out of the supervisor", true, true, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withoutRoot["own"] = !tc.root
			mustWork(t, "let other processes in", unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
			if tc.keptOut {
				mustWork(t, "keep other processes out", supervisor.KeepOut())
			}
			report := attackOwn(t)
			all := slices.Concat(waysOfFiles, waysOfTheSupervisor, waysOfOtherRights)
			for _, way := range all {
				got, tried := report[way]
				if want := slices.Contains(tc.reached, way); !tried || (got == "reached") != want {
					t.Errorf("%s: %q; reached is to be %v", way, got, want)
				}
			}
			for _, way := range slices.Sorted(maps.Keys(report)) {
				t.Logf("%s: %s", way, report[way])
			}
		})
	}
}

// attackOwn starts a data server whose volume is a file system of its own, tries all ways from within its ganesha, and returns what came of each.
func attackOwn(t *testing.T) map[string]string {
	s := boot(t, "own", 1)
	defer s.stop()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	// What a supervisor has: secrets in its memory, and descriptors outside.
	secret := []byte(realtest.NodeSecret)
	directory, err := os.Open("/")
	mustWork(t, "open", err)
	defer func() { _ = directory.Close() }()
	var disk syscall.Stat_t
	mustWork(t, "stat", syscall.Stat(realtest.NodeHosts, &disk))
	again, err := os.ReadFile("/usr/lib/howdah/chroot-again")
	mustWork(t, "read", err)
	mustWork(t, "write", os.WriteFile(filepath.Join(serverpod.StateDir, "chroot-again"), again, 0o755))
	report := attackOrder + ".report"
	if err := os.Remove(report); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	order := fmt.Sprintf("%d %d %d %d\n", addressOf(t, secret), len(secret), unix.Major(disk.Dev), unix.Minor(disk.Dev))
	mustWork(t, "write", os.WriteFile(attackOrder+".new", []byte(order), 0o600))
	mustWork(t, "order the attack", os.Rename(attackOrder+".new", attackOrder))
	defer func() { _ = os.Remove(attackOrder) }()
	var text []byte
	for deadline := time.Now().Add(timeout); ; time.Sleep(5 * time.Millisecond) {
		if text, err = os.ReadFile(report); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the attack does not end: %v", err)
		}
	}
	if string(secret) != realtest.NodeSecret {
		t.Error("the secret has changed")
	}
	s.mustLive(t, s.pid())
	came := map[string]string{}
	for line := range strings.Lines(string(text)) {
		way, what, _ := strings.Cut(strings.TrimSpace(line), "\t")
		came[way] = what
	}
	return came
}

// addressOf is where bytes are in this process's memory.
func addressOf(t *testing.T, bytes []byte) (address uint64) {
	_, err := fmt.Sscanf(fmt.Sprintf("%p", bytes), "0x%x", &address)
	mustWork(t, "read an address", err)
	return address
}

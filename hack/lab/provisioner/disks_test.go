package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testDisks are disks in a folder of the test's own, with real loop devices.
func testDisks(t *testing.T) disks {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root and loop devices")
	}
	// Not t.TempDir: a loop device can't go past the page cache on a tmpfs, which /tmp may be.
	dir, err := os.MkdirTemp("/var/tmp", "howdah-disks-")
	must(t, err)
	d := disks{images: filepath.Join(dir, "images"), mounts: filepath.Join(dir, "mounts")}
	t.Cleanup(func() {
		for _, volume := range []string{"a", "b", "c"} {
			if err := d.remove(volume); err != nil {
				t.Errorf("cleaning up: %v", err)
			}
		}
		must(t, os.RemoveAll(dir))
	})
	return d
}

// sizeOf is the size in bytes that df shows, and the id of the file system.
func sizeOf(t *testing.T, path string) (int64, unix.Fsid) {
	t.Helper()
	var stat unix.Statfs_t
	must(t, unix.Statfs(path, &stat))
	return int64(stat.Blocks) * stat.Bsize, stat.Fsid
}

func mustBeAbout(t *testing.T, what string, got, asked int64) {
	t.Helper()
	if got > asked || got < asked*9/10 {
		t.Errorf("%s: %d bytes, asked for %d", what, got, asked)
	}
}

func TestAVolumeIsAFileSystemOfTheAskedSize(t *testing.T) {
	d := testDisks(t)
	must(t, d.ensure("a", 1<<30))
	must(t, d.ensure("b", 1<<40))
	a, idOfA := sizeOf(t, d.path("a"))
	b, idOfB := sizeOf(t, d.path("b"))
	mustBeAbout(t, "a", a, 1<<30)
	mustBeAbout(t, "b", b, 1<<40)
	if idOfA == idOfB {
		t.Error("two volumes have one file system id")
	}
	var stat unix.Stat_t
	must(t, unix.Stat(d.image("b"), &stat))
	if taken := stat.Blocks * 512; taken > 256<<20 {
		t.Errorf("an empty volume of 1 TiB takes %d MiB", taken>>20)
	} else {
		t.Logf("an empty volume of 1 TiB takes %d MiB", taken>>20)
	}
	must(t, d.ensure("c", 16<<20))
	if err := os.WriteFile(filepath.Join(d.path("c"), "too-much"), make([]byte, 16<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("more went onto a volume than it has room for: %v", err)
	}
}

func mayResize(t *testing.T) bool {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	must(t, unix.Capget(&header, &data[0]))
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

func TestAVolumeGrowsWithItsData(t *testing.T) {
	d := testDisks(t)
	if !mayResize(t) {
		t.Skip("needs CAP_SYS_RESOURCE, as ext4 does for growing")
	}
	must(t, d.ensure("a", 1<<30))
	file := filepath.Join(d.path("a"), "file")
	must(t, os.WriteFile(file, []byte("kept"), 0o600))
	_, before := sizeOf(t, d.path("a"))
	for range 2 { // The second time changes nothing.
		must(t, d.grow("a", 2<<30))
		size, id := sizeOf(t, d.path("a"))
		mustBeAbout(t, "grown", size, 2<<30)
		if id != before {
			t.Errorf("the file system id is %v and was %v", id, before)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
	must(t, d.ensure("a", 1<<30))
	size, _ := sizeOf(t, d.path("a"))
	mustBeAbout(t, "asked for again with the size of before", size, 2<<30)
}

func TestVolumesComeBackAfterAPowerCut(t *testing.T) {
	d := testDisks(t)
	must(t, d.ensure("a", 1<<30))
	must(t, os.WriteFile(filepath.Join(d.path("a"), "file"), []byte("kept"), 0o600))
	device, err := d.device("a")
	must(t, err)
	_, err = tool("umount", d.path("a"))
	must(t, err)
	_, err = tool("losetup", "--detach", device)
	must(t, err)
	for range 2 { // The second time everything is mounted.
		must(t, d.mountAll())
		if text, err := os.ReadFile(filepath.Join(d.path("a"), "file")); err != nil || string(text) != "kept" {
			t.Errorf("%q, %v", text, err)
		}
	}
	if devices, err := d.device("a"); err != nil || len(devices) == 0 || slices.Contains([]byte(devices), '\n') {
		t.Errorf("loop devices %q, %v", devices, err)
	}
}

func TestARemovedVolumeLeavesNothing(t *testing.T) {
	d := testDisks(t)
	for range 2 { // Also when an earlier try ended before its end.
		must(t, d.ensure("a", 1<<30))
		must(t, d.remove("a"))
		must(t, d.remove("a"))
		if device, err := d.device("a"); err != nil || device != "" {
			t.Errorf("loop device %q, %v", device, err)
		}
		for _, folder := range []string{d.images, d.mounts} {
			if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
				t.Errorf("%v is still in %s, %v", entries, folder, err)
			}
		}
	}
}

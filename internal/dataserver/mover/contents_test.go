package mover

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// made are things that clients can make, each in a directory of its own.
var made = map[string]func(t *testing.T, in string){
	// A backup with rsync --fake-super keeps owners and modes in attributes, which rsync leaves out when it is asked for attributes once.
	"a backup's attributes": func(t *testing.T, in string) {
		touch(t, in+"/f")
		must(t, unix.Setxattr(in+"/f", "user.rsync.%stat", []byte("100644 0,0 1000:1000"), 0))
		must(t, unix.Setxattr(in, "user.rsync.%aacl", []byte("text"), 0))
	},
	"attributes": func(t *testing.T, in string) {
		touch(t, in+"/f")
		must(t, unix.Setxattr(in+"/f", "user.large", []byte(strings.Repeat("v", 3000)), 0))
		must(t, unix.Setxattr(in+"/f", "user."+strings.Repeat("k", 200), []byte{0, 255}, 0))
		must(t, unix.Setxattr(in, "user.empty", nil, 0))
		must(t, os.Chmod(in+"/f", 0o400))
	},
	"the longest names": func(t *testing.T, in string) {
		long := strings.Repeat("n", 255)
		at := filepath.Join(in, long)
		must(t, os.Mkdir(at, 0o700))
		touch(t, filepath.Join(at, long))
		link := filepath.Join(at, long[1:])
		if err := os.Symlink(strings.Repeat("s", 4000), link); errors.Is(err, unix.ENAMETOOLONG) {
			must(t, os.Symlink(strings.Repeat("s", 1023), link)) // XFS takes no more.
		} else {
			must(t, err)
		}
		must(t, os.Link(filepath.Join(at, long), filepath.Join(at, long[2:])))
		must(t, unix.Mkfifo(filepath.Join(at, long[3:]), 0o600))
		must(t, unix.Mknod(filepath.Join(at, long[4:]), unix.S_IFSOCK|0o600, 0))
	},
	"odd names": func(t *testing.T, in string) {
		for _, name := range []string{"-rf", " ", "\xff\xfe", "a\nb", "*", "\\", "\\#012", ".cvsignore", ".~tmp~", "#", ".f.AbCdEf"} {
			touch(t, filepath.Join(in, name))
			must(t, os.Mkdir(filepath.Join(in, "d"+name), 0o755))
		}
		must(t, os.WriteFile(filepath.Join(in, ".rsync-filter"), []byte("- *\n"), 0o600))
	},
	"modes and owners": func(t *testing.T, in string) {
		for _, mode := range []uint32{0, 0o1777, 0o2755, 0o4755, 0o6711, 0o7777} {
			at := filepath.Join(in, strconv.FormatUint(uint64(mode), 8))
			must(t, os.Mkdir(at, 0o700))
			touch(t, filepath.Join(at, "f"))
			if os.Getuid() == 0 {
				must(t, os.Chown(filepath.Join(at, "f"), 4321, 8765))
				must(t, os.Chown(at, 1234, 5678))
			} else if mode&0o700 == 0 {
				continue
			}
			must(t, unix.Chmod(filepath.Join(at, "f"), mode))
			must(t, unix.Chmod(at, mode))
		}
	},
	"times": func(t *testing.T, in string) {
		for name, at := range map[string]time.Time{"1970": time.Unix(0, 0), "before": time.Unix(-1, 999_999_999), "2038": time.Unix(1<<31, 1), "later": time.Unix(1<<33, 5)} {
			touch(t, filepath.Join(in, name))
			must(t, os.Mkdir(filepath.Join(in, "d"+name), 0o700))
			must(t, os.Symlink("x", filepath.Join(in, "l"+name)))
			for _, prefix := range []string{"", "d", "l"} {
				times := []unix.Timespec{unix.NsecToTimespec(at.UnixNano()), unix.NsecToTimespec(at.UnixNano())}
				must(t, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(in, prefix+name), times, unix.AT_SYMLINK_NOFOLLOW))
			}
		}
	},
	"second names": func(t *testing.T, in string) {
		must(t, os.Symlink("x", in+"/l"))
		must(t, unix.Mkfifo(in+"/p", 0o600))
		must(t, unix.Mknod(in+"/s", unix.S_IFSOCK|0o600, 0))
		for _, name := range []string{"/l", "/p", "/s"} {
			must(t, os.Link(in+name, in+name+"2"))
		}
	},
}

func touch(t *testing.T, path string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(path), 0o600))
}

// What differs between the copy and the directory for good makes clients wait for the end of each freeze, and the move never ends.
func TestWhateverClientsMakeMoves(t *testing.T) {
	w := shortWorld(t)
	for name, fill := range made {
		in := filepath.Join(w.shown(w.source), name)
		must(t, os.MkdirAll(in, 0o755))
		fill(t, in)
	}
	want := contents(t, w.shown(w.source))
	differs := ""
	w.watch = func() bool {
		if report := w.target.report(); report != nil && strings.Contains(report.Message, "differs") {
			differs = report.Message
		}
		return differs != ""
	}
	w.run()
	if differs != "" {
		t.Fatal(differs)
	}
	w.mustHaveMoved(want)
}

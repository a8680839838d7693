package volumes

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/exportids"
)

var quiet = slog.New(slog.DiscardHandler)

// emptyVolumes returns the layout of count empty volumes.
func emptyVolumes(t *testing.T, count int32) layout {
	t.Helper()
	where := layout{root: t.TempDir()}
	for index := range count {
		if err := os.Mkdir(where.volume(index), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return where
}

// tree returns the text of every file below a directory, by path.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			found[path] = "directory"
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAVolumeOfAnotherServerIsRefused(t *testing.T) {
	tests := map[string]struct {
		change  func(*internalv1.DataServer)
		index   int32
		refused bool
	}{
		"the same server again":                                {change: func(*internalv1.DataServer) {}},
		"a FileServer that was made again with the same names": {change: func(s *internalv1.DataServer) { s.Spec.ServerScope = "another-uid" }},
		"another ordinal":                                      {change: func(s *internalv1.DataServer) { s.Name = "training-1" }, refused: true},
		"another FileServer":                                   {change: func(s *internalv1.DataServer) { s.Spec.FileServerRef.Name = "other" }, refused: true},
		"another namespace":                                    {change: func(s *internalv1.DataServer) { s.Namespace = "other" }, refused: true},
		"another volume of the server":                         {change: func(*internalv1.DataServer) {}, index: 1, refused: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			where := emptyVolumes(t, 2)
			server := sampleServer(2)
			id := mustClaim(t, where, server, 0)
			if tc.index != 0 { // The volumes were swapped.
				mustWork(t, "swap", os.Rename(where.volume(0), where.volume(0)+".x"))
				mustWork(t, "swap", os.Rename(where.volume(1), where.volume(0)))
				mustWork(t, "swap", os.Rename(where.volume(0)+".x", where.volume(1)))
			}
			before := tree(t, where.root)
			tc.change(server)
			_, err := claimVolume(where, server, tc.index, quiet)
			if (err != nil) != tc.refused {
				t.Fatalf("refused: %v", err)
			}
			if !tc.refused {
				found, err := readMarker(opened(t, where.volume(0)))
				wanted := markerOf(server, 0)
				wanted.ID = id
				if err != nil || *found != wanted {
					t.Errorf("marker %+v, %v", found, err)
				}
				return
			}
			if !strings.Contains(err.Error(), "volume 0 of data server default/training-0") {
				t.Errorf("%v does not say which data server owns the volume", err)
			}
			if diff := cmp.Diff(before, tree(t, where.root)); diff != "" {
				t.Errorf("something was changed: %s", diff)
			}
		})
	}
	t.Run("a volume that is not there", func(t *testing.T) {
		if _, err := claimVolume(emptyVolumes(t, 1), sampleServer(2), 1, quiet); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a damaged marker", func(t *testing.T) {
		where := emptyVolumes(t, 1)
		mustWork(t, "mkdir", os.Mkdir(where.meta(0), 0o700))
		mustWork(t, "write", os.WriteFile(where.meta(0, markerFile), []byte("{"), 0o600))
		if _, err := claimVolume(where, sampleServer(1), 0, quiet); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%v", err)
		}
	})
}

func TestExportIDsAreNeverUsedAgain(t *testing.T) {
	where := emptyVolumes(t, 3)
	server := sampleServer(3)
	for index := range int32(3) {
		mustClaim(t, where, server, index)
	}
	owners := map[int32]string{}
	read := func() *exportids.Table {
		t.Helper()
		memory, err := New(where.root, quiet).ReadIDs(t.Context(), sampleServer(3))
		mustWork(t, "read", err)
		return memory
	}
	use := func(names ...string) {
		t.Helper()
		memory := read()
		for _, name := range names {
			mustWork(t, "allocate", memory.Allocate(name, nil))
		}
		mustWork(t, "write", New(where.root, quiet).WriteIDs(t.Context(), memory))
		for _, name := range names {
			for volume, id := range memory.IDs(name) {
				here := where.share(name, int32(volume))
				if other, used := owners[id]; id == 0 || (used && other != here) {
					t.Errorf("id %d is for %s and was for %q", id, here, other)
				}
				owners[id] = here
			}
		}
	}
	use("a", "b")
	first := read().IDs("a")
	use("c")
	use("a", "d")
	if !slices.Equal(first, read().IDs("a")) {
		t.Errorf("a had %v and has %v", first, read().IDs("a"))
	}
	// The volume with the newest ids is lost and made again. The others still have the highest id.
	high := read().HighWater
	mustWork(t, "lose a volume", os.RemoveAll(where.meta(2)))
	mustClaim(t, where, server, 2)
	if read().HighWater != high {
		t.Errorf("high water %d became %d", high, read().HighWater)
	}
	memory := read()
	mustWork(t, "allocate", memory.Allocate("e", nil))
	for _, id := range memory.IDs("e") {
		if owner, used := owners[id]; used {
			t.Errorf("id %d of %s came back", id, owner)
		}
	}
}

func TestADataServerListsTheSharesOnItsVolumes(t *testing.T) {
	where := emptyVolumes(t, 2)
	for index := range int32(2) {
		mustClaim(t, where, sampleServer(2), index)
	}
	list := func() []string {
		t.Helper()
		names, err := sharesOnVolumes(where, 2)
		mustWork(t, "look", err)
		return names
	}
	if names := list(); len(names) != 0 {
		t.Errorf("empty volumes have %q", names)
	}
	mustWork(t, "a share on one volume", os.Mkdir(where.share("kept", 1), 0o755))
	if names := list(); !slices.Equal(names, []string{"kept"}) {
		t.Errorf("volumes with one share have %q", names)
	}
	mustWork(t, "unmount", os.RemoveAll(where.volume(1)))
	if _, err := sharesOnVolumes(where, 2); err == nil {
		t.Error("no error for a volume that can't be read")
	}
}

func TestADamagedExportIDTableIsRefused(t *testing.T) {
	tests := map[string]struct {
		texts [2]string
		want  string
	}{
		"half a file":          {[2]string{`{"version":1,`, ``}, "damaged"},
		"a newer version":      {[2]string{`{"version":2}`, ``}, "version 2"},
		"a share without id":   {[2]string{`{"version":1,"shares":{"a":{}}}`, ``}, "no Export_Id"},
		"a copy of the volume": {[2]string{`{"version":1,"shares":{"a":{"exportID":1}}}`, `{"version":1,"shares":{"a":{"exportID":1}}}`}, "copied"},
		"an id beyond 16 bits": {[2]string{`{"version":1,"shares":{"a":{"exportID":65536}}}`, ``}, "no Export_Id"},
		"a number too large":   {[2]string{`{"version":1,"shares":{"a":{"exportID":4294967296}}}`, ``}, "damaged"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			where := emptyVolumes(t, 2)
			for index, text := range tc.texts {
				mustWork(t, "mkdir", os.Mkdir(where.meta(int32(index)), 0o700))
				if text != "" {
					mustWork(t, "write", os.WriteFile(where.meta(int32(index), exportIDsFile), []byte(text), 0o600))
				}
			}
			if _, err := New(where.root, quiet).ReadIDs(t.Context(), sampleServer(2)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v does not say %q", err, tc.want)
			}
		})
	}
}

func TestARootGetsItsAttributesOnceAndWhenTheyChange(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("chown needs root")
	}
	where := emptyVolumes(t, 1)
	path := where.share("share", 0)
	wanted := exportids.RootAttributes{Owner: 1000, Group: 2000, Mode: "2750"}
	mode := func() fs.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		mustWork(t, "stat", err)
		return info.Mode()
	}
	mustWork(t, "making it", prepareRoot(where, "share", 0, wanted, nil))
	if want := fs.ModeDir | fs.ModeSetgid | 0o750; mode() != want {
		t.Errorf("mode %v, not %v", mode(), want)
	}
	mustWork(t, "a user's chmod", os.Chmod(path, 0o711))
	mustWork(t, "again", prepareRoot(where, "share", 0, wanted, &wanted))
	if mode() != fs.ModeDir|0o711 {
		t.Errorf("the user's mode became %v", mode())
	}
	changed := exportids.RootAttributes{Owner: 1000, Group: 2000, Mode: "1777"}
	mustWork(t, "other attributes", prepareRoot(where, "share", 0, changed, &wanted))
	if want := fs.ModeDir | fs.ModeSticky | 0o777; mode() != want {
		t.Errorf("mode %v, not %v", mode(), want)
	}
	mustWork(t, "write", os.WriteFile(where.share("file", 0), nil, 0o600))
	if err := prepareRoot(where, "file", 0, wanted, nil); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("%v", err)
	}
}

// The first try may have failed after the rename, in a sync.
func TestARemovalIsMadeDurableAtEachTry(t *testing.T) {
	where := emptyVolumes(t, 1)
	mustClaim(t, where, sampleServer(1), 0)
	mustWork(t, "mkdir", os.MkdirAll(where.share("gone", 0), 0o755))
	for try := range 2 {
		var changes []string
		where.before = func(change string) { changes = append(changes, change) }
		mustWork(t, "discard", discard(where, "gone", 0, time.Unix(1, 0)))
		if !slices.Contains(changes, "make durable .howdah/trash") || !slices.Contains(changes, "make durable .") {
			t.Errorf("try %d: %v", try, changes)
		}
	}
}

// Deleting millions of files takes minutes. A data server that is stopped must not wait for that: its clients wait for the next one.
func TestEmptyingTheTrashEndsWithTheProcess(t *testing.T) {
	where := emptyVolumes(t, 1)
	mustClaim(t, where, sampleServer(1), 0)
	mustWork(t, "mkdir", os.MkdirAll(filepath.Join(where.share("gone", 0), "deep"), 0o755))
	mustWork(t, "discard", discard(where, "gone", 0, time.Unix(1, 0)))
	ctx, cancel := context.WithCancel(t.Context())
	where.before = func(string) { cancel() }
	if !emptyTrash(ctx, where, 1, quiet) {
		t.Error("nothing is left")
	}
	if _, err := os.Stat(where.meta(0, TrashDir, "gone.1000000000", "deep")); err != nil {
		t.Error(err)
	}
}

func TestTheTrashIsEmptiedAfterACrashToo(t *testing.T) {
	where := emptyVolumes(t, 2)
	for index := range int32(2) {
		mustClaim(t, where, sampleServer(2), index)
		mustWork(t, "mkdir", os.MkdirAll(filepath.Join(where.share("gone", index), "deep", "er"), 0o755))
		mustWork(t, "mkdir", os.MkdirAll(where.share("kept", index), 0o755))
		mustWork(t, "discard", discard(where, "gone", index, time.Unix(1, 0)))
		mustWork(t, "discard what is not there", discard(where, "gone", index, time.Unix(2, 0)))
		// Made again and removed again before the trash was emptied.
		mustWork(t, "mkdir", os.MkdirAll(where.share("gone", index), 0o755))
		mustWork(t, "discard", discard(where, "gone", index, time.Unix(3, 0)))
	}
	if emptyTrash(t.Context(), where, 2, quiet) {
		t.Error("something is left")
	}
	for path := range maps.Keys(tree(t, where.root)) {
		if strings.Contains(path, "gone") {
			t.Errorf("%s is still there", path)
		}
	}
	for index := range int32(2) {
		if _, err := os.Stat(where.share("kept", index)); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyTheRecoveryDirectoryInUseIsKept(t *testing.T) {
	tests := map[string]struct{ link, want string }{
		"with a link":    {"training-0.AAAAAA", "training-0 training-0.AAAAAA training-0.toolong"},
		"without a link": {"", "other-0.XXXXXX training-0.AAAAAA training-0.BBBBBB training-0.CCCCCC training-0.toolong"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, directory := range []string{"training-0.AAAAAA", "training-0.BBBBBB", "training-0.CCCCCC", "training-0.toolong", "other-0.XXXXXX"} {
				mustWork(t, "mkdir", os.MkdirAll(filepath.Join(root, "v4recov", directory, "client"), 0o700))
			}
			if tc.link != "" {
				mustWork(t, "link", os.Symlink(tc.link, filepath.Join(root, "v4recov", "training-0")))
			}
			mustWork(t, "prune", pruneRecovery(opened(t, root), "training-0"))
			entries, err := os.ReadDir(filepath.Join(root, "v4recov"))
			mustWork(t, "list", err)
			var names []string
			for _, entry := range entries {
				names = append(names, entry.Name())
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("left: %s, not %s", got, tc.want)
			}
		})
	}
	mustWork(t, "a volume without recovery records", pruneRecovery(opened(t, t.TempDir()), "training-0"))
}

// On its node's network a data server has the node's host name, and ganesha finds its clients by the host name.
func TestTheRecoveryRecordsFollowTheHostName(t *testing.T) {
	root := t.TempDir()
	mustWork(t, "a volume without recovery records", adoptRecovery(opened(t, root), "node-a"))
	client := filepath.Join("v4recov", "training-0.AAAAAA", "10.0.0.7-(5:owner)")
	mustWork(t, "mkdir", os.MkdirAll(filepath.Join(root, client), 0o700))
	mustWork(t, "no link: no grace period has ended", adoptRecovery(opened(t, root), "node-a"))
	mustWork(t, "link", os.Symlink("training-0.AAAAAA", filepath.Join(root, "v4recov", "training-0")))
	for _, host := range []string{"training-0", "node-a", "node-b.example.com", "node-b.example.com", "training-0"} {
		mustWork(t, "adopt as "+host, adoptRecovery(opened(t, root), host))
		mustWork(t, "prune as "+host, pruneRecovery(opened(t, root), host))
		if _, err := os.Stat(filepath.Join(root, "v4recov", host, "10.0.0.7-(5:owner)")); err != nil {
			t.Errorf("as %s: %v", host, err)
		}
		if entries, err := os.ReadDir(filepath.Join(root, "v4recov")); err != nil || len(entries) != 2 {
			t.Errorf("as %s: %v %v", host, entries, err)
		}
	}
	// Both are there only if one was copied: the newer one counts.
	mustWork(t, "mkdir", os.MkdirAll(filepath.Join(root, "v4recov", "node-a.BBBBBB"), 0o700))
	mustWork(t, "link", os.Symlink("node-a.BBBBBB", filepath.Join(root, "v4recov", "node-a")))
	past := unix.NsecToTimespec(time.Now().Add(-time.Hour).UnixNano())
	mustWork(t, "age", unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(root, "v4recov", "training-0"), []unix.Timespec{past, past}, unix.AT_SYMLINK_NOFOLLOW))
	mustWork(t, "adopt the newer one", adoptRecovery(opened(t, root), "training-0"))
	if target, err := os.Readlink(filepath.Join(root, "v4recov", "training-0")); target != "node-a.BBBBBB" {
		t.Error(target, err)
	}
}

func opened(t *testing.T, folder string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(folder)
	mustWork(t, "open "+folder, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func mustWork(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func mustClaim(t *testing.T, where layout, server *internalv1.DataServer, index int32) (id string) {
	t.Helper()
	id, err := claimVolume(where, server, index, quiet)
	mustWork(t, "claim", err)
	return id
}

func sampleServer(volumes int32) *internalv1.DataServer {
	return &internalv1.DataServer{
		ObjectMeta: metav1.ObjectMeta{Name: "training-0", Namespace: "default", Generation: 1},
		Spec: internalv1.DataServerSpec{
			FileServerRef: internalv1.FileServerReference{Name: "training"}, ServerScope: "8c5b9a0e-2c57-4d6e-9c0e-0d6f7f0a1b2c",
			LeaseSeconds: 10, GraceSeconds: 20, Volumes: volumes,
			// The volumes of most tests are folders.
			SharedFileSystemPolicy: v1alpha1.SharedFileSystemAllow,
		},
	}
}

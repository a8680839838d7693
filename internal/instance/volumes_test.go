package instance

import (
	"encoding/binary"
	"errors"
	"fmt"
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

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

var quiet = slog.New(slog.DiscardHandler)

// emptyVolumes are so many fresh volumes.
func emptyVolumes(t *testing.T, count int32) layout {
	t.Helper()
	where := layout{t.TempDir()}
	for index := range count {
		if err := os.Mkdir(where.volume(index), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return where
}

// tree is every file below a directory with its text.
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

func TestWhoseVolumeItIs(t *testing.T) {
	tests := map[string]struct {
		change  func(*internalv1.DataServer)
		index   int32
		refused bool
	}{
		"the same server again":                              {change: func(*internalv1.DataServer) {}},
		"a FileServer that was made again by the same names": {change: func(s *internalv1.DataServer) { s.Spec.ServerScope = "another-uid" }},
		"another ordinal":                                    {change: func(s *internalv1.DataServer) { s.Name = "training-1" }, refused: true},
		"another FileServer":                                 {change: func(s *internalv1.DataServer) { s.Spec.FileServerRef.Name = "other" }, refused: true},
		"another namespace":                                  {change: func(s *internalv1.DataServer) { s.Namespace = "other" }, refused: true},
		"another volume of the server":                       {change: func(*internalv1.DataServer) {}, index: 1, refused: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			where := emptyVolumes(t, 2)
			server := sampleServer(2)
			mustWork(t, "the first claim", claimVolume(where, server, 0, quiet))
			if tc.index != 0 { // The volumes were swapped.
				mustWork(t, "swap", os.Rename(where.volume(0), where.volume(0)+".x"))
				mustWork(t, "swap", os.Rename(where.volume(1), where.volume(0)))
				mustWork(t, "swap", os.Rename(where.volume(0)+".x", where.volume(1)))
			}
			before := tree(t, where.root)
			tc.change(server)
			err := claimVolume(where, server, tc.index, quiet)
			if (err != nil) != tc.refused {
				t.Fatalf("refused: %v", err)
			}
			if !tc.refused {
				found, err := readMarker(where.meta(0, markerFile))
				if err != nil || *found != markerOf(server, 0) {
					t.Errorf("marker %+v, %v", found, err)
				}
				return
			}
			if !strings.Contains(err.Error(), "volume 0 of data server default/training-0") {
				t.Errorf("%v does not say whose it is", err)
			}
			if diff := cmp.Diff(before, tree(t, where.root)); diff != "" {
				t.Errorf("something was changed: %s", diff)
			}
		})
	}
	t.Run("a volume that is not there", func(t *testing.T) {
		if err := claimVolume(emptyVolumes(t, 1), sampleServer(2), 1, quiet); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a damaged marker", func(t *testing.T) {
		where := emptyVolumes(t, 1)
		mustWork(t, "mkdir", os.Mkdir(where.meta(0), 0o700))
		mustWork(t, "write", os.WriteFile(where.meta(0, markerFile), []byte("{"), 0o600))
		if err := claimVolume(where, sampleServer(1), 0, quiet); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%v", err)
		}
	})
}

func TestExportIDsAreNeverUsedAgain(t *testing.T) {
	where := emptyVolumes(t, 3)
	server := sampleServer(3)
	for index := range int32(3) {
		mustWork(t, "claim", claimVolume(where, server, index, quiet))
	}
	owners := map[int32]string{}
	read := func() *exportIDTable {
		t.Helper()
		memory, err := readExportIDs(where, 3)
		mustWork(t, "read", err)
		return memory
	}
	use := func(names ...string) {
		t.Helper()
		memory := read()
		for _, name := range names {
			mustWork(t, "allocate", memory.allocate(name, nil))
		}
		mustWork(t, "write", memory.write(where))
		for _, name := range names {
			for volume, id := range memory.ids(name) {
				here := where.share(name, int32(volume))
				if other, used := owners[id]; id == 0 || (used && other != here) {
					t.Errorf("id %d is for %s and was for %q", id, here, other)
				}
				owners[id] = here
			}
		}
	}
	use("a", "b")
	first := read().ids("a")
	use("c")
	use("a", "d")
	if !slices.Equal(first, read().ids("a")) {
		t.Errorf("a had %v and has %v", first, read().ids("a"))
	}
	// The volume with the newest ids is lost and made anew: the others remember how far ids went.
	high := read().highWater
	mustWork(t, "lose a volume", os.RemoveAll(where.meta(2)))
	mustWork(t, "claim", claimVolume(where, server, 2, quiet))
	if read().highWater != high {
		t.Errorf("high water %d became %d", high, read().highWater)
	}
	memory := read()
	mustWork(t, "allocate", memory.allocate("e", nil))
	for _, id := range memory.ids("e") {
		if owner, used := owners[id]; used {
			t.Errorf("id %d of %s came back", id, owner)
		}
	}
}

func TestADataServerTellsWhichSharesItsVolumesHave(t *testing.T) {
	where := emptyVolumes(t, 2)
	for index := range int32(2) {
		mustWork(t, "claim", claimVolume(where, sampleServer(2), index, quiet))
	}
	told := func() string {
		t.Helper()
		digest, err := sharesOnVolumes(where, 2)
		mustWork(t, "look", err)
		return *digest
	}
	if digest := told(); digest != "" {
		t.Errorf("empty volumes have %q", digest)
	}
	mustWork(t, "a share on one volume", os.Mkdir(where.share("kept", 1), 0o755))
	if digest := told(); !naming.DigestMayHave(digest, naming.ShareDirectoryName("kept")) || naming.DigestMayHave(digest, naming.ShareDirectoryName("other")) {
		t.Errorf("volumes with one share have %q", digest)
	}
	mustWork(t, "unmount", os.RemoveAll(where.volume(1)))
	if _, err := sharesOnVolumes(where, 2); err == nil {
		t.Error("a volume that can't be read has no shares")
	}
}

func TestAnExportIDTableThatCannotBeTrustedIsRefused(t *testing.T) {
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
			if _, err := readExportIDs(where, 2); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v does not say %q", err, tc.want)
			}
		})
	}
}

// Exports that came and went don't use up the ids: they go round, past those that are in use.
func TestExportIDsGoRound(t *testing.T) {
	table := &exportIDTable{highWater: maxExportID - 1, volumes: []map[string]exportIDEntry{
		{"old": {ExportID: 1}, "used": {ExportID: 2}, "forgotten": {ExportID: 3}},
	}}
	inUse := map[string]bool{"used": true}
	allocate := func(share string) exportNumber {
		t.Helper()
		mustWork(t, "allocate", table.allocate(share, inUse))
		inUse[share] = true
		return table.volumes[0][share].ExportID
	}
	if last := allocate("last"); last != maxExportID || last.round() != 0 {
		t.Errorf("the last of the first round is %d", last)
	}
	if n := allocate("next"); n.id() != 1 || n.round() != 1 {
		t.Errorf("after the last id comes %d in round %d", n.id(), n.round())
	}
	if _, known := table.volumes[0]["old"]; known {
		t.Error("two shares have id 1")
	}
	if n := allocate("more"); n.id() != 3 || n.round() != 1 {
		t.Errorf("id 2 is in use, and the next one is %d in round %d", n.id(), n.round())
	}
	rounds := table.rounds()
	for id, want := range map[int]uint16{1: 1, 2: 0, 3: 1, maxExportID: 0} {
		if got := binary.NativeEndian.Uint16(rounds[2*id:]); got != want {
			t.Errorf("id %d is of round %d, not %d", id, got, want)
		}
	}
	where := emptyVolumes(t, 1)
	mustWork(t, "mkdir", os.Mkdir(where.meta(0), 0o700))
	mustWork(t, "write", table.write(where))
	again, err := readExportIDs(where, 1)
	mustWork(t, "read", err)
	if diff := cmp.Diff(table.volumes, again.volumes); diff != "" || again.highWater != table.highWater {
		t.Errorf("what was written is not what is read: %s, %d", diff, again.highWater)
	}
}

// A data server in its third round gives no number, and no pair of id and round, a second time, whatever comes and goes.
func TestNoExportNumberComesBack(t *testing.T) {
	table := &exportIDTable{volumes: []map[string]exportIDEntry{{}, {}}}
	given, inUse := map[exportNumber]bool{}, map[string]bool{}
	for i := range 3000 {
		if i%1000 == 999 {
			table.highWater = table.highWater - exportNumber(table.highWater.id()) + maxExportID - 100 // Near the end of the round.
		}
		share := fmt.Sprintf("share-%d", i)
		if i%100 == 0 {
			inUse[share] = true // It stays for ever.
		}
		mustWork(t, "allocate", table.allocate(share, inUse))
		for volume := range table.volumes {
			number := table.volumes[volume][share].ExportID
			if given[number] || number.id() == 0 {
				t.Fatalf("number %d (id %d, round %d) was given before", number, number.id(), number.round())
			}
			given[number] = true
		}
	}
	ids := map[uint16]string{}
	for volume, shares := range table.volumes {
		for share, entry := range shares {
			if other, taken := ids[entry.ExportID.id()]; taken {
				t.Fatalf("id %d is that of %s and of %s", entry.ExportID.id(), other, share)
			}
			ids[entry.ExportID.id()] = fmt.Sprintf("%s on %d", share, volume)
		}
	}
	if round := table.highWater.round(); round < 2 {
		t.Errorf("only %d rounds", round)
	}
}

func TestIDsEnd(t *testing.T) {
	full, inUse := map[string]exportIDEntry{}, map[string]bool{}
	for id := range exportNumber(maxExportID - 1) {
		share := fmt.Sprintf("share-%d", id)
		full[share], inUse[share] = exportIDEntry{ExportID: id + 1}, true
	}
	table := &exportIDTable{highWater: maxExportID - 1, volumes: []map[string]exportIDEntry{full, {}}}
	// A share of two volumes for which there is one id takes none.
	if err := table.allocate("pair", inUse); !errors.Is(err, errExportIDsExhausted) || table.highWater != maxExportID-1 {
		t.Errorf("%v, high water %d", err, table.highWater)
	}
	delete(inUse, "share-0")
	mustWork(t, "with one share less", table.allocate("pair", inUse))
	if got := table.ids("pair"); !slices.Equal(got, []int32{maxExportID, 1}) {
		t.Errorf("ids %v", got)
	}
}

// The volumes are those of an hour ago: shares have come, and one has gone, that they don't know of.
func TestNoIDComesBackWithAnOlderCopyOfTheVolumes(t *testing.T) {
	where := emptyVolumes(t, 1)
	server := sampleServer(1)
	mustWork(t, "claim", claimVolume(where, server, 0, quiet))
	m := &manager{where: where, dataServer: server, log: quiet, ganesha: &supervisor{roundsFile: filepath.Join(t.TempDir(), "rounds")}, reporter: &memorySource{}}
	export := func(names ...string) {
		t.Helper()
		memory, err := readExportIDs(where, 1)
		mustWork(t, "read", err)
		m.memory, m.failing, m.exports = memory, map[string]*fault{}, nil
		for _, name := range names {
			m.exports = append(m.exports, newExport(shareSpec(name)))
		}
		_, err = m.allocate()
		mustWork(t, "allocate", err)
		mustWork(t, "tell", m.tellShares(t.Context()))
		m.dataServer.Status = m.reporter.(*memorySource).status
	}
	export("a", "b")
	older, err := os.ReadFile(where.meta(0, exportIDsFile))
	mustWork(t, "keep a copy", err)
	export("a", "b", "gone")
	gone := m.memory.ids("gone")[0]
	export("a", "b")
	mustWork(t, "restore the copy", os.WriteFile(where.meta(0, exportIDsFile), older, 0o600))
	export("a", "b", "new")
	if id := m.memory.ids("new")[0]; id <= gone {
		t.Errorf("a share that is gone had id %d, and a new one has %d", gone, id)
	}
}

func TestReportedIDsCountAsUsed(t *testing.T) {
	memory := &exportIDTable{highWater: 3, volumes: []map[string]exportIDEntry{{}}}
	for _, number := range []int64{7, 2, 0, -1, 1 << 40} {
		memory.raise(number)
	}
	mustWork(t, "allocate", memory.allocate("a", nil))
	if id := memory.ids("a")[0]; id != 8 {
		t.Errorf("id %d", id)
	}
}

func TestARootGetsItsAttributesOnceAndWhenTheyChange(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("chown needs root")
	}
	path := filepath.Join(t.TempDir(), "share")
	wanted := rootAttributes{Owner: 1000, Group: 2000, Mode: "2750"}
	mode := func() fs.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		mustWork(t, "stat", err)
		return info.Mode()
	}
	mustWork(t, "making it", prepareRoot(path, wanted, nil))
	if want := fs.ModeDir | fs.ModeSetgid | 0o750; mode() != want {
		t.Errorf("mode %v, not %v", mode(), want)
	}
	mustWork(t, "a user's chmod", os.Chmod(path, 0o711))
	mustWork(t, "again", prepareRoot(path, wanted, &wanted))
	if mode() != fs.ModeDir|0o711 {
		t.Errorf("the user's mode became %v", mode())
	}
	changed := rootAttributes{Owner: 1000, Group: 2000, Mode: "1777"}
	mustWork(t, "other attributes", prepareRoot(path, changed, &wanted))
	if want := fs.ModeDir | fs.ModeSticky | 0o777; mode() != want {
		t.Errorf("mode %v, not %v", mode(), want)
	}
	file := path + ".file"
	mustWork(t, "write", os.WriteFile(file, nil, 0o600))
	if err := prepareRoot(file, wanted, nil); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("%v", err)
	}
}

func TestTheTrashIsEmptiedAfterACrashToo(t *testing.T) {
	where := emptyVolumes(t, 2)
	for index := range int32(2) {
		mustWork(t, "claim", claimVolume(where, sampleServer(2), index, quiet))
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
		"with a link":    {"training-0.AAAAAA", "other-0.XXXXXX training-0 training-0.AAAAAA training-0.toolong"},
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
			mustWork(t, "prune", pruneRecovery(root, "training-0"))
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
	mustWork(t, "a volume without recovery records", pruneRecovery(t.TempDir(), "training-0"))
}

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	mustWork(t, "write", writeDurably(path, []byte("one")))
	before, err := os.Stat(path)
	mustWork(t, "stat", err)
	mustWork(t, "the same text", writeDurably(path, []byte("one")))
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the same text made another file: %v", err)
	}
	mustWork(t, "another text", writeDurably(path, []byte("two")))
	if got := tree(t, filepath.Dir(path)); len(got) != 2 || got[path] != "two" {
		t.Errorf("%v", got)
	}
}

package mover

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestWhatFits(t *testing.T) {
	const gigabyte = 1_000_000_000
	for name, tc := range map[string]struct {
		bytes, have, free, total, files, freeFiles, totalFiles int64
		want                                                   string
	}{
		"much room":                       {bytes: gigabyte, free: 10 * gigabyte, total: 100 * gigabyte},
		"too little":                      {bytes: 9 * gigabyte, free: 10 * gigabyte, total: 100 * gigabyte, want: "has 10000 MB free, and 11000 MB are needed"},
		"most was copied before":          {bytes: 9 * gigabyte, have: 8 * gigabyte, free: 4 * gigabyte, total: 100 * gigabyte},
		"too few inodes":                  {bytes: 1, free: gigabyte, total: gigabyte, files: 100, freeFiles: 99, totalFiles: 1000, want: "room for 99 files"},
		"a file system that counts none":  {bytes: 1, free: gigabyte, total: gigabyte, files: 100},
		"nothing to copy, and no room":    {free: 1, total: gigabyte, want: "20 MB are needed"},
		"more was copied than there is":   {bytes: 1, have: 2, free: gigabyte, total: gigabyte},
		"inodes of what was copied count": {bytes: 1, have: 1, free: gigabyte, total: gigabyte, files: 100, freeFiles: 1, totalFiles: 1000},
	} {
		err := fits(tc.bytes, tc.have, tc.free, tc.total, tc.files, tc.freeFiles, tc.totalFiles)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASenderTakesOnlyWhatReads(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		good bool
	}{
		"what rsync gives":      {[]string{"rsync", "--server", "--sender", "-slHogtpAXrSe.iLsfxCIvu", "--specials", "--bwlimit=10", "--numeric-ids", "--inplace", ".", "/"}, true},
		"a receiver":            {[]string{"rsync", "--server", "-logDtpre.iLsfxCIvu", ".", "/volumes/0"}, false},
		"one that removes":      {[]string{"rsync", "--server", "--sender", "-re.i", "--remove-source-files", ".", "."}, false},
		"one that writes a log": {[]string{"rsync", "--server", "--sender", "-re.i", "--log-file=/volumes/0/x", ".", "."}, false},
		"files from elsewhere":  {[]string{"rsync", "--server", "--sender", "-re.i", "--files-from=/etc/passwd", ".", "."}, false},
		"another program":       {[]string{"sh", "--server", "--sender", "-re.i", ".", "."}, false},
		"nothing":               {nil, false},
	} {
		arguments, err := senderArguments(tc.args)
		if (err == nil) != tc.good {
			t.Errorf("%s: %q, %v", name, arguments, err)
		}
		if err == nil && (slices.Contains(arguments, ".") || slices.Contains(arguments, "/")) {
			t.Errorf("%s: the path is taken: %q", name, arguments)
		}
	}
}

// A file that changes without another size or time is found, because its content is compared.
func TestAManifestFindsEveryDifference(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	for name, change := range map[string]func(directory string) error{
		"nothing": nil,
		"content": func(d string) error {
			return os.WriteFile(filepath.Join(d, "file1"), []byte{7}, 0o640)
		},
		"mode":        func(d string) error { return os.Chmod(filepath.Join(d, "file1"), 0o600) },
		"a link":      func(d string) error { return os.Symlink("x", filepath.Join(d, "new")) },
		"a directory": func(d string) error { return os.Mkdir(filepath.Join(d, "new"), 0o755) },
		"gone":        func(d string) error { return os.Remove(filepath.Join(d, "file0")) },
		"another target": func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "link")), os.Symlink("file3", filepath.Join(d, "link")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			make2 := func() string {
				directory := t.TempDir()
				must(t, os.WriteFile(filepath.Join(directory, "file0"), nil, 0o640))
				must(t, os.WriteFile(filepath.Join(directory, "file1"), []byte{1}, 0o640))
				must(t, os.Symlink("file1", filepath.Join(directory, "link")))
				return directory
			}
			source, target := make2(), make2()
			if change != nil {
				must(t, change(target))
			}
			for _, directory := range []string{source, target} {
				for _, file := range []string{"file0", "file1", "."} {
					if err := os.Chtimes(filepath.Join(directory, file), long, long); err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
				}
				must(t, setLinkTime(filepath.Join(directory, "link"), long))
			}
			var manifest bytes.Buffer
			must(t, writeManifest(&manifest, source, time.Time{}))
			err := compareManifest(bufio.NewReader(&manifest), target)
			if (err == nil) != (change == nil) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAFileWithANameElsewhereDoesNotMove(t *testing.T) {
	root := t.TempDir()
	inside := filepath.Join(root, "inside")
	must(t, os.Mkdir(inside, 0o755))
	must(t, os.WriteFile(filepath.Join(inside, "a"), nil, 0o600))
	must(t, os.Link(filepath.Join(inside, "a"), filepath.Join(inside, "b")))
	if inodes, err := walkInodes(inside); err != nil || len(inodes) != 2 {
		t.Fatalf("%v, %v", inodes, err)
	}
	must(t, os.Link(filepath.Join(inside, "a"), filepath.Join(root, "c")))
	if _, err := walkInodes(inside); err == nil || !strings.Contains(err.Error(), "3 names, of which 2 are in it") {
		t.Errorf("%v", err)
	}
}

func TestTheListForGanesha(t *testing.T) {
	root, now := t.TempDir(), time.Unix(1000, 0)
	must(t, os.MkdirAll(filepath.Join(root, "0", "s", "f"), 0o755))
	parent, err := inodeOf(filepath.Join(root, "0", "s"))
	must(t, err)
	journals := []*journal{
		{ID: "copying", Share: "s", Path: "x", Stage: stageCopying},
		{ID: "frozen-1", Share: "s", Path: "a/b", Stage: stageFrozen, Parent: 5, Top: 2},
		{ID: "left-new", Share: "s", Path: "c", Stage: stageLeft, Parent: parent, Top: 2, Left: now.Add(-time.Second)},
		{ID: "left-old", Share: "s", Path: "d", Stage: stageLeft, Parent: parent, Top: 2, Left: now.Add(-time.Hour - time.Second)},
		{ID: "came-back", Share: "s", Path: "e", Stage: stageLeft, Parent: parent, Top: 2, Left: now.Add(-time.Second)},
		{ID: "returning", Share: "s", Path: "e", Stage: stagePlacing},
		{ID: "gone-again", Share: "s", Path: "h", Stage: stageLeft, Parent: parent, Top: 2, Left: now.Add(-time.Second)},
		{ID: "had-come", Share: "s", Path: "h", Stage: stagePlaced}, // Its source has not answered yet.
		{ID: "elsewhere", Share: "s", Path: "g", Stage: stageLeft, Parent: parent + 1, Top: 2, Left: now.Add(-time.Second)},
		{ID: "made-again", Share: "s", Path: "f", Stage: stageLeft, Parent: parent, Top: 2, Left: now.Add(-time.Second)},
	}
	must(t, os.MkdirAll(volumeIn(root, 0), 0o755))
	must(t, place{root: root, id: "frozen-1"}.writeInodes([]uint64{1, 2}))
	text, merged, err := ganeshaList(root, filepath.Join(root, "moving"), journals, now, "7")
	must(t, err)
	if len(merged) > 0 {
		t.Errorf("%v for few directories", merged)
	}
	export := encode(filepath.Join(root, "0", "s"))
	left := fmt.Sprintf("stale %s %d ", export, parent)
	want := strings.Join([]string{
		"delay " + export + " 5 " + encode("b") + " " + encode(filepath.Join(movesIn(root, 0), "frozen-1", inodesFile)),
		"delay " + export + " 2 " + encode(hiddenPrefix+"frozen-1") + " -",
		left + encode("c") + " -",
		"stale " + export + " 2 " + encode(hiddenPrefix+"left-new") + " -",
		left + "- -",
		"stale " + export + " 2 " + encode(hiddenPrefix+"left-old") + " -",
		left + "- -",
		"stale " + export + " 2 " + encode(hiddenPrefix+"came-back") + " -",
		left + encode("h") + " -",
		"stale " + export + " 2 " + encode(hiddenPrefix+"gone-again") + " -",
		fmt.Sprintf("stale %s %d - -", export, parent+1),
		"stale " + export + " 2 " + encode(hiddenPrefix+"elsewhere") + " -",
		left + "- -",
		"stale " + export + " 2 " + encode(hiddenPrefix+"made-again") + " -",
		"end 7", "",
	}, "\n")
	if text != want {
		t.Errorf("%s\ninstead of\n%s", text, want)
	}
}

// setLinkTime sets the time of a symbolic link itself.
func setLinkTime(path string, at time.Time) error {
	stamp := unix.NsecToTimeval(at.UnixNano())
	return unix.Lutimes(path, []unix.Timeval{stamp, stamp})
}

func TestAClockThatWentBackIsSeen(t *testing.T) {
	const since = int64(1_000_000_000_000)
	for name, tc := range map[string]struct {
		since   int64
		now     time.Duration
		elapsed time.Duration
		want    bool
	}{
		"it goes on":           {since, time.Minute, time.Minute, false},
		"a little slower":      {since, 58500 * time.Millisecond, time.Minute, false},
		"an hour back":         {since, time.Minute - time.Hour, time.Minute, true},
		"five seconds back":    {since, 55 * time.Second, time.Minute, true},
		"an hour ahead":        {since, time.Hour, time.Minute, false},
		"nothing was compared": {0, 0, time.Hour, false},
	} {
		if got := hasGoneBack(tc.since, tc.since+int64(tc.now), tc.elapsed); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

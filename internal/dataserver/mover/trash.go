package mover

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/howdah/howdah/internal/naming"
)

// Ganesha takes mostLines lines (MOVES_MAX of patch 0432), and does not start with more: it would serve what has moved. What is in the trash stays in the list
// for a day, so a data server that is emptied comes to thousands. Ganesha needs no more of an old one than its inodes, and those of one export can be in one
// line. An export that has any of them needs one, so mostExports is how many exports may have something in the trash.
const (
	mostLines   = 256
	mostExports = 192
	// linesEach is how many lines a directory has: its name with the inodes, and its hidden name.
	linesEach = 2
	// trashPrefix begins the names of the files with the inodes of many directories. They are beside the list.
	trashPrefix = "-left-"
	// trashFileKept is how long such a file stays in any case.
	trashFileKept = time.Minute
)

// trash is the inodes of an export's older directories in the trash, in one file.
type trash struct {
	export, file string
	from         []string
}

// exportOf is what a line of the list is about.
type exportOf struct {
	share  string
	volume int32
}

func (j *journal) exportOf() exportOf { return exportOf{j.Share, j.Volume} }

// fitting divides what ganesha refuses into directories that have lines of their own, those in the trash last and the newest of them first, and older ones.
func fitting(all []*journal) (lines, older []*journal) {
	var left []*journal
	for _, j := range all {
		switch {
		case !isListed(j):
		case j.Stage == stageLeft:
			left = append(left, j)
		default:
			lines = append(lines, j)
		}
	}
	room := (mostLines-1)/linesEach - len(lines)
	if len(left) <= room {
		return append(lines, left...), nil
	}
	slices.SortFunc(left, func(a, b *journal) int { return cmp.Or(b.Left.Compare(a.Left), strings.Compare(a.ID, b.ID)) })
	room = max(0, ((mostLines-1)-linesEach*len(lines)-len(exportsOf(left)))/linesEach)
	return append(lines, left[:room]...), left[room:]
}

func exportsOf(journals []*journal) map[exportOf]bool {
	exports := map[exportOf]bool{}
	for _, j := range journals {
		exports[j.exportOf()] = true
	}
	return exports
}

// hasRoomFor tells whether the list has room for one more directory of an export in the trash.
func hasRoomFor(all []*journal, export exportOf) error {
	exports := exportsOf(slices.DeleteFunc(slices.Clone(all), func(j *journal) bool { return j.Stage != stageLeft }))
	exports[export] = true
	if len(exports) > mostExports {
		return fmt.Errorf("the trash of this data server has directories of %d shares and volumes, and ganesha takes no more: the next one moves when it has fewer (spec.moves.trashSeconds of the FileServer)",
			mostExports)
	}
	return nil
}

// trashOf groups directories in the trash by their exports. What is in a file follows from which directories it is of.
func trashOf(root, listFile string, older []*journal) []trash {
	by := map[exportOf][]*journal{}
	for _, j := range older {
		by[j.exportOf()] = append(by[j.exportOf()], j)
	}
	exports := slices.SortedFunc(maps.Keys(by), func(a, b exportOf) int {
		return cmp.Or(strings.Compare(a.share, b.share), cmp.Compare(a.volume, b.volume))
	})
	merged := make([]trash, 0, len(exports))
	for _, export := range exports {
		t := trash{export: naming.ExportDirectory(root, export.share, export.volume)}
		sum := sha256.New()
		fmt.Fprintln(sum, t.export)
		for _, j := range by[export] {
			fmt.Fprintln(sum, j.ID)
			t.from = append(t.from, placeOf(root, j).inodes())
		}
		t.file = listFile + trashPrefix + hex.EncodeToString(sum.Sum(nil))
		merged = append(merged, t)
	}
	return merged
}

// writeList returns a list, and writes the files that it names.
func writeList(root, listFile string, all []*journal, now time.Time, number string) (string, error) {
	text, merged, err := ganeshaList(root, listFile, all, now, number)
	if err != nil {
		return "", err
	}
	for _, t := range merged {
		if err := t.write(); err != nil {
			return "", fmt.Errorf("writing the inodes of directories in the trash: %w", err)
		}
	}
	return text, nil
}

// write writes the file, unless it is there.
func (t *trash) write() error {
	if there, err := exists(t.file); err != nil || there {
		return err
	}
	var inodes []uint64
	for _, path := range t.from {
		list, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for ; len(list) >= 8; list = list[8:] {
			inodes = append(inodes, binary.NativeEndian.Uint64(list))
		}
	}
	slices.Sort(inodes)
	next := t.file + ".new"
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(writeNumbers(file, slices.Compact(inodes)), file.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return os.Rename(next, t.file) // It is in memory, and written again at each start.
}

func writeNumbers(to io.Writer, numbers []uint64) error {
	writer := bufio.NewWriter(to)
	var bytes [8]byte
	for _, number := range numbers {
		binary.NativeEndian.PutUint64(bytes[:], number)
		if _, err := writer.Write(bytes[:]); err != nil {
			return err
		}
	}
	return writer.Flush()
}

// forgetTrash removes the files that the list does not name. Ganesha must have taken the list: it reads them with it.
func forgetTrash(listFile string) {
	list, err := os.ReadFile(listFile)
	if err != nil {
		return
	}
	files, _ := filepath.Glob(listFile + trashPrefix + "*")
	for _, file := range files {
		// A list that is being written for a ganesha that starts may name a new one.
		if info, err := os.Stat(file); err == nil && time.Since(info.ModTime()) > trashFileKept && !bytes.Contains(list, []byte(" "+encode(file)+"\n")) {
			_ = os.Remove(file)
		}
	}
}

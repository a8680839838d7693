package mover

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/howdah/howdah/internal/dataserver/durable"
)

const (
	// takenEvery is how often it is looked whether ganesha has taken the list. takenWait is how long that may take.
	takenEvery = 5 * time.Millisecond
	takenWait  = 20 * time.Second
	// nameStale is how long the name of a directory that has left is refused. A client that a namespace server without the API sends here waits then,
	// and does not take the directory for removed. After that it is just not there. If more have left since than have lines of their own (fitting), it
	// is not refused that long.
	nameStale = time.Hour
	// none is the word of the list for no name, and for no inodes.
	none = "-"
	// inGrace is what ganesha writes in place of a number of open files while clients may claim what they had open.
	inGrace = "?"
)

// isListed tells whether ganesha refuses something of a move.
func isListed(j *journal) bool {
	return j.isSource() && j.Stage != stageReleased && j.Stage != stageEmptying
}

// ganeshaList is what ganesha reads about moves: build/patches/0432-directories-move.patch. What has left comes last, and where it is more than ganesha
// takes, the older ones are one line for each export (the trash).
func ganeshaList(root, listFile string, all []*journal, now time.Time, number string) (string, []trash, error) {
	var text strings.Builder
	lines, older := fitting(all)
	for _, j := range lines {
		where := placeOf(root, j)
		answer := "delay"
		switch j.Stage {
		case stageClosing:
			answer = "closing"
		case stageLeaving, stageLeft:
			answer = "stale"
		}
		inodes := none
		there, err := exists(where.inodes())
		if err != nil {
			return "", nil, err
		}
		if there {
			inodes = encode(where.inodes())
		}
		name := encode(path.Base(j.Path))
		if j.Stage == stageLeft && (now.Sub(j.Left) > nameStale || !isIn(where, j.Parent) || isBackAgain(where, all)) {
			name = none
		}
		fmt.Fprintf(&text, "%s %s %d %s %s\n", answer, encode(where.export()), j.Parent, name, inodes)
		fmt.Fprintf(&text, "%s %s %d %s %s\n", answer, encode(where.export()), j.Top, encode(hiddenPrefix+j.ID), none)
	}
	merged := trashOf(root, listFile, older)
	for _, t := range merged {
		fmt.Fprintf(&text, "stale %s 0 %s %s\n", encode(t.export), none, encode(t.file))
	}
	text.WriteString(listEnd(number))
	return text.String(), merged, nil
}

// isIn tells whether a directory was in the one that has its parent's path now. A parent that was removed frees its inode for other directories.
func isIn(where place, parent uint64) bool {
	inode, err := inodeOf(filepath.Dir(where.shown()))
	return err == nil && inode == parent
}

// isBackAgain tells whether something has the name of a directory that has left: it came back, or another one was made.
func isBackAgain(where place, all []*journal) bool {
	there, err := exists(where.shown())
	return err != nil || there || slices.ContainsFunc(all, func(j *journal) bool {
		return (j.Stage == stageAsking || j.Stage == stagePlacing) && j.Share == where.share && j.Volume == where.volume && j.Path == where.path
	})
}

// hasList tells whether ganesha has the list that the volumes ask for: names are refused for a while only.
func (m *Mover) hasList() bool {
	all, err := journals(m.Root)
	if err != nil {
		return true // What needs the list reports that.
	}
	has, err := os.ReadFile(m.ListFile)
	if err != nil {
		return false
	}
	want, _, err := ganeshaList(m.Root, m.ListFile, all, m.Now(), "")
	lines, _, _ := strings.Cut(string(has), "end ")
	wanted, _, _ := strings.Cut(want, "end ")
	return err != nil || lines == wanted
}

func encode(text string) string { return hex.EncodeToString([]byte(text)) }

// BeforeStart writes the list for the ganesha that starts next: it reads it before it serves anybody. If the volumes can't be read, the list is none that
// ganesha takes: it does not start, because it would serve what has moved.
func BeforeStart(root, listFile string) error {
	now := time.Now()
	text := "the volumes could not be read\n"
	all, err := journals(root)
	if err == nil {
		var list string
		if list, err = writeList(root, listFile, all, now, strconv.FormatInt(now.UnixNano(), 10)); err == nil {
			text = list
		}
	}
	return errors.Join(err, durable.Write(listFile, []byte(text)))
}

// tell gives ganesha the list that the volumes ask for, and returns when it was taken: then no request is at work that does not know it. The result is
// how many files were open then, by move.
func (m *Mover) tell(ctx context.Context) (map[string]string, error) {
	m.telling.Lock()
	defer m.telling.Unlock()
	number := strconv.FormatInt(m.Now().UnixNano(), 10)
	var ids []string
	deadline := time.NewTimer(takenWait)
	defer deadline.Stop()
	for {
		// A ganesha that starts meanwhile gets a list of its own in the place of this one (BeforeStart).
		if !m.isToTake(number) {
			var err error
			if ids, err = m.list(number); err != nil {
				return nil, err
			}
		}
		taken, err := os.ReadFile(m.TakenFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking whether ganesha knows which directories move: %w", err)
		}
		if has, _, _ := strings.Cut(strings.TrimSpace(string(taken)), " "); has == number {
			forgetTrash(m.ListFile)
			return countsOf(string(taken), ids), nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline.C:
			return nil, fmt.Errorf("ganesha did not take the list of directories that move within %s", takenWait)
		case <-time.After(takenEvery):
		}
	}
}

// list writes the list that the volumes ask for, and returns the moves that are in it.
func (m *Mover) list(number string) (ids []string, err error) {
	all, err := journals(m.Root)
	if err != nil {
		return nil, err
	}
	text, err := writeList(m.Root, m.ListFile, all, m.Now(), number)
	if err != nil {
		return nil, err
	}
	lines, _ := fitting(all)
	for _, j := range lines {
		ids = append(ids, j.ID)
	}
	return ids, durable.Write(m.ListFile, []byte(text))
}

// isToTake tells whether the list of that number is the one that ganesha reads.
func (m *Mover) isToTake(number string) bool {
	text, err := os.ReadFile(m.ListFile)
	return err == nil && strings.HasSuffix(string(text), listEnd(number))
}

func listEnd(number string) string { return "end " + number + "\n" }

package mover

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/howdah/howdah/internal/dataserver/durable"
)

const (
	// takenEvery is how often it is looked whether ganesha has taken the list. takenWait is how long that may take.
	takenEvery = 5 * time.Millisecond
	takenWait  = 20 * time.Second
	// nameStale is how long the name of a directory that has left is refused: clients that an older namespace server sends here look it up again. After
	// that it is just not there.
	nameStale = time.Minute
	// none is the word of the list for no name, and for no inodes.
	none = "-"
)

// ganeshaList is what ganesha reads about moves: build/patches/0432-directories-move.patch.
func ganeshaList(root string, all []*journal, now time.Time, number int64) (string, error) {
	var text strings.Builder
	for _, j := range all {
		if !j.isSource() {
			continue
		}
		where := placeOf(root, j)
		answer := "delay"
		if j.Stage == stageLeaving || j.Stage == stageLeft {
			answer = "stale"
		}
		inodes := none
		there, err := exists(where.inodes())
		if err != nil {
			return "", err
		}
		if there {
			inodes = encode(where.inodes())
		}
		name := encode(path.Base(j.Path))
		if j.Stage == stageLeft && now.Sub(j.Left) > nameStale {
			name = none
		}
		fmt.Fprintf(&text, "%s %s %d %s %s\n", answer, encode(where.export()), j.Parent, name, inodes)
		fmt.Fprintf(&text, "%s %s %d %s %s\n", answer, encode(where.export()), j.Top, encode(hiddenPrefix+j.ID), none)
	}
	fmt.Fprintf(&text, "end %d\n", number)
	return text.String(), nil
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
		if list, err = ganeshaList(root, all, now, now.UnixNano()); err == nil {
			text = list
		}
	}
	return errors.Join(err, durable.Write(listFile, []byte(text)))
}

// tell gives ganesha the list that the volumes ask for, and returns when it was taken: then no request is at work that does not know it.
func (m *Mover) tell(ctx context.Context) error {
	m.telling.Lock()
	defer m.telling.Unlock()
	all, err := journals(m.Root)
	if err != nil {
		return err
	}
	number := m.Now().UnixNano()
	text, err := ganeshaList(m.Root, all, m.Now(), number)
	if err != nil {
		return err
	}
	if err := durable.Write(m.ListFile, []byte(text)); err != nil {
		return err
	}
	deadline := time.NewTimer(takenWait)
	defer deadline.Stop()
	for {
		taken, err := os.ReadFile(m.TakenFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("looking whether ganesha knows which directories move: %w", err)
		}
		if strings.TrimSpace(string(taken)) == strconv.FormatInt(number, 10) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return fmt.Errorf("ganesha did not take the list of directories that move within %s", takenWait)
		case <-time.After(takenEvery):
		}
	}
}

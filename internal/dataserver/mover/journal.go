package mover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/howdah/howdah/internal/dataserver/durable"
	"github.com/howdah/howdah/internal/dataserver/removal"
	"github.com/howdah/howdah/internal/naming"
)

const (
	// movesDir is below .howdah of a volume. It has a directory for each move.
	movesDir = "moves"
	// journalFile says how far a move is, inodesFile has the inodes that ganesha refuses.
	journalFile = "move.json"
	inodesFile  = "inodes"
	// dataDir is the copy at the target, and the trash at the source.
	dataDir = "data"
	// hiddenPrefix begins the name of a directory in the root of its export that is on its way. Namespace servers don't show it (naming.OwnPrefix).
	hiddenPrefix = naming.MovingPrefix
)

// stage is how far a move is on a volume.
type stage string

const (
	// stageClosing: clients that open files wait. stageFreezing: ganesha may refuse the directory, and the directory may have its hidden name.
	// stageFrozen: so it is.
	stageClosing  stage = "closing"
	stageFreezing stage = "freezing"
	stageFrozen   stage = "frozen"
	// stagePromised: frozen, and the target may place its copy. stageReleased: the freeze has ended by itself, and clients use the directory.
	stagePromised stage = "promised"
	stageReleased stage = "released"
	// stageLeaving: the directory is the target's by now. stageLeft: it is in the trash.
	stageLeaving stage = "leaving"
	stageLeft    stage = "left"
	// stageEmptying: its time in the trash is over.
	stageEmptying stage = "emptying"
	// stageCopying: the target has a part of the copy. stageVerified: it is the same as the frozen directory of this attempt. stageAsking: the source
	// may have promised to keep it frozen. stagePlacing: it has, and the copy may be in the share.
	stageCopying  stage = "copying"
	stageVerified stage = "verified"
	stageAsking   stage = "asking"
	stagePlacing  stage = "placing"
	stagePlaced   stage = "placed"
)

// journal is what a volume knows of a move.
type journal struct {
	ID     string `json:"id"`
	Share  string `json:"share"`
	Path   string `json:"path"`
	Volume int32  `json:"volume"`
	Stage  stage  `json:"stage"`
	// Attempt is the freeze that Stage is of, Sequence the task that asked for Stage.
	Attempt  int32 `json:"attempt,omitempty"`
	Sequence int64 `json:"sequence,omitempty"`
	// Peer is the other data server, PeerAddress its address. Freeze is different for each freeze.
	Peer        string `json:"peer,omitempty"`
	PeerAddress string `json:"peerAddress,omitempty"`
	Freeze      string `json:"freeze,omitempty"`
	// Syncing: the copy is being made durable. The kernel reports what it could not write once, and then has it no more, so a process that starts and finds
	// this can't tell.
	Syncing bool `json:"syncing,omitempty"`
	// Parents are the directories above it, which the target makes.
	Parents []parent `json:"parents,omitempty"`
	// Parent is the inode of the directory that has the directory's name, Top that of the export's root.
	Parent uint64 `json:"parent,omitempty"`
	Top    uint64 `json:"top,omitempty"`
	// Left is when it went into the trash, KeepSeconds for how long, and KeptSeconds how much of it is over.
	Left        time.Time `json:"left,omitzero"`
	KeepSeconds int64     `json:"keepSeconds,omitempty"`
	KeptSeconds int64     `json:"keptSeconds,omitempty"`
}

// isSource tells whether the journal is of a directory that goes.
func (j *journal) isSource() bool {
	switch j.Stage {
	case stageClosing, stageFreezing, stageFrozen, stagePromised, stageReleased, stageLeaving, stageLeft, stageEmptying:
		return true
	}
	return false
}

// isBack tells whether the source may go back to serving the directory. From stagePromised there is no way back: the target may have it in the share.
func (j *journal) isBack() bool {
	switch j.Stage {
	case stageClosing, stageFreezing, stageFrozen, stageReleased:
		return true
	}
	return false
}

// isPlacing tells whether the copy may be the directory by now, or may become it.
func (j *journal) isPlacing() bool {
	return j.Stage == stageAsking || j.Stage == stagePlacing || j.Stage == stagePlaced
}

// isFrozen tells whether clients change nothing, for this freeze.
func (j *journal) isFrozen(attempt int32) bool {
	return j != nil && (j.Stage == stageFrozen || j.Stage == stagePromised) && j.Attempt == attempt
}

// place has the paths of a move on a volume.
type place struct {
	root   string
	volume int32
	id     string
	share  string
	path   string
}

func placeOf(root string, j *journal) place {
	return place{root: root, volume: j.Volume, id: j.ID, share: j.Share, path: j.Path}
}

func volumeIn(root string, volume int32) string {
	return filepath.Join(root, strconv.Itoa(int(volume)))
}

func movesIn(root string, volume int32) string {
	return filepath.Join(volumeIn(root, volume), naming.OwnPrefix, movesDir)
}

func (p place) directory() string { return filepath.Join(movesIn(p.root, p.volume), p.id) }
func (p place) data() string      { return filepath.Join(p.directory(), dataDir) }
func (p place) inodes() string    { return filepath.Join(p.directory(), inodesFile) }
func (p place) export() string    { return naming.ExportDirectory(p.root, p.share, p.volume) }
func (p place) shown() string     { return filepath.Join(p.export(), p.path) }
func (p place) hidden() string    { return filepath.Join(p.export(), hiddenPrefix+p.id) }

// open opens the volume. No symbolic link leads out of it: an attacker who took ganesha over can put one in the place of any name on it.
func (p place) open() (*os.Root, error) { return os.OpenRoot(volumeIn(p.root, p.volume)) }

// on is the name of a path on the volume.
func (p place) on(path string) string {
	return strings.TrimPrefix(path, volumeIn(p.root, p.volume)+string(filepath.Separator))
}

// rename gives a directory of the volume another name, unless it has that already, and makes it durable.
func (p place) rename(from, to string) error {
	volume, err := p.open()
	if err != nil {
		return err
	}
	defer func() { _ = volume.Close() }()
	if _, err = volume.Lstat(p.on(from)); err == nil {
		err = volume.Rename(p.on(from), p.on(to))
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	return errors.Join(syncIfThere(volume, p.on(filepath.Dir(to))), syncIfThere(volume, p.on(filepath.Dir(from))))
}

// syncIfThere makes the names in a directory durable. If its share was deleted meanwhile, there is none.
func syncIfThere(volume *os.Root, directory string) error {
	if err := durable.SyncIn(volume, directory); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// shownNFS and hiddenNFS are the same for ganesha's clients.
func (p place) shownNFS() string { return naming.ExportPseudo(p.share, p.volume) + "/" + p.path }

func (p place) hiddenNFS() string {
	return naming.ExportPseudo(p.share, p.volume) + "/" + hiddenPrefix + p.id
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// isThere is exists for a path that is taken to be there if it can't be seen.
func isThere(path string) bool {
	there, err := exists(path)
	return there || err != nil
}

// write makes a journal durable.
func (p place) write(j *journal) error {
	text, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encoding the journal of move %s: %w", p.id, err)
	}
	return p.put(journalFile, append(text, '\n'))
}

// put makes a file in the move's directory durable.
func (p place) put(file string, text []byte) error {
	volume, err := p.open()
	if err != nil {
		return err
	}
	defer func() { _ = volume.Close() }()
	if err := volume.MkdirAll(p.on(p.directory()), 0o700); err != nil {
		return fmt.Errorf("making the directory of move %s: %w", p.id, err)
	}
	return durable.WriteIn(volume, p.on(filepath.Join(p.directory(), file)), text)
}

// remove removes what has a path on the volume, with all that is below it.
func (p place) remove(ctx context.Context, path string) error {
	volume, err := p.open()
	if err != nil {
		return err
	}
	defer func() { _ = volume.Close() }()
	return removal.Tree(ctx, volume, p.on(path))
}

// makeData makes the directory that gets the copy.
func (p place) makeData() error {
	volume, err := p.open()
	if err != nil {
		return err
	}
	defer func() { _ = volume.Close() }()
	name := p.on(p.data())
	if err := volume.Mkdir(name, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := volume.Lstat(name)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory", p.data())
	}
	return err
}

// read returns nil if there is no journal.
func (p place) read() (*journal, error) {
	volume, err := p.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal of move %s: %w", p.id, err)
	}
	defer func() { _ = volume.Close() }()
	text, err := volume.ReadFile(p.on(filepath.Join(p.directory(), journalFile)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal of move %s: %w", p.id, err)
	}
	var j journal
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", filepath.Join(p.directory(), journalFile), err)
	}
	if j.ID != p.id || j.Volume != p.volume {
		return nil, fmt.Errorf("%s is of move %q on volume %d", filepath.Join(p.directory(), journalFile), j.ID, j.Volume)
	}
	return &j, nil
}

// forget removes what a move has on a volume. The journal goes last: without it the rest is not looked at.
func (p place) forget(ctx context.Context) error {
	for _, path := range []string{p.data(), p.directory()} {
		if err := p.remove(ctx, path); err != nil {
			return fmt.Errorf("removing what move %s left: %w", p.id, err)
		}
	}
	return nil
}

// movesOn lists what is in the directory of moves of a volume.
func movesOn(root string, index int32) ([]fs.DirEntry, error) {
	volume, err := os.OpenRoot(volumeIn(root, index))
	if err != nil {
		return nil, err
	}
	defer func() { _ = volume.Close() }()
	moves, err := fs.ReadDir(volume.FS(), filepath.Join(naming.OwnPrefix, movesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return moves, err
}

// journals are those of all volumes.
func journals(root string) (found []*journal, err error) {
	volumes, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // The data is in Ceph.
	}
	if err != nil {
		return nil, fmt.Errorf("looking for moves: %w", err)
	}
	for _, volume := range volumes {
		index, err := strconv.ParseInt(volume.Name(), 10, 32)
		if err != nil {
			continue
		}
		moves, err := movesOn(root, int32(index))
		if err != nil {
			return nil, fmt.Errorf("looking for moves on volume %d: %w", index, err)
		}
		for _, move := range moves {
			if strings.HasPrefix(move.Name(), ".") {
				continue
			}
			j, err := place{root: root, volume: int32(index), id: move.Name()}.read()
			if err != nil {
				return nil, err
			}
			if j != nil {
				found = append(found, j)
			}
		}
	}
	return found, nil
}

package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"
)

// State is what a ledger knows of a name.
type State string

// States.
const (
	// IsRun is the first entry of a ledger: Name is the run's, Seed that of its blocks.
	IsRun State = "run"
	// IsFile is a file that is there. Generations are those of its blocks; 0 is a block that was not written.
	IsFile State = "file"
	// IsBlock changes the generation of one block of a file.
	IsBlock State = "block"
	// IsFolder is a directory that is there.
	IsFolder State = "directory"
	// IsGone is a name that was removed.
	IsGone State = "gone"
	// IsUnknown is a name with an operation under way.
	IsUnknown State = "unknown"
	// IsWon and IsLost are names that several runs tried to make.
	IsWon  State = "won"
	IsLost State = "lost"
	// IsEnd is the last entry of a run that ended in order: nothing is under way.
	IsEnd State = "end"
)

// maxGone bounds how many removed names a ledger remembers for each directory: the last ones.
const maxGone = 4096

// Entry is a line of a ledger.
type Entry struct {
	// Directory is the number of the directory among those of the run. Name is relative to it.
	Directory int    `json:"dir"`
	Is        State  `json:"is"`
	Name      string `json:"name,omitempty"`
	Seed      uint64 `json:"seed,omitempty"`
	File      uint64 `json:"file,omitempty"`
	// Block and Generation are for State Block; Maybe tells that the next generation may be there instead.
	Block       int      `json:"block,omitempty"`
	Generation  uint32   `json:"generation,omitempty"`
	Maybe       bool     `json:"maybe,omitempty"`
	Generations []uint32 `json:"generations,omitempty"`
}

// record is what a ledger knows of one name.
type record struct {
	is          State
	file        uint64
	generations []uint32
	maybe       map[int]bool
}

// Keeper keeps the entries of a ledger outside of this process. It is used by one goroutine at a time.
type Keeper interface {
	Write(e Entry) error
	// Large tells that the entries take more room than they need; Rewrite puts others in their place.
	Large() bool
	Rewrite(entries []Entry) error
}

// Ledger is what must be in the directories of a run. It may be used concurrently.
type Ledger struct {
	Run  string
	Seed uint64
	// Ended is true if the run ended in order.
	Ended bool

	keeper Keeper
	mutex  sync.Mutex
	err    error
	names  []map[string]*record
	gone   [][]string
}

// NewLedger makes the ledger of a run. keeper keeps each entry; its first error is that of Err. nil: nothing is kept.
func NewLedger(run string, seed uint64, directories int, keeper Keeper) *Ledger {
	l := &Ledger{keeper: keeper}
	l.grow(directories)
	l.note(Entry{Is: IsRun, Name: run, Seed: seed})
	return l
}

// ReadLedger reads a ledger that Entry by Entry was written as JSON. A last line that is cut is left out.
func ReadLedger(from io.Reader) (*Ledger, error) {
	l := &Ledger{}
	decoder := json.NewDecoder(from)
	for first := true; ; first = false {
		var e Entry
		err := decoder.Decode(&e)
		switch {
		case errors.Is(err, io.EOF) && !first, errors.Is(err, io.ErrUnexpectedEOF) && !first:
			return l, nil
		case err != nil:
			return nil, fmt.Errorf("the ledger is not readable: %w", err)
		case first && e.Is != IsRun, e.Directory < 0, e.Directory >= MaxDirectories, e.Block < 0, e.Block >= maxBlocks:
			return nil, errors.New("this is not a ledger of howdah load")
		case e.Is != IsRun && e.Is != IsEnd && !filepath.IsLocal(e.Name):
			// Ledgers are read where clients can write, and an audit opens what is in them.
			return nil, fmt.Errorf("the ledger names %q, which is outside of the directory of the load", e.Name)
		}
		l.apply(e)
	}
}

func (l *Ledger) grow(directories int) {
	for len(l.names) < directories {
		l.names, l.gone = append(l.names, map[string]*record{}), append(l.gone, nil)
	}
}

// note applies an entry and keeps it.
func (l *Ledger) note(e Entry) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.apply(e)
	if l.keeper == nil || l.err != nil {
		return
	}
	if l.err = l.keeper.Write(e); l.err == nil && l.keeper.Large() {
		l.err = l.keeper.Rewrite(l.entries())
	}
}

// NoteEnd is for a run that ended with nothing under way.
func (l *Ledger) NoteEnd() { l.note(Entry{Is: IsEnd}) }

// Err is why the ledger could not be kept; nil if it could.
func (l *Ledger) Err() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.err
}

func (l *Ledger) apply(e Entry) {
	l.grow(e.Directory + 1)
	names := l.names[e.Directory]
	switch e.Is {
	case IsRun:
		l.Run, l.Seed = e.Name, e.Seed
	case IsEnd:
		l.Ended = true
	case IsBlock:
		r := names[e.Name]
		if r == nil {
			return
		}
		for len(r.generations) <= e.Block {
			r.generations = append(r.generations, 0)
		}
		r.generations[e.Block] = e.Generation
		delete(r.maybe, e.Block)
		if e.Maybe {
			if r.maybe == nil {
				r.maybe = map[int]bool{}
			}
			r.maybe[e.Block] = true
		}
	case IsGone:
		if r := names[e.Name]; r != nil && r.is == IsGone {
			return
		}
		names[e.Name] = &record{is: IsGone}
		l.gone[e.Directory] = append(l.gone[e.Directory], e.Name)
		if old := l.gone[e.Directory]; len(old) > maxGone {
			if r := names[old[0]]; r != nil && r.is == IsGone {
				delete(names, old[0])
			}
			l.gone[e.Directory] = old[1:]
		}
	default:
		names[e.Name] = &record{is: e.Is, file: e.File, generations: slices.Clone(e.Generations)}
	}
}

// Entries are a ledger with the same content, as short as possible.
func (l *Ledger) Entries() []Entry {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.entries()
}

func (l *Ledger) entries() []Entry {
	entries := []Entry{{Is: IsRun, Name: l.Run, Seed: l.Seed}}
	for directory, names := range l.names {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			r := names[name]
			entries = append(entries, Entry{Directory: directory, Is: r.is, Name: name, File: r.file, Generations: r.generations})
			for _, block := range slices.Sorted(maps.Keys(r.maybe)) {
				entries = append(entries, Entry{Directory: directory, Is: IsBlock, Name: name, Block: block, Generation: r.generations[block], Maybe: true})
			}
		}
	}
	if l.Ended {
		entries = append(entries, Entry{Is: IsEnd})
	}
	return entries
}

// inFolder are the names right below a directory of a run, with their states. folder is "" or a name.
func (l *Ledger) inFolder(directory int, folder string) map[string]State {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	states := map[string]State{}
	for name, r := range l.names[directory] {
		if parent, base := split(name); parent == folder {
			states[base] = r.is
		}
	}
	return states
}

package load

import (
	"fmt"
	"slices"
)

// A Lane is one thread of a load in a directory: it does one operation after the other.
type Lane interface {
	// Prepare makes what the lane needs, before any lane steps. False: the load ended before.
	Prepare() bool
	// Step does some operations.
	Step()
}

// File numbers of a run, which blocks have: fixed ones, and those of the files that are made one after the other.
const (
	recordsFile uint64 = 1 + iota
	lockFile
	openFile
	randomFile
	treeFile  uint64 = 1 << 32
	filesFile uint64 = 1 << 40
)

// Files makes files, reads them, renames and removes them, and lists the directory of the run.
type Files struct {
	*Place
	// Blocks is how many blocks all files may have together.
	Blocks int

	count, used int
	there       []madeFile
}

type madeFile struct {
	name        string
	file        uint64
	generations []uint32
}

// Prepare has nothing to do.
func (f *Files) Prepare() bool { return true }

// Step makes one file, and removes the oldest if there are enough.
func (f *Files) Step() {
	const sizes, renamed, listed = 4, 3, 5
	n := f.count
	f.count++
	made := madeFile{name: f.path(fmt.Sprintf("file-%d", n)), file: filesFile + uint64(n)}
	for len(f.there) > 0 && f.used+sizes > f.Blocks {
		oldest := f.there[0]
		f.there = f.there[1:]
		f.used -= len(oldest.generations)
		f.readFile(oldest.name, oldest.file, oldest.generations)
		if !f.remove(oldest.name, f.FS.Remove) {
			return
		}
	}
	blocks := 1 + n%sizes
	if !f.makeFile(made.name, made.file, blocks) {
		return
	}
	made.generations = slices.Repeat([]uint32{1}, blocks)
	if n%renamed == 1 {
		to := f.path(fmt.Sprintf("renamed-%d", n))
		if !f.rename(made.name, to, Entry{Is: IsFile, File: made.file, Generations: made.generations}) {
			return
		}
		made.name = to
	}
	f.there, f.used = append(f.there, made), f.used+blocks
	f.readFile(made.name, made.file, made.generations)
	if other := f.there[f.Random(len(f.there))]; other.name != made.name {
		f.readFile(other.name, other.file, other.generations)
	}
	if n%listed == 0 {
		f.list()
	}
}

// list reads the directory of the run and compares the names. Only this lane changes names there after Prepare.
func (f *Files) list() {
	var names []string
	done := f.insist(List, f.Ledger.Run, 0, func() (err error) {
		names, err = f.FS.Names(f.Ledger.Run)
		return err
	})
	if done {
		f.compare(f.Ledger.Run, names)
	}
}

// compare compares the names of a directory with the ledger.
func (p *Place) compare(folder string, names []string) {
	lost, extra, checked := Compare(p.Ledger.inFolder(p.Number, folder), names)
	p.Meter.checked(checked)
	for _, name := range lost {
		p.Meter.wrong(LostName, "%s/%s is not listed", folder, name)
	}
	for _, name := range extra {
		p.Meter.wrong(ExtraName, "%s/%s is listed, and was removed or never made", folder, name)
	}
}

// Compare compares the names of a directory with what a ledger knows of them. NFS clients keep files that are removed while they are open
// under names that begin with .nfs.
func Compare(known map[string]State, names []string) (lost, extra []string, checked int) {
	listed := map[string]bool{}
	for _, name := range names {
		listed[name] = true
		state, is := known[name]
		if (!is || state == IsGone) && (len(name) < 4 || name[:4] != ".nfs") {
			extra = append(extra, name)
		}
	}
	for name, state := range known {
		checked++
		if (state == IsFile || state == IsFolder || state == IsWon || state == IsLost) && !listed[name] {
			lost = append(lost, name)
		}
	}
	slices.Sort(lost)
	slices.Sort(extra)
	return lost, extra, checked
}

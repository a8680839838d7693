package load

import (
	"fmt"
	"syscall"
)

// maxContested bounds the names that runs compete for.
const maxContested = 1000

// Trees makes, renames and removes directories right in the directory of the load, where a FileShare gives each an owner, and files in them.
type Trees struct {
	*Place
	// Contest is the begin of names that several runs try to make; each may be made by one of them only. "": there are none.
	Contest string
	// Most is how many directories there may be at the same time.
	Most int

	count int
	there []madeTree
}

type madeTree struct {
	name string
	// file is empty if the directory is.
	file string
}

// Prepare has nothing to do.
func (t *Trees) Prepare() bool { return true }

// Step makes a directory and does something with it.
func (t *Trees) Step() {
	const renamed, removed, empty, moved = 3, 5, 5, 4
	n := t.count
	t.count++
	if len(t.there) >= t.Most {
		oldest := t.there[0]
		t.there = t.there[1:]
		if oldest.file != "" && !t.remove(oldest.file, t.FS.Remove) || !t.remove(oldest.name, t.FS.RemoveDirectory) {
			return
		}
	}
	name := fmt.Sprintf("%s-%d", t.Ledger.Run, n)
	t.note(Entry{Is: IsUnknown, Name: name})
	if !t.insist(Mkdir, name, syscall.EEXIST, func() error { return t.FS.Mkdir(name) }) {
		return
	}
	t.note(Entry{Is: IsFolder, Name: name})
	if n%renamed == 1 {
		to := fmt.Sprintf("%s-moved-%d", t.Ledger.Run, n)
		if !t.rename(name, to, Entry{Is: IsFolder}) {
			return
		}
		name = to
	}
	if n%removed == 2 {
		t.remove(name, t.FS.RemoveDirectory)
		return
	}
	if n%empty == 3 {
		t.there = append(t.there, madeTree{name: name})
		return
	}
	file, number := name+"/file", treeFile+uint64(n)
	if !t.makeFile(file, number, 1) {
		return
	}
	if n%moved == 0 {
		to := name + "/moved"
		if !t.rename(file, to, Entry{Is: IsFile, File: number, Generations: []uint32{1}}) {
			return
		}
		file = to
	}
	t.there = append(t.there, madeTree{name, file})
	t.compete(n)
}

// compete tries to make a name that other runs try to make, too.
func (t *Trees) compete(n int) {
	if t.Contest == "" || n >= maxContested {
		return
	}
	name, state := fmt.Sprintf("%s-%d", t.Contest, n), IsWon
	t.note(Entry{Is: IsUnknown, Name: name})
	done := t.insist(Mkdir, name, 0, func() error {
		err := t.FS.Mkdir(name)
		if isErrno(err, syscall.EEXIST) {
			state = IsLost
			return nil
		}
		return err
	})
	if done {
		t.note(Entry{Is: state, Name: name})
	}
}

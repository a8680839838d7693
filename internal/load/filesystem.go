package load

import (
	"strings"
	"syscall"
)

const (
	// MaxDirectories is the largest number of directories of one load.
	MaxDirectories = 64
	// MaxBytes bounds the bytes of a load in each directory: what is in memory of each block is some bytes.
	MaxBytes = 16 << 30
	// MinBytes is the least that a load needs in each directory.
	MinBytes  = 1 << 20
	maxBlocks = MaxBytes / BlockSize
	// clockFormat is how times of day are written, in UTC.
	clockFormat = "15:04:05.000"
)

// FileSystem is a directory under load. Names are relative to it, with slashes. Errors wrap a syscall.Errno.
type FileSystem interface {
	// Create opens a file for reading and writing, and creates it if it is not there. If exclusive, it must not be there.
	Create(name string, exclusive bool) (File, error)
	// Open opens a file that is there, for reading and writing.
	Open(name string) (File, error)
	Mkdir(name string) error
	// Remove removes a file, RemoveDirectory an empty directory.
	Remove(name string) error
	RemoveDirectory(name string) error
	Rename(from, to string) error
	// Names are the names in a directory; "" is the whole.
	Names(name string) ([]string, error)
	// Exists tells whether there is something with this name.
	Exists(name string) (bool, error)
}

// File is an open file of blocks.
type File interface {
	WriteBlock(block int, p []byte) error
	// ReadBlock reads a block, around the cache of the client if the file system can. It returns less than BlockSize bytes at the end of the file.
	ReadBlock(block int, p []byte) (int, error)
	// Sync brings what was written to stable storage.
	Sync() error
	// TryLock takes the lock of the whole file, or fails with EAGAIN. It ends with Close.
	TryLock() error
	Close() error
}

// split is the parent of a name, and its last part.
func split(name string) (parent, base string) {
	at := strings.LastIndexByte(name, '/')
	if at < 0 {
		return "", name
	}
	return name[:at], name[at+1:]
}

// Place is one directory of a load.
type Place struct {
	Number int
	FS     FileSystem
	Meter  *Meter
	Ledger *Ledger
	// Again waits before an operation is tried again; false: the load ends.
	Again func() bool
	// Random is a random number below n.
	Random func(n int) int
}

// path is a name in the directory that the run has for itself.
func (p *Place) path(name string) string { return p.Ledger.Run + "/" + name }

func (p *Place) stamp(file uint64, block int, generation uint32) Stamp {
	return Stamp{Run: p.Ledger.Run, Seed: p.Ledger.Seed, File: file, Block: block, Generation: generation}
}

func (p *Place) note(e Entry) {
	e.Directory = p.Number
	p.Ledger.note(e)
}

// insist tries until it is done, and false if the load ended before. already is the error of an operation that was done before, 0 if
// there is none: a server that is killed after it did something may get the same request again.
func (p *Place) insist(kind Operation, name string, already syscall.Errno, try func() error) bool {
	id := p.Meter.begin(kind, name)
	for {
		err := try()
		if err == nil || already != 0 && isErrno(err, already) {
			if err != nil {
				p.Meter.doubtful()
			}
			p.Meter.end(id, true)
			return true
		}
		p.Meter.failed(kind, name, err)
		if !p.Again() {
			p.Meter.end(id, false)
			return false
		}
	}
}

// verify compares a block of a file with what was written.
func (p *Place) verify(name string, want Stamp, found []byte) {
	p.Meter.checked(1)
	if differs := want.Differs(found); differs != "" {
		p.Meter.wrong(BadBlock, "block %d of %s is bad: %s", want.Block, name, differs)
	}
}

// Prepare makes the directory of the run. It fails if that can't work later either.
func (p *Place) Prepare() error {
	name, refused := p.Ledger.Run, error(nil)
	p.note(Entry{Is: IsUnknown, Name: name})
	done := p.insist(Mkdir, name, 0, func() error {
		err := p.FS.Mkdir(name)
		for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOENT, syscall.ENOTDIR, syscall.EEXIST, syscall.ENAMETOOLONG} {
			if isErrno(err, errno) {
				refused = err
				return nil
			}
		}
		return err
	})
	if refused != nil {
		return refused
	}
	if done {
		p.note(Entry{Is: IsFolder, Name: name})
	}
	return nil
}

// NoteLedger is for a copy of the ledger that the run leaves in its directory.
func (p *Place) NoteLedger(name string) { p.note(Entry{Is: IsFile, Name: p.path(name)}) }

// makeFile makes a file with blocks of generation 1: written, on stable storage, and closed.
func (p *Place) makeFile(name string, file uint64, blocks int) bool {
	p.note(Entry{Is: IsUnknown, Name: name})
	content, exclusive := make([]byte, BlockSize), true
	done := p.insist(Make, name, 0, func() error {
		opened, err := p.FS.Create(name, exclusive)
		if exclusive && isErrno(err, syscall.EEXIST) {
			p.Meter.doubtful()
			opened, err = p.FS.Create(name, false)
		}
		if err != nil {
			return step("create", err)
		}
		exclusive = false
		for block := range blocks {
			p.stamp(file, block, 1).Fill(content)
			if err := opened.WriteBlock(block, content); err != nil {
				_ = opened.Close()
				return step("write", err)
			}
		}
		if err := opened.Sync(); err != nil {
			_ = opened.Close()
			return step("fsync", err)
		}
		return step("close", opened.Close())
	})
	if done {
		generations := make([]uint32, blocks)
		for i := range generations {
			generations[i] = 1
		}
		p.note(Entry{Is: IsFile, Name: name, File: file, Generations: generations})
	}
	return done
}

// rename renames a file or a directory, and files in it.
func (p *Place) rename(from, to string, as Entry) bool {
	p.note(Entry{Is: IsUnknown, Name: from})
	p.note(Entry{Is: IsUnknown, Name: to})
	if !p.insist(Rename, from, syscall.ENOENT, func() error { return p.FS.Rename(from, to) }) {
		return false
	}
	p.note(Entry{Is: IsGone, Name: from})
	as.Name = to
	p.note(as)
	return true
}

// remove removes a file or an empty directory.
func (p *Place) remove(name string, try func(string) error) bool {
	p.note(Entry{Is: IsUnknown, Name: name})
	if !p.insist(Remove, name, syscall.ENOENT, func() error { return try(name) }) {
		return false
	}
	p.note(Entry{Is: IsGone, Name: name})
	return true
}

// readFile reads the blocks of a file that have been written, and compares them.
func (p *Place) readFile(name string, file uint64, generations []uint32) bool {
	content := make([]byte, BlockSize)
	return p.insist(Read, name, 0, func() error {
		opened, err := p.FS.Open(name)
		if isErrno(err, syscall.ENOENT) {
			p.Meter.wrong(LostName, "%s is not there", name)
			return nil
		}
		if err != nil {
			return step("open", err)
		}
		defer func() { _ = opened.Close() }()
		for block, generation := range generations {
			if generation == 0 {
				continue
			}
			n, err := opened.ReadBlock(block, content)
			if err != nil {
				return step("read", err)
			}
			p.verify(name, p.stamp(file, block, generation), content[:n])
		}
		return nil
	})
}

package load

import "syscall"

// fixed is a file that a lane keeps open.
type fixed struct {
	*Place
	name   string
	file   uint64
	opened File
	buffer []byte
}

func (p *Place) fixed(name string, file uint64) fixed {
	return fixed{Place: p, name: p.path(name), file: file, buffer: make([]byte, BlockSize)}
}

// prepare makes the file with blocks of generation 1.
func (f *fixed) prepare(blocks int) bool { return f.makeFile(f.name, f.file, blocks) }

// reopen opens the file if it is not open.
func (f *fixed) reopen() (err error) {
	if f.opened == nil {
		f.opened, err = f.FS.Open(f.name)
	}
	return step("open", err)
}

// broken closes the file after an error, so that it is opened again.
func (f *fixed) broken() {
	if f.opened != nil {
		_ = f.opened.Close()
		f.opened = nil
	}
}

// write writes the next generation of a block, and brings it to stable storage.
func (f *fixed) write(kind Operation, block int, generation uint32) bool {
	f.stamp(f.file, block, generation).Fill(f.buffer)
	// Until it is done, the block may have either content.
	done := f.insist(kind, f.name, 0, func() error {
		if err := f.reopen(); err != nil {
			return err
		}
		err := step("write", f.opened.WriteBlock(block, f.buffer))
		if err == nil {
			err = step("fsync", f.opened.Sync())
		}
		if err != nil {
			f.broken()
		}
		return err
	})
	e := Entry{Is: IsBlock, Name: f.name, File: f.file, Block: block, Generation: generation}
	if !done {
		e.Generation, e.Maybe = generation-1, true
	}
	f.note(e)
	return done
}

// read reads a block and compares it.
func (f *fixed) read(kind Operation, block int, generation uint32) {
	f.insist(kind, f.name, 0, func() error {
		if err := f.reopen(); err != nil {
			return err
		}
		n, err := f.opened.ReadBlock(block, f.buffer)
		if err != nil {
			f.broken()
			return step("read", err)
		}
		f.verify(f.name, f.stamp(f.file, block, generation), f.buffer[:n])
		return nil
	})
}

// Records writes blocks one after the other into a file that it keeps open, over and over, each brought to stable storage, and reads them.
type Records struct {
	fixed
	blocks, count int
	generations   []uint32
}

// NewRecords makes the lane. blocks is the size of its file.
func NewRecords(p *Place, blocks int) *Records {
	return &Records{fixed: p.fixed("records", recordsFile), blocks: blocks}
}

// Prepare makes the file.
func (r *Records) Prepare() bool {
	r.generations = []uint32{1}
	return r.prepare(1)
}

// Step writes a block, and reads it and another one.
func (r *Records) Step() {
	r.count++
	block := r.count % r.blocks
	for len(r.generations) <= block {
		r.generations = append(r.generations, 0)
	}
	if !r.write(Append, block, r.generations[block]+1) {
		return
	}
	r.generations[block]++
	r.read(Read, block, r.generations[block])
	if other := r.Random(len(r.generations)); other != block {
		r.read(Read, other, r.generations[other])
	}
}

// Opens opens a file for writing and closes it.
type Opens struct{ fixed }

// NewOpens makes the lane.
func NewOpens(p *Place) *Opens { return &Opens{p.fixed("opened", openFile)} }

// Prepare makes the file.
func (o *Opens) Prepare() bool { return o.prepare(1) }

// Step opens and closes it.
func (o *Opens) Step() {
	o.insist(OpenFile, o.name, 0, func() error {
		opened, err := o.FS.Open(o.name)
		if err != nil {
			return step("open", err)
		}
		return step("close", opened.Close())
	})
}

// RandomBlocks reads and writes blocks of a file in random order. Several of them share a file: each has the blocks whose number, divided by
// their count, leaves its own number.
type RandomBlocks struct {
	fixed
	blocks, number, count int
	generations           []uint32
}

// reads is the share of reads of the random load, in percent.
const reads = 70

// NewRandomBlocks makes the lanes of a random load.
func NewRandomBlocks(p *Place, blocks, count int) []*RandomBlocks {
	lanes := make([]*RandomBlocks, count)
	for i := range lanes {
		lanes[i] = &RandomBlocks{fixed: p.fixed("random", randomFile), blocks: blocks / count * count, number: i, count: count}
	}
	return lanes
}

// Prepare makes the file, by the first of the lanes.
func (r *RandomBlocks) Prepare() bool {
	r.generations = make([]uint32, r.blocks/r.count)
	for i := range r.generations {
		r.generations[i] = 1
	}
	return r.number > 0 || r.prepare(r.blocks)
}

// Step reads or writes a block.
func (r *RandomBlocks) Step() {
	at := r.Random(len(r.generations))
	block := at*r.count + r.number
	if r.Random(100) < reads {
		r.read(RandomRead, block, r.generations[at])
	} else {
		if !r.write(RandomWrite, block, r.generations[at]+1) {
			return
		}
		r.generations[at]++
	}
	r.Meter.counted()
}

// Holder holds a lock, and proves with each step that it is still its own: the server takes a write through the locked file, and
// what is in the file is what this holder wrote last.
type Holder struct {
	fixed
	generation uint32
}

// NewHolder makes the lane.
func NewHolder(p *Place) *Holder { return &Holder{fixed: p.fixed("lock", lockFile)} }

// released is the generation of a lock's file that is not held.
const released = ^uint32(0)

// Prepare makes the file, and takes the lock.
func (h *Holder) Prepare() bool {
	h.generation = 1
	return h.prepare(1) && h.insist(Lock, h.name, 0, h.take)
}

// take opens the file and locks it.
func (h *Holder) take() error {
	if h.opened != nil {
		return nil
	}
	if err := h.reopen(); err != nil {
		return err
	}
	if err := h.opened.TryLock(); err != nil {
		h.broken()
		return step("lock", err)
	}
	return nil
}

// Step reads what is there through another open file, and then writes through the locked one: a rival's block must be seen before it is
// written over.
func (h *Holder) Step() {
	if !h.look() {
		return
	}
	h.stamp(h.file, 0, h.generation+1).Fill(h.buffer)
	done := h.insist(Lock, h.name, 0, func() error {
		if err := h.take(); err != nil {
			return err
		}
		err := step("write", h.opened.WriteBlock(0, h.buffer))
		if err == nil {
			err = step("fsync", h.opened.Sync())
		}
		if err != nil {
			h.Meter.wrong(StolenLock, "the lock of %s was lost, and is taken again: %v", h.name, err)
			h.broken()
		}
		return err
	})
	if !done {
		h.note(Entry{Is: IsBlock, Name: h.name, File: h.file, Generation: h.generation, Maybe: true})
		return
	}
	h.generation++
	h.note(Entry{Is: IsBlock, Name: h.name, File: h.file, Generation: h.generation})
}

// look reads what is in the file now. A rival that got the lock has left its own block there.
func (h *Holder) look() bool {
	return h.insist(Lock, h.name, 0, func() error {
		other, err := h.FS.Open(h.name)
		if err != nil {
			return step("open", err)
		}
		defer func() { _ = other.Close() }()
		n, err := other.ReadBlock(0, h.buffer)
		if err != nil {
			return step("read", err)
		}
		if found, intact := ReadStamp(h.buffer[:n]); intact && found.Seed != h.Ledger.Seed {
			h.Meter.checked(1)
			h.Meter.wrong(StolenLock, "the lock of %s was given to the run %q, while this run held it", h.name, found.Run)
			return nil
		}
		h.verify(h.name, h.stamp(h.file, 0, h.generation), h.buffer[:n])
		return nil
	})
}

// Release marks the file as not held, and gives the lock back. It is for the end of the run, and does not insist.
func (h *Holder) Release() {
	if h.opened == nil || !h.look() {
		return
	}
	h.note(Entry{Is: IsUnknown, Name: h.name})
	h.stamp(h.file, 0, released).Fill(h.buffer)
	err := h.opened.WriteBlock(0, h.buffer)
	if err == nil {
		err = h.opened.Sync()
	}
	h.broken()
	if err == nil {
		h.note(Entry{Is: IsFile, Name: h.name, File: h.file, Generations: []uint32{released}})
	}
}

// Rival tries to take the lock that another run holds in the same directory. If it succeeds, it leaves its block in the file,
// where the holder finds it.
type Rival struct {
	*Place
	// Holder is the name of the other run.
	Holder string
}

// Prepare has nothing to do.
func (r *Rival) Prepare() bool { return true }

// Step tries once.
func (r *Rival) Step() {
	name := r.Holder + "/lock"
	buffer := make([]byte, BlockSize)
	r.insist(Lock, name, 0, func() error {
		opened, err := r.FS.Open(name)
		if isErrno(err, syscall.ENOENT) {
			return nil // The other run has not begun.
		}
		if err != nil {
			return step("open", err)
		}
		defer func() { _ = opened.Close() }()
		if held, err := r.held(opened, buffer); err != nil || !held {
			return err
		}
		err = opened.TryLock()
		if isErrno(err, syscall.EAGAIN) || isErrno(err, syscall.EACCES) {
			return nil // As it should be.
		}
		if err != nil {
			return step("lock", err)
		}
		// It may have been given back meanwhile.
		if held, err := r.held(opened, buffer); err != nil || !held {
			return err
		}
		r.stamp(lockFile, 0, 0).Fill(buffer)
		if err := opened.WriteBlock(0, buffer); err != nil {
			return step("write", err)
		}
		return step("fsync", opened.Sync())
	})
}

// held tells whether the other run says in the file that it holds the lock. Generation 1 is there before it takes the lock.
func (r *Rival) held(opened File, buffer []byte) (bool, error) {
	n, err := opened.ReadBlock(0, buffer)
	if err != nil {
		return false, step("read", err)
	}
	found, intact := ReadStamp(buffer[:n])
	return intact && found.File == lockFile && found.Generation > 1 && found.Generation != released, nil
}

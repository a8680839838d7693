package load

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bench is a load on a file system in memory.
type bench struct {
	*memory
	place  *Place
	lanes  []Lane
	holder *Holder
	ledger *bytes.Buffer
}

type buffer struct{ bytes.Buffer }

func (b *buffer) Write(e Entry) error     { return json.NewEncoder(&b.Buffer).Encode(e) }
func (b *buffer) Large() bool             { return false }
func (b *buffer) Rewrite(_ []Entry) error { return nil }

func newBench(t *testing.T, files *memory, run string) *bench {
	t.Helper()
	kept, random := &buffer{}, rand.New(rand.NewPCG(1, 2))
	place := &Place{
		FS: files, Meter: NewMeter("/data", files.now), Ledger: NewLedger(run, uint64(len(run))+7, 1, kept), Random: random.IntN,
		Again: func() bool {
			files.clock = files.clock.Add(250 * time.Millisecond)
			return files.clock.Sub(files.now().Truncate(time.Hour)) < 30*time.Minute
		},
	}
	b := &bench{memory: files, place: place, ledger: &kept.Buffer, holder: NewHolder(place)}
	b.lanes = []Lane{&Files{Place: place, Blocks: 40}, NewRecords(place, 20), NewOpens(place), &Trees{Place: place, Contest: "both", Most: 10}, b.holder}
	for _, lane := range NewRandomBlocks(place, 21, 2) {
		b.lanes = append(b.lanes, lane)
	}
	if err := place.Prepare(); err != nil {
		t.Fatal(err)
	}
	for _, lane := range b.lanes {
		if !lane.Prepare() {
			t.Fatal("a lane could not prepare")
		}
	}
	return b
}

func (b *bench) steps(n int) {
	for range n {
		for _, lane := range b.lanes {
			lane.Step()
		}
	}
}

// audit is what an audit of the ledger, as it was kept, finds.
func (b *bench) audit(t *testing.T) Directory {
	t.Helper()
	return b.auditAll(t, true)
}

func (b *bench) auditAll(t *testing.T, nothingElse bool) Directory {
	t.Helper()
	ledger, err := ReadLedger(bytes.NewReader(b.ledger.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	place := &Place{FS: b.memory, Meter: NewMeter("/data", b.now), Ledger: ledger, Again: func() bool { return false }}
	place.Audit()
	AuditTogether([]*Ledger{ledger}, place, nothingElse)
	return place.Meter.Found()
}

func (b *bench) end() {
	b.holder.Release()
	b.place.Ledger.NoteEnd()
}

func expect(t *testing.T, what string, found Directory, want Directory) {
	t.Helper()
	if found.BadBlocks != want.BadBlocks || found.StolenLocks != want.StolenLocks || found.LostNames != want.LostNames || found.ExtraNames != want.ExtraNames ||
		found.Stale != want.Stale || found.ErrorCount()-found.Stale != want.ErrorCount()-want.Stale {
		t.Errorf("%s found %d bad blocks, %d stolen locks, %d lost and %d extra names, %d ESTALE, errors %v; %q %q",
			what, found.BadBlocks, found.StolenLocks, found.LostNames, found.ExtraNames, found.Stale, found.Errors, found.Findings, found.FirstError)
	}
}

func TestAGoodFileSystemHasNoFindings(t *testing.T) {
	b := newBench(t, newMemory(), "good")
	b.steps(300)
	b.end()
	found := b.place.Meter.Found()
	expect(t, "the load", found, Directory{})
	expect(t, "the audit", b.audit(t), Directory{})
	for _, kind := range []Operation{Make, Append, Read, OpenFile, Rename, Remove, List, Mkdir, Lock, RandomRead, RandomWrite} {
		if found.Kinds[kind].Count == 0 {
			t.Errorf("no operation %q was done", kind)
		}
	}
	if names := len(b.content); names > 100 {
		t.Errorf("%d files are there: the load has no bound", names)
	}
	if (Result{Directories: []Directory{found}}).Verdict(0) != nil {
		t.Error("the verdict is not good")
	}
}

func TestBrokenPromisesAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		breaks      func(b *bench)
		load, audit Directory
		finding     string
	}{
		"a write that is lost": {
			breaks: func(b *bench) {
				left := 1
				b.written = func(name string, _ int, p []byte) []byte {
					if name == "run/records" && left > 0 {
						left--
						return nil
					}
					return p
				}
			},
			load: Directory{BadBlocks: 1}, finding: "block 6 of run/records is bad: it has write number 1 of this block instead of number 2",
		},
		"a byte that changes later": {
			breaks: func(b *bench) {
				files := b.files("/file-")
				b.content[files[0]][5000]++
			},
			audit: Directory{BadBlocks: 1}, finding: "1 bytes are wrong, the first at offset 5000 of the block",
		},
		"zeros instead of a block": {
			breaks: func(b *bench) { clear(b.content[b.files("/file-")[0]][:BlockSize]) },
			audit:  Directory{BadBlocks: 1}, finding: "it has only zeros",
		},
		"a file that is cut": {
			breaks: func(b *bench) {
				name := b.files("/renamed-")[0]
				b.content[name] = b.content[name][:len(b.content[name])-100]
			},
			audit: Directory{BadBlocks: 1}, finding: "only 8092 of 8192 bytes are there",
		},
		"a block of another file": {
			breaks: func(b *bench) {
				files := b.files("/file-")
				copy(b.content[files[0]][:BlockSize], b.content[files[1]][:BlockSize])
			},
			audit: Directory{BadBlocks: 1}, finding: "of file number",
		},
		"an old block": {
			breaks: func(b *bench) {
				b.place.stamp(randomFile, 0, 1).Fill(b.content["run/random"][:BlockSize])
				b.lanes[5].(*RandomBlocks).generations[0] = 3
				b.place.note(Entry{Is: IsBlock, Name: "run/random", Generation: 3})
			},
			audit: Directory{BadBlocks: 1}, finding: "it has write number 1 of this block instead of number 3",
		},
		"a file that is lost": {
			// The audit misses it twice: in its directory, and when it opens it.
			breaks: func(b *bench) { delete(b.content, b.files("/file-")[0]) },
			audit:  Directory{LostNames: 2}, finding: "is not there",
		},
		"a file that comes back": {
			breaks: func(b *bench) { b.content["run/file-1"] = nil },
			audit:  Directory{ExtraNames: 2}, finding: "run/file-1 is there, and was removed",
		},
		"a directory of no run": {
			breaks: func(b *bench) { b.folders["other"] = true },
			audit:  Directory{ExtraNames: 1}, finding: "other is there, and is in none of the ledgers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, newMemory(), "run")
			b.steps(25)
			if test.load.Wrong() > 0 {
				test.breaks(b)
				b.steps(1)
				expect(t, "the load", b.place.Meter.Found(), test.load)
				expectFinding(t, b.place.Meter.Found(), test.finding)
				return
			}
			b.end()
			test.breaks(b)
			expect(t, "the audit", b.audit(t), test.audit)
			expectFinding(t, b.audit(t), test.finding)
			if err := (Result{Directories: []Directory{b.audit(t)}}).Verdict(0); err == nil {
				t.Error("the verdict is good")
			}
		})
	}
}

func expectFinding(t *testing.T, found Directory, text string) {
	t.Helper()
	if !strings.Contains(strings.Join(found.Findings, "\n"), text) {
		t.Errorf("findings are %q, want one with %q", found.Findings, text)
	}
}

func TestTheLoadFindsALostFileItself(t *testing.T) {
	b := newBench(t, newMemory(), "run")
	b.steps(10)
	for _, name := range b.files("/file-") {
		delete(b.content, name)
	}
	b.steps(10)
	if found := b.place.Meter.Found(); found.LostNames == 0 {
		t.Errorf("found %+v", found)
	}
}

func TestAStolenLockIsFoundByItsHolder(t *testing.T) {
	for _, free := range []bool{false, true} {
		files := newMemory()
		b, rival := newBench(t, files, "run"), newBench(t, files, "another")
		b.steps(2)
		files.freeLocks = free
		(&Rival{Place: rival.place, Holder: "run"}).Step()
		b.steps(1)
		want := Directory{}
		if free {
			want.StolenLocks = 1
			expectFinding(t, b.place.Meter.Found(), `was given to the run "another", while this run held it`)
		}
		expect(t, "the holder", b.place.Meter.Found(), want)
		// What is not held may be taken.
		files.freeLocks = false
		b.end()
		(&Rival{Place: rival.place, Holder: "run"}).Step()
		expect(t, "the audit", b.auditAll(t, false), Directory{})
	}
}

func TestALostLockIsFound(t *testing.T) {
	b := newBench(t, newMemory(), "run")
	b.steps(2)
	left := 1
	b.fails = func(operation, name string) error {
		if operation == "write" && name == "run/lock" && left > 0 {
			left--
			return syscall.EIO
		}
		return nil
	}
	b.steps(2)
	expect(t, "the load", b.place.Meter.Found(), Directory{StolenLocks: 1, Errors: map[string]int64{"EIO": 1}})
}

func TestStallsAndErrorsAreCounted(t *testing.T) {
	b := newBench(t, newMemory(), "run")
	b.steps(3)
	began := b.now()
	failures := 3
	b.fails = func(operation, name string) error {
		switch {
		case operation == "sync" && name == "run/records" && failures > 0:
			failures--
			return []error{syscall.EIO, syscall.ESTALE, syscall.EIO}[failures]
		case operation == "list":
			b.clock = b.clock.Add(3 * time.Second)
		}
		return nil
	}
	b.steps(3) // The sixth file makes the load list the directory.
	b.fails = func(string, string) error { return nil }
	b.end()
	found := b.place.Meter.Found()
	expect(t, "the load", found, Directory{Stale: 1, Errors: map[string]int64{"EIO": 2}})
	expect(t, "the audit", b.audit(t), Directory{})
	if found.Longest.Operation != List || found.Longest.Seconds < 3 || found.Longest.Seconds > 3.1 || found.Longest.At.Before(began) {
		t.Errorf("the longest stall is %+v", found.Longest)
	}
	if took := found.Kinds[Append].Longest; took < 0.75 || took > 1 {
		t.Errorf("a write that was tried again for 0.75 s took %v s", took)
	}
	if len(found.Stalls) != 1 {
		t.Errorf("stalls are %v", found.Stalls)
	}
	if want := "append run/records: fsync: input/output error"; !strings.HasPrefix(found.FirstError, want) {
		t.Errorf("the first error is %q, want %q", found.FirstError, want)
	}
	result := Result{Directories: []Directory{found}}
	if result.Verdict(0) == nil {
		t.Error("errors are not in the verdict")
	}
	calm := Result{Directories: []Directory{{Path: "/data", Longest: found.Longest}}}
	if calm.Verdict(0) != nil || calm.Verdict(4*time.Second) != nil || calm.Verdict(2*time.Second) == nil {
		t.Error("a stall is an error only if it is longer than allowed")
	}
}

func TestAListingUnderWayThatIsStaleIsCountedApart(t *testing.T) {
	b := newBench(t, newMemory(), "run")
	failures := []error{&fs.PathError{Op: "open", Path: "run", Err: syscall.ESTALE}, &fs.PathError{Op: "readdirent", Path: "run", Err: syscall.ESTALE}}
	b.fails = func(operation, _ string) (err error) {
		if operation == "list" && len(failures) > 0 {
			err, failures = failures[0], failures[1:]
		}
		return err
	}
	b.steps(6) // The sixth file makes the load list the directory.
	if found := b.place.Meter.Found(); found.Stale != 2 || found.StaleListings != 1 {
		t.Errorf("%d ESTALE, %d of them listings under way", found.Stale, found.StaleListings)
	}
}

func TestWhatWaitsIsAStallAndUnfinished(t *testing.T) {
	files := newMemory()
	m := NewMeter("/data", files.now)
	m.begin(Append, "run/records")
	files.clock = files.clock.Add(7 * time.Second)
	found := m.Found()
	if found.Longest.Seconds != 7 || len(found.Unfinished) != 1 || found.Operations != 0 {
		t.Errorf("found %+v", found)
	}
	if waits, what := m.Waiting(); waits != 7*time.Second || what != "append run/records, waiting for 7.0 s" {
		t.Errorf("waits %s: %s", waits, what)
	}
}

// A server that is killed after it did something may be asked again: the answers are then that it is done.
func TestAnswersThatSomethingIsDoneAreDoubtfulAndNoErrors(t *testing.T) {
	b := newBench(t, newMemory(), "run")
	again := map[string]bool{}
	b.fails = func(operation, name string) error {
		if operation != "mkdir" && operation != "rename" && operation != "remove" || strings.HasPrefix(name, "both") || again[operation+name] {
			return nil
		}
		again[operation+name] = true
		switch operation {
		case "mkdir":
			return b.Mkdir(name)
		case "remove":
			if b.folders[name] {
				return b.RemoveDirectory(name)
			}
			return b.Remove(name)
		}
		return nil
	}
	b.steps(100)
	b.end()
	found := b.place.Meter.Found()
	expect(t, "the load", found, Directory{})
	expect(t, "the audit", b.audit(t), Directory{})
	if found.Doubtful == 0 {
		t.Error("no answer is doubtful")
	}
}

func TestANameThatTwoRunsMadeIsFound(t *testing.T) {
	one, two := NewLedger("one", 1, 1, nil), NewLedger("two", 2, 1, nil)
	one.note(Entry{Is: IsWon, Name: "both-0"})
	two.note(Entry{Is: IsWon, Name: "both-0"})
	one.note(Entry{Is: IsWon, Name: "both-1"})
	two.note(Entry{Is: IsLost, Name: "both-1"})
	files := newMemory()
	place := &Place{FS: files, Meter: NewMeter("/data", files.now)}
	AuditTogether([]*Ledger{one, two}, place, false)
	expect(t, "the audit", place.Meter.Found(), Directory{ExtraNames: 1})
	expectFinding(t, place.Meter.Found(), "both-0 was made by both one and two")
}

func TestTwoRunsCompeteForNames(t *testing.T) {
	files := newMemory()
	one, two := newBench(t, files, "one"), newBench(t, files, "two-")
	for range 20 {
		one.steps(1)
		two.steps(1)
	}
	won := map[string]int{}
	for _, b := range []*bench{one, two} {
		for name, state := range b.place.Ledger.inFolder(0, "") {
			if state == IsWon {
				won[name]++
			}
		}
	}
	if len(won) == 0 {
		t.Error("no name was contested")
	}
	for name, count := range won {
		if count != 1 {
			t.Errorf("%s was won %d times", name, count)
		}
	}
}

package engine

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/load"
)

func options(t *testing.T, name string, directories ...string) Options {
	t.Helper()
	return Options{
		Directories: directories, Name: name, Pause: time.Millisecond, Bytes: 2 << 20, Parts: Parts, Threads: 2, Locks: Flock, StopWait: time.Minute,
		Report: func(string) {},
	}
}

// until runs a load until it has done some operations in each directory.
func until(t *testing.T, o Options) load.Result {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	o.Report = func(line string) {
		if strings.Contains(line, "in all directories") {
			running.Go(func() {
				defer stop()
				pause(t.Context(), time.Second)
			})
		}
	}
	result, err := Run(ctx, o)
	running.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func audit(t *testing.T, o AuditOptions) load.Result {
	t.Helper()
	result, err := Audit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestALoadOfRealDirectoriesIsRightAndAuditsFindWhatIsChanged(t *testing.T) {
	for _, locks := range []Locks{Flock, Fcntl} {
		t.Run(string(locks), func(t *testing.T) {
			one, two := t.TempDir(), t.TempDir()
			o := options(t, "run", one, two)
			o.Locks, o.Ledger, o.Contest = locks, filepath.Join(t.TempDir(), "ledger"), "both"
			result := until(t, o)
			if err := result.Verdict(0); err != nil {
				t.Errorf("%v\n%s", err, result.Text())
			}
			for _, d := range result.Directories {
				if d.Operations < 20 || d.Checked < 20 || d.Random == nil || len(d.Kinds) < 9 || len(d.Unfinished) > 0 {
					t.Errorf("found %+v", d)
				}
				if used := bytesIn(t, d.Path); used > o.Bytes+o.Bytes/4 {
					t.Errorf("%s has %d bytes, %d are allowed", d.Path, used, o.Bytes)
				}
			}
			for _, ledgers := range [][]string{nil, {o.Ledger}} {
				if result := audit(t, AuditOptions{Directories: o.Directories, Ledgers: ledgers, NothingElse: true}); result.Verdict(0) != nil || result.Directories[0].Checked < 10 {
					t.Errorf("with ledgers %v:\n%s", ledgers, result.Text())
				}
			}
			if err := os.WriteFile(filepath.Join(two, "run", "records"), []byte("wrong"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(one, "run", "opened")); err != nil {
				t.Fatal(err)
			}
			found := audit(t, AuditOptions{Directories: o.Directories})
			if found.Directories[0].LostNames == 0 || found.Directories[0].BadBlocks > 0 || found.Directories[1].BadBlocks == 0 || found.Verdict(0) == nil {
				t.Errorf("found\n%s", found.Text())
			}
		})
	}
}

func TestAMarkedEventHasItsEffect(t *testing.T) {
	marks := make(chan os.Signal, 1)
	o := options(t, "run", t.TempDir())
	o.Parts, o.Marks = []string{PartRandom}, marks
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o.Report = func(line string) {
		switch {
		case strings.Contains(line, "in all directories"):
			// Before it there is a whole second, and one after it.
			time.AfterFunc(2500*time.Millisecond, func() { marks <- os.Interrupt })
		case strings.Contains(line, "an event is marked"):
			time.AfterFunc(2500*time.Millisecond, stop)
		}
	}
	result, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	effects := result.Directories[0].Random.Effects
	if len(effects) != 1 || effects[0].Before == 0 || effects[0].At.Before(result.Began) || result.Together != nil {
		t.Errorf("got %+v", result)
	}
}

func bytesIn(t *testing.T, path string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestRivalsDoNotGetALockThatIsHeld(t *testing.T) {
	path := t.TempDir()
	one, two := options(t, "one", path), options(t, "two", path)
	one.Rivals, two.Rivals, two.Locks = []string{"two"}, []string{"one"}, Flock
	var both sync.WaitGroup
	for _, o := range []Options{one, two} {
		both.Go(func() {
			if result := until(t, o); result.Verdict(0) != nil {
				t.Errorf("run %s:\n%s", o.Name, result.Text())
			}
		})
	}
	both.Wait()
	if result := audit(t, AuditOptions{Directories: []string{path}, NothingElse: true}); result.Verdict(0) != nil {
		t.Errorf("the audit:\n%s", result.Text())
	}
}

// A lock of fcntl is none for flock on a local file system, so the rival gets it, and the holder finds that out.
func TestALockThatIsGivenTwiceIsFound(t *testing.T) {
	path := t.TempDir()
	one, two := options(t, "one", path), options(t, "two", path)
	two.Rivals, two.Locks = []string{"one"}, Fcntl
	var both sync.WaitGroup
	var held load.Result
	both.Go(func() { held = until(t, one) })
	both.Go(func() { until(t, two) })
	both.Wait()
	if held.Directories[0].StolenLocks == 0 || held.Verdict(0) == nil {
		t.Errorf("found\n%s", held.Text())
	}
}

func TestALongLedgerIsWrittenAgain(t *testing.T) {
	file, err := newLedgerFile(filepath.Join(t.TempDir(), "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	file.limit = 10_000
	ledger := load.NewLedger("run", 1, 1, file)
	place := &load.Place{FS: directory{t.TempDir(), Flock}, Meter: load.NewMeter("x", time.Now), Ledger: ledger, Random: func(int) int { return 0 }, Again: func() bool { return false }}
	if err := place.Prepare(); err != nil {
		t.Fatal(err)
	}
	opens := load.NewRecords(place, 10)
	if !opens.Prepare() {
		t.Fatal("not prepared")
	}
	for range 500 {
		opens.Step()
	}
	if ledger.Err() != nil || file.limit != rewriteAt {
		t.Errorf("err %v, limit %d", ledger.Err(), file.limit)
	}
	read, err := readLedgers([]string{file.path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := read[0].Entries(), ledger.Entries(); !slices.EqualFunc(got, want, func(a, b load.Entry) bool { return slices.Equal(a.Generations, b.Generations) && a.Name == b.Name }) {
		t.Errorf("read %v, want %v", got, want)
	}
}

func TestWhatCannotRunIsRefusedAtOnce(t *testing.T) {
	path := t.TempDir()
	for want, change := range map[string]func(o *Options){
		"one directory at least":    func(o *Options) { o.Directories = nil },
		"no such file":              func(o *Options) { o.Directories = []string{filepath.Join(path, "missing")} },
		"given twice":               func(o *Options) { o.Directories = []string{path, path} },
		"can't be the name":         func(o *Options) { o.Name = "../x" },
		"--bytes is 1;":             func(o *Options) { o.Bytes = 1 },
		`no part "all"`:             func(o *Options) { o.Parts = []string{"all"} },
		"--threads is 0":            func(o *Options) { o.Threads = 0 },
		"flock and fcntl":           func(o *Options) { o.Locks = "posix" },
		"making the ledger":         func(o *Options) { o.Ledger = filepath.Join(path, "missing", "ledger") },
		"file exists":               func(o *Options) { o.Name = "there" },
		"is not a directory":        func(o *Options) { o.Directories = []string{filepath.Join(path, "file")} },
		"no part of a load":         func(o *Options) { o.Parts = nil },
		`"a/b"; it is the begin of`: func(o *Options) { o.Contest = "a/b" },
	} {
		_ = os.Mkdir(filepath.Join(path, "there"), 0o700)
		if err := os.WriteFile(filepath.Join(path, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		o := options(t, "run", path)
		change(&o)
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := Audit(t.Context(), AuditOptions{Directories: []string{t.TempDir()}}); err == nil || !strings.Contains(err.Error(), "has no ledger") {
		t.Errorf("an audit without a ledger: %v", err)
	}
}

// hanging is a file system whose server is away after some time.
type hanging struct {
	load.FileSystem
	away chan struct{}
	ever chan struct{}
}

func (h hanging) Open(name string) (load.File, error) {
	select {
	case <-h.away:
		<-h.ever
	default:
	}
	return h.FileSystem.Open(name)
}

func TestALoadEndsInTimeWhenItsOperationsHang(t *testing.T) {
	path, away, ever := t.TempDir(), make(chan struct{}), make(chan struct{})
	o := options(t, "run", path)
	o.Parts, o.StopWait, o.Ledger = []string{PartOpens, PartRecords}, 200*time.Millisecond, filepath.Join(t.TempDir(), "ledger")
	o.files = func(path string) load.FileSystem {
		return hanging{directory{path, Flock}, away, ever}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o.Report = func(line string) {
		if strings.Contains(line, "in all directories") {
			time.AfterFunc(200*time.Millisecond, func() { close(away) })
			time.AfterFunc(600*time.Millisecond, stop)
		}
	}
	result, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	found := result.Directories[0]
	if len(found.Unfinished) == 0 || found.Longest.Operation != load.OpenFile || found.Longest.Seconds < 0.2 || found.Wrong() > 0 {
		t.Errorf("found %+v", found)
	}
	close(ever)
	if result := audit(t, AuditOptions{Directories: []string{path}, Ledgers: []string{o.Ledger}}); result.Verdict(0) != nil {
		t.Errorf("the audit found\n%s", result.Text())
	}
}

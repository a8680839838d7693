package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/howdah/howdah/internal/load"
)

const (
	// retryEvery is the pause before an operation that failed is tried again.
	retryEvery = 250 * time.Millisecond
	// reportEvery is the time between two reports of progress.
	reportEvery = 10 * time.Second
	// ownTick is how often the load looks whether it runs itself.
	ownTick = 10 * time.Millisecond
	// leaveWait is how long writing the ledger into the directories may take.
	leaveWait = 15 * time.Second
)

// Parts of a load.
const (
	PartFiles   = "files"
	PartRecords = "records"
	PartOpens   = "opens"
	PartLock    = "lock"
	PartRandom  = "random"
	PartTree    = "tree"
)

// Parts are all parts of a load, DefaultParts those it has by default.
var (
	Parts        = []string{PartFiles, PartRecords, PartOpens, PartLock, PartRandom, PartTree}
	DefaultParts = []string{PartFiles, PartRecords, PartOpens, PartLock}
)

// Options are those of a load.
type Options struct {
	// Directories are loaded, all at the same time.
	Directories []string
	// Name is the run's name, and that of its own directory in each of Directories.
	Name string
	// Pause is between two steps of a thread.
	Pause time.Duration
	// RandomPause is the same for the threads of the random load.
	RandomPause time.Duration
	// Bytes is the most that the files of the load have together in each directory.
	Bytes int64
	// Parts is what is done.
	Parts []string
	// Threads is the number of threads of the random load in each directory.
	Threads int
	Locks   Locks
	// Rivals are names of other runs whose locks are tried. Contest is the begin of names that several runs try to make.
	Rivals  []string
	Contest string
	// Ledger is the file of the ledger; "" for none but those that are left in the directories.
	Ledger string
	// StopWait is how long operations that are under way at the end may take.
	StopWait time.Duration
	// Marks has a value for each event whose effect on the random load is asked for. nil: there is none.
	Marks <-chan os.Signal
	// Report gets lines about the progress.
	Report func(line string)

	// files is unset for the real ones.
	files func(path string) load.FileSystem
}

// Check is an error if the options don't fit.
func (o Options) Check() error {
	for _, part := range o.Parts {
		if !slices.Contains(Parts, part) {
			return fmt.Errorf("there is no part %q of a load: the parts are %s", part, strings.Join(Parts, ", "))
		}
	}
	switch {
	case len(o.Directories) == 0:
		return errors.New("give one directory at least")
	case len(o.Directories) > load.MaxDirectories:
		return fmt.Errorf("there are %d directories, and %d are allowed", len(o.Directories), load.MaxDirectories)
	case o.Bytes < load.MinBytes || o.Bytes > load.MaxBytes:
		return fmt.Errorf("--bytes is %d; %d to %d are allowed", o.Bytes, load.MinBytes, int64(load.MaxBytes))
	case o.Threads < 1 || o.Threads > 64:
		return fmt.Errorf("--threads is %d; 1 to 64 are allowed", o.Threads)
	case o.Locks != Flock && o.Locks != Fcntl:
		return fmt.Errorf("--locks is %q; flock and fcntl are allowed", o.Locks)
	case len(o.Parts) == 0:
		return errors.New("no part of a load is asked for")
	}
	for _, name := range append([]string{o.Name}, o.Rivals...) {
		if name == "" || name == "." || name == ".." || len(name) > load.MaxName || strings.ContainsAny(name, "/\n") {
			return fmt.Errorf("%q can't be the name of a run: it is a file name of at most %d characters", name, load.MaxName)
		}
	}
	if strings.Contains(o.Contest, "/") {
		return fmt.Errorf("--contest is %q; it is the begin of a file name", o.Contest)
	}
	return checkDirectories(o.Directories)
}

func checkDirectories(directories []string) error {
	for i, path := range directories {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory", path)
		case slices.Contains(directories[:i], path):
			return fmt.Errorf("%s is given twice", path)
		}
	}
	return nil
}

// run is a load under way.
type run struct {
	Options
	ledger *load.Ledger
	places []*load.Place
	ready  atomic.Int32
	failed atomic.Pointer[error]
	stop   context.CancelFunc
	// marked are the times of the events. Only reportUntil uses it while the load runs.
	marked []time.Time
}

// Run loads the directories until the context ends, and returns what it found. An error is about the load itself.
func Run(ctx context.Context, options Options) (load.Result, error) {
	if err := options.Check(); err != nil {
		return load.Result{}, err
	}
	if options.files == nil {
		options.files = func(path string) load.FileSystem { return directory{path, options.Locks} }
	}
	r := &run{Options: options}
	var keeper load.Keeper
	if options.Ledger != "" {
		file, err := newLedgerFile(options.Ledger)
		if err != nil {
			return load.Result{}, err
		}
		defer func() { _ = file.file.Close() }() // Each entry was written by itself.
		keeper = file
	}
	//nolint:gosec // it only distinguishes the blocks of runs
	r.ledger = load.NewLedger(options.Name, rand.Uint64(), len(options.Directories), keeper)
	ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	began := time.Now()
	var own ownPause
	go own.watch(ctx)
	ended := make(chan struct{})
	var work sync.WaitGroup
	for i, path := range options.Directories {
		place := &load.Place{
			Number: i, FS: options.files(path), Meter: load.NewMeter(path, time.Now), Ledger: r.ledger, Random: rand.IntN,
			Again: func() bool { return pause(ctx, retryEvery) },
		}
		r.places = append(r.places, place)
		work.Go(func() { r.load(ctx, place) })
	}
	go func() {
		work.Wait()
		close(ended)
	}()
	r.reportUntil(ctx, ended)
	select {
	case <-ended:
		r.leave()
	case <-time.After(options.StopWait):
		r.Report(fmt.Sprintf("some operations did not end within %s", options.StopWait))
	}
	result := load.Result{Run: options.Name, Began: began.UTC(), Seconds: time.Since(began).Seconds(), OwnPause: own.longest().Seconds()}
	for _, place := range r.places {
		result.Directories = append(result.Directories, place.Meter.Found())
	}
	result = result.WithMarks(r.marked)
	if err := r.failed.Load(); err != nil {
		return result, *err
	}
	if err := r.ledger.Err(); err != nil {
		return result, fmt.Errorf("keeping the ledger: %w", err)
	}
	return result, nil
}

// load loads one directory until the context ends.
func (r *run) load(ctx context.Context, place *load.Place) {
	if err := place.Prepare(); err != nil {
		r.failed.Store(&err)
		r.stop()
		return
	}
	lanes, quick, holder := r.lanes(place)
	for _, lane := range append(slices.Clone(lanes), quick...) {
		if ctx.Err() != nil || !lane.Prepare() {
			return
		}
	}
	if int(r.ready.Add(1)) == len(r.Directories) {
		r.Report("the load runs in all directories")
	}
	var threads sync.WaitGroup
	work := func(lane load.Lane, rest time.Duration) {
		threads.Go(func() {
			for ctx.Err() == nil {
				lane.Step()
				pause(ctx, rest)
			}
		})
	}
	for _, lane := range lanes {
		work(lane, r.Pause)
	}
	for _, lane := range quick {
		work(lane, r.RandomPause)
	}
	threads.Wait()
	if holder != nil {
		holder.Release()
	}
}

// lanes are the threads of one directory, and those of the random load.
func (r *run) lanes(place *load.Place) (lanes, quick []load.Lane, holder *load.Holder) {
	does := func(part string) bool { return slices.Contains(r.Parts, part) }
	// Some blocks are for the files of the lock and of opens.
	blocks := int(r.Bytes/load.BlockSize) - 8
	share := blocks / 4
	if does(PartFiles) {
		lanes = append(lanes, &load.Files{Place: place, Blocks: share})
	}
	if does(PartRecords) {
		lanes = append(lanes, load.NewRecords(place, share))
	}
	if does(PartTree) {
		const most = 500
		lanes = append(lanes, &load.Trees{Place: place, Contest: r.Contest, Most: min(most, share)})
	}
	if does(PartOpens) {
		lanes = append(lanes, load.NewOpens(place))
	}
	if does(PartLock) {
		holder = load.NewHolder(place)
		lanes = append(lanes, holder)
	}
	for _, rival := range r.Rivals {
		lanes = append(lanes, &load.Rival{Place: place, Holder: rival})
	}
	if does(PartRandom) {
		for _, lane := range load.NewRandomBlocks(place, share, min(r.Threads, share)) {
			quick = append(quick, lane)
		}
	}
	return lanes, quick, holder
}

// leave writes the ledger into the directories, so that another client finds it there.
func (r *run) leave() {
	if r.ready.Load() < int32(len(r.Directories)) {
		return
	}
	for _, place := range r.places {
		place.NoteLedger(ledgerName)
	}
	r.ledger.NoteEnd()
	entries := r.ledger.Entries()
	left := make(chan error, len(r.Directories))
	for _, path := range r.Directories {
		go func() { left <- leave(path, r.Name, entries) }()
	}
	late := time.After(leaveWait)
	for range r.Directories {
		select {
		case err := <-left:
			if err != nil {
				r.Report("writing the ledger into a directory failed: " + err.Error())
			}
		case <-late:
			r.Report("writing the ledger into a directory takes too long")
			return
		}
	}
}

// reportUntil reports progress until the context ends or the work does.
func (r *run) reportUntil(ctx context.Context, ended <-chan struct{}) {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
			return
		case <-r.Marks:
			r.marked = append(r.marked, time.Now())
			r.Report("an event is marked")
			continue
		case <-ticker.C:
		}
		for _, place := range r.places {
			found := place.Meter.Found()
			line := fmt.Sprintf("%s: %d operations, longest stall %s, %d errors, %d findings of wrong data", found.Path, found.Operations, found.Longest, found.ErrorCount(), found.Wrong())
			if waits, what := place.Meter.Waiting(); waits > time.Second {
				line += "; now: " + what
			}
			r.Report(line)
		}
		if r.ledger.Err() != nil {
			r.stop()
		}
	}
}

// pause waits, and is false if the context ended.
func pause(ctx context.Context, long time.Duration) bool {
	if long <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// ownPause is the longest time in which this process did not run, because its machine was busy or stood still.
type ownPause struct{ nanoseconds atomic.Int64 }

func (o *ownPause) watch(ctx context.Context) {
	for last := time.Now(); pause(ctx, ownTick); {
		now := time.Now()
		if late := now.Sub(last) - ownTick; int64(late) > o.nanoseconds.Load() {
			o.nanoseconds.Store(int64(late))
		}
		last = now
	}
}

func (o *ownPause) longest() time.Duration { return time.Duration(o.nanoseconds.Load()) }

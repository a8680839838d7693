package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/howdah/howdah/internal/benchmark"
)

// file is a file of the dataset.
type file struct {
	path  string
	shape benchmark.Shape
}

// sampleFile is an open file of the dataset.
type sampleFile interface {
	io.ReadCloser
	// Drop removes the file from the page cache.
	Drop()
}

type cachedFile struct{ *os.File }

// Drop removes the file from the page cache.
func (f cachedFile) Drop() { dropCached(f.File) }

func openCached(path string) (sampleFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return cachedFile{f}, nil
}

// accelerator emulates one accelerator.
type accelerator struct {
	runner  *Runner
	session *session
	files   []file
	order   *benchmark.Order
	// epochs are the epochs that it has read.
	epochs []measuredEpoch
}

// measuredEpoch is what an accelerator measured in an epoch.
type measuredEpoch struct {
	benchmark.RankEpoch
	// waits are the times in which it waited for a batch, and late is by how much the computations
	// took longer than they should, step by step.
	waits []span
	late  []time.Duration
}

// epoch reads every sample of the accelerator once: for each step it waits for the batch,
// computes, and waits for all accelerators of all clients. Times are taken where DLIO takes them.
func (a *accelerator) epoch(ctx context.Context) error {
	plan := a.runner.Plan
	samples := a.order.NextEpoch()
	measured := measuredEpoch{RankEpoch: benchmark.RankEpoch{
		EpochTimes: benchmark.EpochTimes{Steps: plan.Steps(), Compute: plan.Compute()},
	}}
	if err := a.session.local.wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	start := time.Now()
	loader := a.startLoader(ctx, samples, plan.Steps())
	defer loader.stop(cancel)
	for step := range plan.Steps() {
		asked := time.Now()
		bytes, err := loader.next(ctx)
		if err != nil {
			return err
		}
		measured.Bytes += bytes
		got := time.Now()
		if err := a.compute(ctx, plan.Compute()); err != nil {
			return err
		}
		done := time.Now()
		if step == 0 {
			measured.First = done.Sub(start)
		}
		measured.waits = append(measured.waits, span{asked, got})
		measured.late = append(measured.late, max(done.Sub(got)-plan.Compute(), 0))
		if err := a.session.local.wait(ctx); err != nil {
			return err
		}
	}
	measured.Total = time.Since(start)
	a.epochs = append(a.epochs, measured)
	return nil
}

// compute emulates the computation of a step.
func (a *accelerator) compute(ctx context.Context, d time.Duration) error {
	if a.runner.compute != nil {
		return a.runner.compute(ctx, d)
	}
	return sleep(ctx, d)
}

// sleep waits unless the context ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// loader is torch's DataLoader: readers that each read whole batches, given out to
// them in turn and consumed in order, with a limit of outstanding batches.
type loader struct {
	results []chan batch // of each reader
	tokens  []chan struct{}
	given   int
	taken   int
	steps   int
	group   sync.WaitGroup
}

type batch struct {
	bytes int64
	err   error
}

func (a *accelerator) startLoader(ctx context.Context, samples []int, steps int) *loader {
	readers := a.runner.Plan.ReadThreads
	outstanding := benchmark.Outstanding(readers)
	l := &loader{steps: steps}
	for reader := range readers {
		results, tokens := make(chan batch, outstanding), make(chan struct{}, outstanding)
		l.results, l.tokens = append(l.results, results), append(l.tokens, tokens)
		l.group.Go(func() { a.read(ctx, samples, reader, tokens, results) })
	}
	for range outstanding {
		l.give()
	}
	return l
}

// give hands out the next batch.
func (l *loader) give() {
	if l.given < l.steps {
		l.tokens[l.given%len(l.tokens)] <- struct{}{} // has room for all that are outstanding
		l.given++
	}
}

// next waits for the next batch, and hands out another.
func (l *loader) next(ctx context.Context) (int64, error) {
	select {
	case b := <-l.results[l.taken%len(l.results)]:
		l.taken++
		l.give()
		return b.bytes, b.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (l *loader) stop(cancel context.CancelFunc) {
	cancel()
	l.group.Wait()
}

// read is a reader: it reads every readers-th batch.
func (a *accelerator) read(ctx context.Context, samples []int, reader int, tokens <-chan struct{}, results chan<- batch) {
	buffer := make([]byte, blockSize)
	for number := reader; ; number += a.runner.Plan.ReadThreads {
		select {
		case <-tokens:
		case <-ctx.Done():
			return
		}
		var b batch
		for _, sample := range samples[number*benchmark.BatchSize : (number+1)*benchmark.BatchSize] {
			if b.err = ctx.Err(); b.err != nil {
				break
			}
			var n int64
			n, b.err = a.readFile(a.files[sample], buffer)
			b.bytes += n
			a.session.bytes.Add(n)
			if b.err != nil {
				break
			}
		}
		results <- b // has room for all that are outstanding
		if b.err != nil {
			return
		}
	}
}

// readFile reads a file from its beginning to its end, checks that it is the
// sample it should be, and takes it out of the page cache, so that the next epoch asks the servers again.
func (a *accelerator) readFile(f file, buffer []byte) (int64, error) {
	open := a.runner.open
	if open == nil {
		open = openCached
	}
	opened, err := open(f.path)
	if err != nil {
		return 0, err
	}
	defer opened.Close() //nolint:errcheck // read only
	total := int64(0)
	for {
		n, err := io.ReadFull(opened, buffer)
		if total == 0 {
			if headErr := benchmark.CheckNPZHead(buffer[:n], f.shape); headErr != nil {
				return total, fmt.Errorf("%s: %w", f.path, headErr)
			}
		}
		total += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return total, err
		}
	}
	if total != f.shape.FileSize() {
		return total, fmt.Errorf("%s has %d bytes instead of %d", f.path, total, f.shape.FileSize())
	}
	opened.Drop()
	return total, nil
}

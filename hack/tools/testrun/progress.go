package main

import (
	"fmt"
	"io"
	"path"
	"sync"
	"time"

	"gotest.tools/gotestsum/testjson"
)

// remindEvery is how often a stage that is silent says how far it is.
const remindEvery = 10 * time.Second

// progress is how far a stage is.
type progress struct {
	mu                       sync.Mutex
	passed, failed, packages int
	// running is what began last, "" before anything has.
	running string
}

func (p *progress) hear(event testjson.TestEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case event.PackageEvent() && event.Action.IsTerminal():
		p.packages++
	case event.PackageEvent():
	case event.Action == testjson.ActionRun:
		p.running = path.Base(event.Package) + " " + event.Test
	case event.Action == testjson.ActionPass:
		p.passed++
	case event.Action == testjson.ActionFail:
		p.failed++
	}
}

func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == "" && p.packages == 0 {
		return "compiling, no test has begun yet"
	}
	return fmt.Sprintf("%d packages done, %d tests passed, %d failed; the last that began: %s", p.packages, p.passed, p.failed, p.running)
}

// remind says how far a stage is until stop is called.
func (p *progress) remind(out io.Writer, stage string, every time.Duration) (stop func()) {
	done, began := make(chan struct{}), time.Now()
	var teller sync.WaitGroup
	teller.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(out, "... %s, %s: %s\n", stage, time.Since(began).Round(time.Second), p)
			}
		}
	})
	return func() {
		close(done)
		teller.Wait()
	}
}

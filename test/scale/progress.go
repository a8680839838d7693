package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// every is the longest time between two lines.
const every = 5 * time.Second

// progress says what is being done and how far it is.
type progress struct {
	out   io.Writer
	steps int

	mu                      sync.Mutex
	step                    int
	doing, state            string
	started, since, printed time.Time
}

func newProgress(out io.Writer, steps int) *progress {
	return &progress{out: out, steps: steps, started: time.Now()}
}

// begin is the next step.
func (p *progress) begin(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step++
	p.doing, p.state, p.since = fmt.Sprintf(format, args...), "", time.Now()
	p.say("")
}

// note is what the step waits for or is about, for the next line.
func (p *progress) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = fmt.Sprintf(format, args...)
}

// run says that a step is still under way, until ctx ends.
func (p *progress) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.remind()
		}
	}
}

// end says what the step has found.
func (p *progress) end(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say(": " + fmt.Sprintf(format, args...))
}

func (p *progress) remind() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.step == 0 || time.Since(p.printed) < every {
		return
	}
	far := fmt.Sprintf(": %.0f s", time.Since(p.since).Seconds())
	if p.state != "" {
		far += ", " + p.state
	}
	p.say(far)
}

// say is called with the lock held.
func (p *progress) say(far string) {
	p.printed = time.Now()
	fmt.Fprintf(p.out, "%5.0f s  step %d of %d: %s%s\n", time.Since(p.started).Seconds(), p.step, p.steps, p.doing, far)
}

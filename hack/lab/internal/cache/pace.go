package cache

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// remindEvery is how often a step that takes long says how far it is.
const remindEvery = 10 * time.Second

// pace is how far the making of a product is.
type pace struct {
	mu     sync.Mutex
	lines  int
	atMost int // Go packages, if it is known how many there are.
	last   string
}

// hear takes a line that a command has written.
func (p *pace) hear(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = line
	if !strings.HasPrefix(line, "go: ") { // Downloads are no packages that were compiled.
		p.lines++
	}
}

// expect begins to count Go packages.
func (p *pace) expect(packages int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines, p.atMost = 0, packages
}

// String is "", or begins with a colon.
func (p *pace) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	const most = 80
	last := p.last
	if len(last) > most {
		last = strings.ToValidUTF8(last[:most], "") + "..."
	}
	switch {
	case last == "":
		return ""
	case p.atMost > 0:
		return fmt.Sprintf(": %d of at most %d packages, now %s", p.lines, p.atMost, last)
	}
	return fmt.Sprintf(": %d lines of output, now %s", p.lines, last)
}

// remind says every now and then that a product is still being made, until stop is called.
func (c *Cache) remind(name string) (stop func()) {
	c.pace = &pace{}
	sys.Listen(c.pace.hear)
	started, done := time.Now(), make(chan struct{})
	var reminding sync.WaitGroup
	reminding.Go(func() {
		tick := time.NewTicker(remindEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				c.Say("still making %s after %s%s", name, time.Since(started).Round(time.Second), c.pace)
			}
		}
	})
	return func() {
		close(done)
		reminding.Wait()
		sys.Listen(nil)
	}
}

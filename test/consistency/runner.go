package consistency

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Client does operations, one after the other.
type Client interface {
	// Do does one. An error: it is not known what became of it. repeated is Operation.Repeated.
	Do(ctx context.Context, r Request) (answer Answer, repeated bool, err error)
	// Server is where requests go now; "" if that is not known.
	Server() string
}

// Runner has clients work at the same time and keeps the history. The zero value is not ready: use NewRunner.
type Runner struct {
	began time.Time

	mu      sync.Mutex
	history History
}

// NewRunner is a Runner whose clock starts now.
func NewRunner() *Runner { return &Runner{began: time.Now()} }

// Now is the time of the history. It does not go back: time.Since uses Go's monotonic clock.
func (r *Runner) Now() time.Duration { return time.Since(r.began) }

// Do has a client do one operation and notes it. It returns false if it is not known what became of it.
func (r *Runner) Do(ctx context.Context, number int, c Client, request Request) bool {
	r.mu.Lock()
	at := len(r.history)
	r.history = append(r.history, Operation{Client: number, Server: c.Server(), Request: request, Call: r.Now(), Return: Never})
	r.mu.Unlock()
	answer, repeated, err := c.Do(ctx, request)
	back := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &r.history[at]
	o.Repeated = repeated
	if server := c.Server(); server != o.Server {
		o.Server = "" // It went to more than one.
	}
	if err != nil {
		return false
	}
	o.Answer, o.Return = answer, back
	return true
}

// Load has clients work until ctx ends, and gives each operation in flight the rest to end. Those that do not are open in the history.
// next is what a client does; its pauses are up to pause. A client of which it is not known what became of its operation gets a new
// number: it may still be at it.
func (r *Runner) Load(ctx context.Context, seed uint64, clients []Client, pause, rest time.Duration, next func(random *rand.Rand) Request) {
	operations, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var workers sync.WaitGroup
	for i, c := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // A seed repeats the order.
		number := i
		workers.Go(func() {
			for ctx.Err() == nil {
				if !r.Do(operations, number, c, next(random)) {
					number += len(clients)
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(random.Int64N(int64(pause) + 1))):
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { workers.Wait(); close(ended) }()
	<-ctx.Done()
	select {
	case <-ended:
		return
	case <-time.After(rest):
	}
	cancel()
	<-ended
}

// History is what happened until now.
func (r *Runner) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(History(nil), r.history...)
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// errRunDone ends a client's context when the coordinator has all reports.
var errRunDone = errors.New("the run is done")

// session is a client's side of the connection to the coordinator.
type session struct {
	link     *link
	released chan int
	next     int
	bytes    atomic.Int64
	local    *barrier
}

// listen reads the coordinator's messages, and ends the client's context at the end of the run.
func (s *session) listen(end context.CancelCauseFunc) {
	for {
		m, err := s.link.receive(maxMessage)
		switch {
		case err != nil:
			end(fmt.Errorf("lost the connection to client 0, the coordinator: %s", lossReason(err)))
			return
		case m.Kind == kindDone:
			end(errRunDone)
			return
		case m.Kind == kindAbort:
			end(errors.New(m.Reason))
			return
		case m.Kind == kindRelease:
			s.released <- m.Barrier
		}
	}
}

// pass waits at the next barrier of all clients. Only one goroutine does so at a time.
func (s *session) pass(ctx context.Context) error {
	if err := s.link.send(message{Kind: kindArrive, Barrier: s.next, Bytes: s.bytes.Load()}); err != nil {
		return fmt.Errorf("lost the connection to client 0, the coordinator: %s", lossReason(err))
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case released := <-s.released:
		if released != s.next {
			return fmt.Errorf("out of step: released from barrier %d instead of %d", released, s.next)
		}
		s.next++
		return nil
	}
}

// barrier keeps the accelerators of one client in step; the last one to come
// goes to the barrier of all clients for all of them.
type barrier struct {
	parties int
	pass    func(context.Context) error

	mutex   sync.Mutex
	arrived int
	open    chan struct{}
	err     error
}

func newBarrier(parties int, pass func(context.Context) error) *barrier {
	return &barrier{parties: parties, pass: pass, open: make(chan struct{})}
}

func (b *barrier) wait(ctx context.Context) error {
	b.mutex.Lock()
	b.arrived++
	open := b.open
	if b.arrived < b.parties {
		b.mutex.Unlock()
		select {
		case <-open:
			b.mutex.Lock()
			defer b.mutex.Unlock()
			return b.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	b.arrived, b.open = 0, make(chan struct{})
	b.mutex.Unlock()

	err := b.pass(ctx)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if err != nil {
		b.err = err // final: no accelerator passes from now on
	}
	close(open)
	return b.err
}

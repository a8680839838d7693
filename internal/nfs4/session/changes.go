package session

import (
	"context"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// changeWait is how long a change waits here for its turn. That is kinder than NFS4ERR_DELAY, after
// which Linux waits longer each time: a client that makes directories one after the other just gets slower.
const changeWait = time.Second

// limited is true for operations that cost more than this server: objects in the API, and calls to data servers.
func limited(number nfsv4.NfsOpnum4) bool {
	switch number {
	case nfsv4.OP_CREATE, nfsv4.OP_REMOVE, nfsv4.OP_RENAME, nfsv4.OP_SETATTR:
		return true
	}
	return false
}

// beginChange admits a change: a client address has a limit by second, a higher one for changes one after the other, and one at a time.
// False means NFS4ERR_DELAY. release is to be called at the end of the change.
func (s *Server) beginChange(ctx context.Context, caller rpc.Caller) (release func(), admitted bool) {
	release, admitted = s.awaitChange(ctx, caller)
	if !admitted {
		s.mu.Lock()
		s.delayed.Changes++
		s.mu.Unlock()
	}
	return release, admitted
}

// aloneFactor is how many times faster than its rate an address may make changes one after the other. Then each waits for the one before, so
// they take little from others, and less the slower the API is. A program that makes directories in a loop is not held up.
const aloneFactor = 5

// awaitChange admits a change by the address's rate, or as the only one beyond it.
func (s *Server) awaitChange(ctx context.Context, caller rpc.Caller) (release func(), admitted bool) {
	s.mu.Lock()
	a := s.addressOf(caller)
	now := s.now()
	if a.waiting >= 2*s.limits.ChangesPerAddress {
		s.mu.Unlock()
		return nil, false
	}
	turn := a.changes.ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	inTime := wait <= changeWait
	if !inTime {
		turn.CancelAt(now)
		wait = changeWait
	}
	a.waiting++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		a.waiting--
	}()
	if ctx.Err() != nil {
		return nil, false
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case a.alone <- struct{}{}:
			if inTime { // Canceled a second time it would give back more than it took.
				turn.CancelAt(s.now())
			}
			return s.awaitAlone(ctx, a)
		case <-timer.C:
		case <-ctx.Done():
			return nil, false
		}
		if !inTime {
			return nil, false
		}
	}
	return a.begin(ctx, func() {})
}

// awaitAlone admits the change that is the only one beyond the address's rate.
func (s *Server) awaitAlone(ctx context.Context, a *addressState) (release func(), admitted bool) {
	done := func() { <-a.alone }
	s.mu.Lock()
	now := s.now()
	wait := a.oneByOne.ReserveN(now, 1).DelayFrom(now)
	s.mu.Unlock()
	if !pause(ctx, wait) {
		done()
		return nil, false
	}
	if release, admitted = a.begin(ctx, done); !admitted {
		done()
	}
	return release, admitted
}

// begin waits until the address has fewer changes under way than it may. done is called at the end of the change.
func (a *addressState) begin(ctx context.Context, done func()) (release func(), admitted bool) {
	release = func() { <-a.running; done() }
	select {
	case a.running <- struct{}{}:
		return release, true
	default:
	}
	timer := time.NewTimer(changeWait)
	defer timer.Stop()
	select {
	case a.running <- struct{}{}:
		return release, true
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, false
}

// pause waits; false: the context ended first.
func pause(ctx context.Context, wait time.Duration) bool {
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

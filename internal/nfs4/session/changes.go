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

// beginChange admits a change: a client address has a limit by second, and one at a time. False means
// NFS4ERR_DELAY. release is to be called at the end of the change.
func (s *Server) beginChange(ctx context.Context, caller rpc.Caller) (release func(), admitted bool) {
	release, admitted = s.awaitChange(ctx, caller)
	if !admitted {
		s.mu.Lock()
		s.delayed.Changes++
		s.mu.Unlock()
	}
	return release, admitted
}

func (s *Server) awaitChange(ctx context.Context, caller rpc.Caller) (release func(), admitted bool) {
	s.mu.Lock()
	a := s.addressOf(caller)
	now := s.now()
	turn := a.changes.ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait > changeWait || a.waiting >= 2*s.limits.ChangesPerAddress {
		turn.CancelAt(now)
		s.mu.Unlock()
		return nil, false
	}
	a.waiting++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		a.waiting--
	}()
	if !pause(ctx, wait) {
		return nil, false
	}
	select {
	case a.running <- struct{}{}:
		return func() { <-a.running }, true
	default:
	}
	timer := time.NewTimer(changeWait)
	defer timer.Stop()
	select {
	case a.running <- struct{}{}:
		return func() { <-a.running }, true
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

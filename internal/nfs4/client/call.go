package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// errSessionLost means that the server does not know the session (any more).
var errSessionLost = errors.New("the NFS server does not know the session")

// pauses are the growing pauses between attempts.
type pauses struct{ next time.Duration }

// take waits, or returns false at once when ctx ends.
func (p *pauses) take(ctx context.Context) bool {
	p.next = min(max(2*p.next, firstPause), lastPause)
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// do executes operations in a session and returns the results after the SEQUENCE; an error
// of an operation is a StatusError. cache is for operations that change something: the server
// keeps their reply, so that they can be sent again.
func (c *Client) do(ctx context.Context, cred Credentials, cache bool, ops ...nfsv4.NfsArgop4) ([]nfsv4.NfsResop4, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.CallTimeout)
	defer cancel()
	var wait pauses
	retried := false
	// answered is what the server last answered: why there is no final answer, if the time ends in the midst of an attempt. Of what may have
	// been executed by then it says nothing.
	var answered *StatusError
	for {
		r, uncertain, err := c.attempt(ctx, cred, cache, ops)
		if err == nil {
			err = r.err()
		}
		if err == nil && len(r.list) != len(ops)+1 {
			err = &RPCError{Reason: fmt.Sprintf("%d results for %d operations", len(r.list), len(ops)+1)}
		}
		var status *StatusError
		if errors.As(err, &status) {
			status.Retried = retried && cache
			// The last result is that of the operation that failed; the first is that of SEQUENCE.
			status.Path = subject(ops, len(r.list)-2)
			answered = status
		} else if answered != nil && ctx.Err() != nil && !(cache && (retried || uncertain)) {
			err = errors.Join(answered, err)
		}
		retried = retried || uncertain
		switch {
		case err == nil:
			return r.list[1:], nil
		case !worthwhile(err):
			return nil, err
		case ctx.Err() != nil, !wait.take(ctx):
			return nil, fmt.Errorf("the NFS server %s gave no final answer in time: %w", c.addr, errors.Join(ctx.Err(), err))
		}
	}
}

// worthwhile is true for what may be different at the next attempt.
func worthwhile(err error) bool {
	var status *StatusError
	switch {
	case errors.As(err, &status):
		switch status.Status {
		case nfsv4.NFS4ERR_DELAY, nfsv4.NFS4ERR_GRACE, nfsv4.NFS4ERR_RETRY_UNCACHED_REP,
			// While a session is made: the ID is outdated, or still used by who had it before.
			nfsv4.NFS4ERR_STALE_CLIENTID, nfsv4.NFS4ERR_CLID_INUSE, nfsv4.NFS4ERR_SEQ_MISORDERED:
			return true
		}
		return false
	case errors.As(err, new(*RPCError)):
		return false
	}
	return !errors.Is(err, ErrClosed)
}

// attempt executes operations on one session. uncertain is true if there is no reply
// although the operations may have been executed.
func (c *Client) attempt(ctx context.Context, cred Credentials, cache bool, ops []nfsv4.NfsArgop4) (r results, uncertain bool, err error) {
	session, err := c.ready(ctx)
	if err != nil {
		return results{}, false, err
	}
	var used *slot
	select {
	case used = <-session.free:
	case <-session.gone:
		return results{}, false, errSessionLost
	case <-ctx.Done():
		return results{}, false, ctx.Err()
	}
	if used.dirty {
		// The same sequence once more, with nothing to execute: whether the server saw the first one
		// or not, it has seen the sequence then (as the Linux client does it).
		if _, _, err := c.onSlot(ctx, session, used, c.options.Machine, false, nil); err != nil {
			return results{}, false, err
		}
		used.dirty = false
	}
	used.sequence++
	r, uncertain, err = c.onSlot(ctx, session, used, cred, cache, ops)
	if err == nil {
		session.free <- used
	}
	return r, uncertain, err
}

// onSlot sends a compound with the slot's sequence until there is a reply to it, over
// as many connections as it takes: with the same slot and sequence the server executes it
// once (RFC 8881 section 2.10.6). After an error the slot is not the caller's any more.
func (c *Client) onSlot(ctx context.Context, session *session, used *slot, cred Credentials, cache bool, ops []nfsv4.NfsArgop4) (results, bool, error) {
	args, err := encodeCompound(append([]nfsv4.NfsArgop4{session.sequence(used, cache)}, ops...)...)
	if err != nil {
		used.dirty = true
		session.free <- used
		return results{}, false, &RPCError{Reason: err.Error()}
	}
	var wait pauses
	unanswered := false
	for {
		l, err := c.linkOf(ctx, session)
		if err == nil {
			var reply <-chan []byte
			if reply, err = l.start(procedureCompound, cred, args); err == nil {
				var encoded []byte
				if encoded, err = l.wait(ctx, reply); err == nil {
					r, err := decodeCompound(encoded)
					switch state := sequenceState(r, err, len(ops)); state {
					case sequenceDone, sequenceUndecodable:
						if err != nil {
							session.free <- used
						}
						return r, err != nil, err
					case sequenceBusy:
						if !wait.take(ctx) {
							go session.settle(used, l, nil)
							return results{}, true, ctx.Err()
						}
						continue
					default:
						c.forget(session)
						return results{}, unanswered || state == sequenceOff, errSessionLost
					}
				}
				unanswered = true
				if ctx.Err() != nil {
					go session.settle(used, l, reply)
					return results{}, true, ctx.Err()
				}
			}
		}
		switch {
		case errors.Is(err, errSessionLost), errors.Is(err, ErrClosed):
			return results{}, unanswered, err
		case errors.As(err, new(*RPCError)), ctx.Err() != nil, !wait.take(ctx):
			go session.settle(used, l, nil)
			return results{}, unanswered, err
		}
	}
}

type sequenceResult int

const (
	sequenceDone sequenceResult = iota
	// sequenceUndecodable: there is a reply, but it makes no sense.
	sequenceUndecodable
	// sequenceBusy: the server executes an earlier copy, or has no time.
	sequenceBusy
	// sequenceUnknown: there is no such session, so nothing was executed now.
	sequenceUnknown
	// sequenceOff: client and server disagree about the slot.
	sequenceOff
)

// sequenceState judges the SEQUENCE of a reply (RFC 8881 section 18.46). Without operations
// after it, it was sent to find out about an earlier one of the same number.
func sequenceState(r results, err error, operations int) sequenceResult {
	if err != nil || len(r.list) == 0 {
		return sequenceUndecodable
	}
	first, ok := r.list[0].(*nfsv4.NfsResop4_OP_SEQUENCE)
	if !ok {
		return sequenceUndecodable
	}
	switch first.Opsequence.GetSrStatus() {
	case nfsv4.NFS4_OK, nfsv4.NFS4ERR_RETRY_UNCACHED_REP:
		return sequenceDone
	case nfsv4.NFS4ERR_SEQ_FALSE_RETRY:
		if operations == 0 {
			return sequenceDone
		}
	case nfsv4.NFS4ERR_DELAY:
		return sequenceBusy
	case nfsv4.NFS4ERR_BADSESSION, nfsv4.NFS4ERR_DEADSESSION:
		return sequenceUnknown
	}
	return sequenceOff
}

// settle gives back a slot whose call was given up: clean when its reply comes,
// dirty when that can't come any more.
func (s *session) settle(used *slot, l *link, reply <-chan []byte) {
	used.dirty = true
	if reply != nil {
		select {
		case <-reply:
			used.dirty = false
		case <-l.done:
		case <-s.gone:
		}
	}
	s.free <- used
}

package session

import (
	"context"
	"runtime/debug"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

var _ rpc.Handler = (*Server)(nil)

// Compound is the procedure COMPOUND (RFC 8881 section 16.2). Operations are decoded one
// after the other, so that those before a malformed one are executed, as the RFC wants it.
func (s *Server) Compound(ctx context.Context, caller rpc.Caller, args []byte) ([]byte, rpcv2.AcceptStat) {
	d := newDecoder(args)
	h, status, err := d.header()
	if err != nil {
		return nil, rpcv2.GARBAGE_ARGS
	}
	r := newReply(h.tag)
	switch {
	case status != nfsv4.NFS4_OK:
		r.status = status
	case h.minorVersion < 1 || h.minorVersion > 2:
		r.status = nfsv4.NFS4ERR_MINOR_VERS_MISMATCH
	case h.operations > 0:
		if number, ok := d.peek(); ok && number == nfsv4.OP_SEQUENCE {
			return s.inSession(ctx, caller, d, h, r), rpcv2.SUCCESS
		}
		r.add(s.withoutSession(caller, d, h))
	}
	return r.bytes(), rpcv2.SUCCESS
}

// withoutSession executes the only operation of a compound that has no SEQUENCE
// (RFC 8881 section 2.10.6: the five that may, and alone).
func (s *Server) withoutSession(caller rpc.Caller, d *decoder, h header) nfsv4.NfsResop4 {
	s.gate.enter(caller.CountsAs())
	defer s.gate.leave()
	op, failure := d.operation(h.minorVersion)
	if failure != nil {
		return failure
	}
	switch op.(type) {
	case *nfsv4.NfsArgop4_OP_EXCHANGE_ID, *nfsv4.NfsArgop4_OP_CREATE_SESSION, *nfsv4.NfsArgop4_OP_DESTROY_SESSION,
		*nfsv4.NfsArgop4_OP_BIND_CONN_TO_SESSION, *nfsv4.NfsArgop4_OP_DESTROY_CLIENTID:
		if h.operations > 1 {
			return Fail(op, nfsv4.NFS4ERR_NOT_ONLY_OP)
		}
		return s.stateOperation(caller, h.minorVersion, op)
	}
	return Fail(op, nfsv4.NFS4ERR_OP_NOT_IN_SESSION)
}

// inSession executes a compound that starts with SEQUENCE.
func (s *Server) inSession(ctx context.Context, caller rpc.Caller, d *decoder, h header, r *reply) []byte {
	first, failure := d.operation(h.minorVersion)
	if failure != nil {
		r.add(failure)
		return r.bytes()
	}
	args := &first.(*nfsv4.NfsArgop4_OP_SEQUENCE).Opsequence
	granted := s.sequence(request{
		args: args, operations: h.operations, bytes: callHeaderBytes + len(d.args), from: caller, rest: d.rest(),
		least: replyHeaderBytes + r.buffer.Len() + sequenceBytes,
	})
	switch {
	case granted.status != nfsv4.NFS4_OK:
		r.add(Fail(first, granted.status))
		return r.bytes()
	case granted.uncached:
		s.addUncached(d, h, r, sequenced(granted.session, args))
		return r.bytes()
	case granted.replay != nil:
		return granted.replay
	}
	fore := granted.session.fore
	r.add(sequenced(granted.session, args))
	r.limit = int(fore.CaMaxresponsesize)
	if args.SaCachethis {
		r.cacheLimit = int(fore.CaMaxresponsesizeCached)
	}
	// The slot comes back whatever happens, or the client would never stop waiting for it.
	var reply []byte
	defer func() { s.finish(granted, reply) }()
	at := &place{gate: s.gate, address: caller.CountsAs()}
	ctx = context.WithValue(ctx, placeKey{}, at)
	run := &execution{server: s, ctx: ctx, caller: caller, session: granted.session, minor: h.minorVersion, place: at}
	for i := uint32(1); i < h.operations; i++ {
		if !r.add(run.next(d, h, r, i == h.operations-1)) {
			break
		}
	}
	reply = r.bytes()
	return reply
}

// addUncached answers the retry of a request whose reply was not kept: the SEQUENCE
// succeeds and the next operation fails (RFC 8881 section 2.10.6.1.3).
func (s *Server) addUncached(d *decoder, h header, r *reply, first nfsv4.NfsResop4) {
	r.add(first)
	if h.operations < 2 {
		return
	}
	op, failure := d.operation(h.minorVersion)
	if failure == nil {
		failure = Fail(op, nfsv4.NFS4ERR_RETRY_UNCACHED_REP)
	}
	r.add(failure)
}

// execution is one compound that is being executed.
type execution struct {
	server   *Server
	ctx      context.Context
	caller   rpc.Caller
	session  *session
	minor    uint32
	compound Compound
	place    *place
	// kept is the memory that was asked for, for the reply.
	kept int
}

// next decodes and executes one operation.
func (e *execution) next(d *decoder, h header, r *reply, last bool) nfsv4.NfsResop4 {
	e.place.enter()
	defer e.place.leave()
	// Without room for a failure there is no room for any result.
	if status := r.exceeded(failureBytes); status != nfsv4.NFS4_OK {
		if number, ok := d.peek(); ok {
			return FailNumber(number, status)
		}
	}
	op, failure := d.operation(h.minorVersion)
	if failure != nil {
		return failure
	}
	if changes(op.GetArgop()) {
		if status := r.exceeded(changeBytes); status != nfsv4.NFS4_OK {
			return Fail(op, status)
		}
	}
	if !e.room(op, r) {
		return Fail(op, nfsv4.NFS4ERR_DELAY)
	}
	switch op := op.(type) {
	case *nfsv4.NfsArgop4_OP_SEQUENCE:
		return Fail(op, nfsv4.NFS4ERR_SEQUENCE_POS)
	case *nfsv4.NfsArgop4_OP_BIND_CONN_TO_SESSION:
		// RFC 8881 section 18.34.3.
		return Fail(op, nfsv4.NFS4ERR_NOT_ONLY_OP)
	case *nfsv4.NfsArgop4_OP_DESTROY_SESSION:
		// RFC 8881 section 18.37.3: its own session only at the end.
		if op.OpdestroySession.DsaSessionid == e.session.id && !last {
			return Fail(op, nfsv4.NFS4ERR_NOT_ONLY_OP)
		}
	}
	if res := e.server.stateOperation(e.caller, h.minorVersion, op); res != nil {
		return res
	}
	if op, ok := op.(*nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE); ok {
		return e.reclaimComplete(op)
	}
	if limited(op.GetArgop()) {
		e.place.leave() // It waits for others: the API, and data servers.
	}
	if e.server.limits.ChangesPerSecond > 0 && limited(op.GetArgop()) {
		release, admitted := e.server.beginChange(e.ctx, e.caller)
		if !admitted {
			return Fail(op, nfsv4.NFS4ERR_DELAY)
		}
		defer release()
	}
	return e.do(op)
}

// room asks for memory for the reply with the result of an operation; listings are cut to what one may have.
func (e *execution) room(op nfsv4.NfsArgop4, r *reply) bool {
	needed := r.buffer.Len() + failureBytes
	if op, ok := op.(*nfsv4.NfsArgop4_OP_READDIR); ok {
		op.Opreaddir.Maxcount = min(op.Opreaddir.Maxcount, uint32(e.server.limits.ListingBytes))
		// The entries are in memory beside their encoding.
		needed += 2 * int(op.Opreaddir.Maxcount)
	}
	if e.caller.Keep == nil || needed <= freeBytes+e.kept {
		return true
	}
	more := needed - e.kept
	if !e.caller.Keep(more) {
		return false
	}
	e.kept += more
	return true
}

// reclaimComplete is RFC 8881 section 18.51. For one file system it needs a file handle that says which.
func (e *execution) reclaimComplete(op *nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE) nfsv4.NfsResop4 {
	if !op.OpreclaimComplete.RcaOneFs {
		return Fail(op, e.server.reclaimComplete(e.session))
	}
	if StatusOf(e.do(&nfsv4.NfsArgop4_OP_GETFH{})) == nfsv4.NFS4ERR_NOFILEHANDLE {
		return Fail(op, nfsv4.NFS4ERR_NOFILEHANDLE)
	}
	return Fail(op, nfsv4.NFS4_OK)
}

// do hands an operation to the handler.
func (e *execution) do(op nfsv4.NfsArgop4) (res nfsv4.NfsResop4) {
	defer func() {
		if problem := recover(); problem != nil {
			e.server.log.Error("An operation panicked; please report it", "client", e.caller.Addr, "operation", op.GetArgop(),
				"panic", problem, "stack", string(debug.Stack()))
			res = Fail(op, nfsv4.NFS4ERR_SERVERFAULT)
		}
	}()
	if e.compound == nil {
		e.compound = e.server.handler.Begin(e.ctx, e.caller, e.minor)
	}
	res = e.compound.Do(e.ctx, op)
	if res == nil || res.GetResop() != op.GetArgop() {
		e.server.log.Error("The handler's result is not that of the operation; please report it", "operation", op.GetArgop())
		return Fail(op, nfsv4.NFS4ERR_SERVERFAULT)
	}
	return res
}

// stateOperation executes the operations on clients and sessions, and gives nil for
// all others.
func (s *Server) stateOperation(caller rpc.Caller, minorVersion uint32, op nfsv4.NfsArgop4) nfsv4.NfsResop4 {
	switch op := op.(type) {
	case *nfsv4.NfsArgop4_OP_EXCHANGE_ID:
		result, status := s.exchangeID(caller, minorVersion, &op.OpexchangeId)
		if status != nfsv4.NFS4_OK {
			return Fail(op, status)
		}
		return &nfsv4.NfsResop4_OP_EXCHANGE_ID{OpexchangeId: &nfsv4.ExchangeId4res_NFS4_OK{EirResok4: *result}}
	case *nfsv4.NfsArgop4_OP_CREATE_SESSION:
		return s.createSession(caller, &op.OpcreateSession)
	case *nfsv4.NfsArgop4_OP_DESTROY_SESSION:
		return Fail(op, s.destroySession(op.OpdestroySession.DsaSessionid, caller))
	case *nfsv4.NfsArgop4_OP_BIND_CONN_TO_SESSION:
		return s.bindConnection(&op.OpbindConnToSession, caller)
	case *nfsv4.NfsArgop4_OP_DESTROY_CLIENTID:
		return Fail(op, s.destroyClientID(op.OpdestroyClientid.DcaClientid, caller))
	case *nfsv4.NfsArgop4_OP_BACKCHANNEL_CTL:
		// RFC 8881 section 18.33: it would matter to a back channel, and there is none.
		return Fail(op, nfsv4.NFS4_OK)
	case *nfsv4.NfsArgop4_OP_SET_SSV:
		// RFC 8881 section 18.47.3: only with SP4_SSV.
		return Fail(op, nfsv4.NFS4ERR_INVAL)
	case *nfsv4.NfsArgop4_OP_FREE_STATEID:
		return Fail(op, nfsv4.NFS4ERR_BAD_STATEID)
	case *nfsv4.NfsArgop4_OP_TEST_STATEID:
		// There are no state IDs, so none is good (RFC 8881 section 18.48).
		codes := make([]nfsv4.Nfsstat4, len(op.OptestStateid.TsStateids))
		for i := range codes {
			codes[i] = nfsv4.NFS4ERR_BAD_STATEID
		}
		return &nfsv4.NfsResop4_OP_TEST_STATEID{OptestStateid: &nfsv4.TestStateid4res_NFS4_OK{
			TsrResok4: nfsv4.TestStateid4resok{TsrStatusCodes: codes},
		}}
	}
	return nil
}

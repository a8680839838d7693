package session

import (
	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

type sessionID = [nfsv4.NFS4_SESSIONID_SIZE]byte

// session is a fore channel with its slots. There is no back channel: nothing is delegated.
type session struct {
	id     sessionID
	client *clientRecord
	fore   nfsv4.ChannelAttrs4
	// slots are made when they are first used.
	slots    []*slot
	inFlight int
	// gone is true once the session is no longer among the server's.
	gone bool
	// links are the connections that are associated with the session.
	links links
}

const (
	// minRequestBytes and minResponseBytes hold a SEQUENCE and some operations with RPC
	// headers; less is NFS4ERR_TOOSMALL (RFC 8881 section 18.36.3).
	minRequestBytes  = 256
	minResponseBytes = 256
	createFlags      = nfsv4.CREATE_SESSION4_FLAG_PERSIST | nfsv4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN | nfsv4.CREATE_SESSION4_FLAG_CONN_RDMA
)

// createSession is RFC 8881 section 18.36; the steps are those of 18.36.4.
func (s *Server) createSession(from rpc.Caller, args *nfsv4.CreateSession4args) nfsv4.NfsResop4 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireSometimes()
	// 1. Client record lookup.
	c := s.clients[args.CsaClientid]
	if c != nil && c.expired(s.now(), s.lease) {
		s.drop(c)
		c = nil
	}
	// The RFC has this in step 3 and for unconfirmed clients only. But a foreign principal is neither to get another's
	// session ID from a replay, nor may it use up the sequence ID.
	if c != nil && c.principal != principalOf(from) && c.isAt(from) {
		return FailNumber(nfsv4.OP_CREATE_SESSION, nfsv4.NFS4ERR_CLID_INUSE)
	}
	if c == nil || !s.owns(c, from) {
		return FailNumber(nfsv4.OP_CREATE_SESSION, nfsv4.NFS4ERR_STALE_CLIENTID)
	}
	// 2. Sequence ID processing.
	if c.lastResult != nil && args.CsaSequence == c.lastSequence {
		return c.lastResult
	}
	if args.CsaSequence != c.lastSequence+1 {
		return FailNumber(nfsv4.OP_CREATE_SESSION, nfsv4.NFS4ERR_SEQ_MISORDERED)
	}
	c.renewed = s.now() // It is not silent, whatever room is made for its session.
	// 3 and 4. Client ID confirmation and session creation. The Linux client counts its sequence ID up on any answer
	// but NFS4ERR_DELAY, so all other errors take the slot too.
	result, made := s.makeSession(c, args)
	if StatusOf(result) == nfsv4.NFS4ERR_DELAY {
		return result
	}
	if made != nil {
		made.links.bind(from.Link)
		c.link = from.Link
	}
	c.lastSequence++
	c.lastResult = result
	return result
}

func (s *Server) makeSession(c *clientRecord, args *nfsv4.CreateSession4args) (nfsv4.NfsResop4, *session) {
	fore, status := s.negotiate(args)
	// NFS4ERR_NOSPC, which the RFC has for this, makes a client's mount fail; there is room again in a while.
	if status == nfsv4.NFS4_OK && (len(c.sessions) >= s.limits.SessionsPerClient || !s.makeRoomForSession(c.address)) {
		s.delayed.Sessions++
		s.warn("A session was put off: there are too many", "address", c.address.address, "ofClient", len(c.sessions),
			"ofAddress", c.address.sessions, "inTotal", len(s.sessions))
		status = nfsv4.NFS4ERR_DELAY
	}
	var id sessionID
	if status == nfsv4.NFS4_OK {
		var err error
		if id, err = s.newSessionID(); err != nil {
			s.log.Error("No session ID for a session", "error", err)
			status = nfsv4.NFS4ERR_SERVERFAULT
		}
	}
	if status != nfsv4.NFS4_OK {
		return FailNumber(nfsv4.OP_CREATE_SESSION, status), nil
	}
	s.confirm(c)
	made := &session{id: id, client: c, fore: fore, slots: make([]*slot, fore.CaMaxrequests)}
	s.sessions[id] = made
	c.address.sessions++
	c.sessions[id] = made
	back := args.CsaBackChanAttrs
	back.CaRdmaIrd = nil
	return &nfsv4.NfsResop4_OP_CREATE_SESSION{OpcreateSession: &nfsv4.CreateSession4res_NFS4_OK{CsrResok4: nfsv4.CreateSession4resok{
		// Flags: not persistent, no back channel, no RDMA.
		CsrSessionid: id, CsrSequence: args.CsaSequence, CsrFlags: 0,
		CsrForeChanAttrs: fore, CsrBackChanAttrs: back,
	}}}, made
}

// confirm makes a record the one of its owner at its address: an older one was of the client
// before its restart and goes with all its sessions.
func (s *Server) confirm(c *clientRecord) {
	c.renewed = s.now()
	if c.isConfirmed {
		return
	}
	if old := s.confirmed.at(c.owner, c.address.address); old != nil {
		s.drop(old)
	}
	s.tentative.remove(c)
	c.confirmPlace()
	c.isConfirmed = true
	s.confirmed.put(c)
}

// negotiate lowers what the client asks for to what the server grants; it
// may never be raised (RFC 8881 section 18.36.3).
func (s *Server) negotiate(args *nfsv4.CreateSession4args) (nfsv4.ChannelAttrs4, nfsv4.Nfsstat4) {
	asked := args.CsaForeChanAttrs
	switch {
	case args.CsaFlags&^createFlags != 0, asked.CaMaxrequests == 0, asked.CaMaxoperations == 0:
		return asked, nfsv4.NFS4ERR_INVAL
	case asked.CaMaxrequestsize < minRequestBytes, asked.CaMaxresponsesize < minResponseBytes:
		return asked, nfsv4.NFS4ERR_TOOSMALL
	}
	granted := nfsv4.ChannelAttrs4{
		CaMaxrequestsize:  min(asked.CaMaxrequestsize, uint32(s.limits.RequestBytes)),
		CaMaxresponsesize: min(asked.CaMaxresponsesize, uint32(s.limits.ResponseBytes)),
		CaMaxoperations:   min(asked.CaMaxoperations, uint32(s.limits.Operations)),
		CaMaxrequests:     min(asked.CaMaxrequests, uint32(s.limits.Slots)),
	}
	granted.CaMaxresponsesizeCached = min(asked.CaMaxresponsesizeCached, uint32(s.limits.CachedResponseBytes), granted.CaMaxresponsesize)
	return granted, nfsv4.NFS4_OK
}

// destroySession is RFC 8881 section 18.37. It must come on a connection that is associated with the session. A client
// that lost the one it made the session on may use any: it could associate that with a SEQUENCE first,
// and Linux does not, but waits 10 s for its client ID to be free when it is refused.
func (s *Server) destroySession(id sessionID, from rpc.Caller) nfsv4.Nfsstat4 {
	s.mu.Lock()
	defer s.mu.Unlock()
	doomed := s.sessions[id]
	switch {
	case doomed == nil, !s.owns(doomed.client, from):
		return nfsv4.NFS4ERR_BADSESSION
	case doomed.links.foreign(from.Link):
		return nfsv4.NFS4ERR_CONN_NOT_BOUND_TO_SESSION
	}
	s.retire(doomed)
	return nfsv4.NFS4_OK
}

// bindConnection is RFC 8881 section 18.34. With SP4_NONE every connection that sends a
// SEQUENCE is bound by that, too (section 2.10.3.1).
func (s *Server) bindConnection(args *nfsv4.BindConnToSession4args, from rpc.Caller) nfsv4.NfsResop4 {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.sessions[args.BctsaSessid]
	switch {
	case session == nil, !s.owns(session.client, from):
		return FailNumber(nfsv4.OP_BIND_CONN_TO_SESSION, nfsv4.NFS4ERR_BADSESSION)
	case args.BctsaDir != nfsv4.CDFC4_FORE && args.BctsaDir != nfsv4.CDFC4_FORE_OR_BOTH:
		// The answer would have to be a back channel, and there is none.
		return FailNumber(nfsv4.OP_BIND_CONN_TO_SESSION, nfsv4.NFS4ERR_INVAL)
	}
	session.links.bind(from.Link)
	return &nfsv4.NfsResop4_OP_BIND_CONN_TO_SESSION{OpbindConnToSession: &nfsv4.BindConnToSession4res_NFS4_OK{
		BctsrResok4: nfsv4.BindConnToSession4resok{BctsrSessid: args.BctsaSessid, BctsrDir: nfsv4.CDFS4_FORE},
	}}
}

package session

import (
	"bytes"
	"hash/maphash"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// slot is one entry of a session's reply cache (RFC 8881 section 2.10.6.1).
type slot struct {
	// sequence is that of the last request; used is false until there was one.
	sequence uint32
	used     bool
	inFlight bool
	// who and what identify the request, to tell a retry from a mistake (section 2.10.6.1.3.1).
	who  principal
	what uint64
	// reply is the whole encoded COMPOUND4res; nil if it was too large to keep.
	reply []byte
}

// request is what the slots need to know of a compound that starts with SEQUENCE.
type request struct {
	args       *nfsv4.Sequence4args
	operations uint32
	// bytes is the size with an RPC header of the least size.
	bytes int
	from  rpc.Caller
	// least is the size of the reply with the SEQUENCE alone and an RPC header.
	least int
	// rest is everything after the SEQUENCE operation: a retry may differ in the
	// SEQUENCE itself, where the Linux client writes its highest slot of the moment.
	rest []byte
}

// outcome says what to do with a request: execute it (status NFS4_OK, session set), send
// the reply of before, or fail. uncached is a retry of a request whose reply was not kept.
type outcome struct {
	status   nfsv4.Nfsstat4
	session  *session
	slot     *slot
	replay   []byte
	uncached bool
	// keepReply: the client wants the reply to be kept (sa_cachethis).
	keepReply bool
}

// sequence is RFC 8881 section 18.46, up to where the request gets its slot.
func (s *Server) sequence(r request) outcome {
	who, what := principalOf(r.from), maphash.Bytes(s.hash, r.rest)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireSometimes()
	session := s.sessions[r.args.SaSessionid]
	if session != nil && session.client.expired(s.now(), s.lease) {
		s.drop(session.client)
		session = nil
	}
	switch {
	case session == nil, !s.admits(session.client, r.from):
		return outcome{status: nfsv4.NFS4ERR_BADSESSION}
	case r.bytes > int(session.fore.CaMaxrequestsize):
		return outcome{status: nfsv4.NFS4ERR_REQ_TOO_BIG}
	case r.operations > session.fore.CaMaxoperations:
		return outcome{status: nfsv4.NFS4ERR_TOO_MANY_OPS}
	case uint64(r.args.SaSlotid) >= uint64(len(session.slots)):
		return outcome{status: nfsv4.NFS4ERR_BADSLOT}
	case uint64(r.args.SaHighestSlotid) >= uint64(len(session.slots)):
		return outcome{status: nfsv4.NFS4ERR_BAD_HIGH_SLOT}
	case r.args.SaCachethis && r.least > int(session.fore.CaMaxresponsesizeCached):
		// Section 18.46.3: not even the SEQUENCE would fit.
		return outcome{status: nfsv4.NFS4ERR_REP_TOO_BIG_TO_CACHE}
	}
	session.links.use(r.from.Link)
	slot := session.slot(r.args.SaSlotid)
	repeated := slot.used && r.args.SaSequenceid == slot.sequence
	switch {
	case repeated && slot.inFlight:
		// Section 2.10.6.2: the first one will give the reply.
		return outcome{status: nfsv4.NFS4ERR_DELAY}
	case repeated && (slot.who != who || slot.what != what):
		return outcome{status: nfsv4.NFS4ERR_SEQ_FALSE_RETRY}
	case repeated:
		session.client.renewed = s.now()
		return outcome{session: session, replay: slot.reply, uncached: slot.reply == nil}
	case slot.inFlight, r.args.SaSequenceid != slot.sequence+1:
		return outcome{status: nfsv4.NFS4ERR_SEQ_MISORDERED}
	}
	session.client.renewed = s.now()
	session.inFlight++
	slot.used, slot.inFlight, slot.sequence = true, true, r.args.SaSequenceid
	slot.who, slot.what = who, what
	s.setReply(session, slot, nil)
	return outcome{session: session, slot: slot, keepReply: r.args.SaCachethis}
}

// slot is a slot of the session, made when it is first used.
func (s *session) slot(number uint32) *slot {
	if s.slots[number] == nil {
		s.slots[number] = &slot{}
	}
	return s.slots[number]
}

// finish gives the slot back, with the reply if it is to be kept.
func (s *Server) finish(o outcome, reply []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.session.inFlight--
	o.session.client.renewed = s.now()
	o.slot.inFlight = false
	if len(reply)+replyHeaderBytes <= s.limits.CachedResponseBytes {
		// A copy has no more memory than it needs, for as long as the slot is not used.
		s.keepReply(o, bytes.Clone(reply))
	}
}

// sequenced is the result of a SEQUENCE that was granted.
func sequenced(session *session, args *nfsv4.Sequence4args) nfsv4.NfsResop4 {
	highest := uint32(len(session.slots) - 1)
	return &nfsv4.NfsResop4_OP_SEQUENCE{Opsequence: &nfsv4.Sequence4res_NFS4_OK{SrResok4: nfsv4.Sequence4resok{
		SrSessionid: args.SaSessionid, SrSequenceid: args.SaSequenceid, SrSlotid: args.SaSlotid,
		SrHighestSlotid: highest, SrTargetHighestSlotid: highest,
	}}}
}

package session

import (
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// principal is who made a record or sent a request. AUTH_SYS has no more to it than a
// number: the address may change, and a client's machine name may be the same everywhere.
type principal struct {
	anonymous bool
	uid       uint32
}

func principalOf(caller rpc.Caller) principal {
	if caller.Anonymous {
		return principal{anonymous: true}
	}
	return principal{uid: caller.UID}
}

// clientRecord is a client ID with the five parts of RFC 8881 section 18.35.4.
type clientRecord struct {
	owner       string
	verifier    [8]byte
	principal   principal
	id          uint64
	isConfirmed bool

	// renewed is the last SEQUENCE, or the EXCHANGE_ID as long as there was none.
	renewed  time.Time
	sessions map[sessionID]*session
	// reclaimed is set by the RECLAIM_COMPLETE for all file systems.
	reclaimed bool
	// lastSequence is that of the last CREATE_SESSION, and lastResult its result
	// (RFC 8881 section 2.10.6.1 and 18.36.4: a reply cache of one slot).
	lastSequence uint32
	lastResult   nfsv4.NfsResop4
}

func (c *clientRecord) expired(now time.Time, lease time.Duration) bool {
	if !c.isConfirmed {
		return now.Sub(c.renewed) > lease
	}
	for _, session := range c.sessions {
		if session.inFlight > 0 {
			return false
		}
	}
	return now.Sub(c.renewed) > 2*lease
}

// drop forgets a client and its sessions.
func (s *Server) drop(c *clientRecord) {
	for id := range c.sessions {
		delete(s.sessions, id)
	}
	delete(s.clients, c.id)
	if s.confirmed[c.owner] == c {
		delete(s.confirmed, c.owner)
	}
	if s.tentative[c.owner] == c {
		delete(s.tentative, c.owner)
	}
}

const (
	// exchangeFlags are those that a client may set (RFC 8881 section 18.35.3, RFC 7862
	// section 14.1 for SUPP_FENCE_OPS).
	exchangeFlags = nfsv4.EXCHGID4_FLAG_SUPP_MOVED_REFER | nfsv4.EXCHGID4_FLAG_SUPP_MOVED_MIGR |
		nfsv4.EXCHGID4_FLAG_SUPP_FENCE_OPS | nfsv4.EXCHGID4_FLAG_BIND_PRINC_STATEID |
		nfsv4.EXCHGID4_FLAG_MASK_PNFS | nfsv4.EXCHGID4_FLAG_UPD_CONFIRMED_REC_A
	// serverFlags: no pNFS, but referrals.
	serverFlags = nfsv4.EXCHGID4_FLAG_USE_NON_PNFS | nfsv4.EXCHGID4_FLAG_SUPP_MOVED_REFER
)

// exchangeID is RFC 8881 section 18.35; the numbers are the cases of 18.35.4.
func (s *Server) exchangeID(caller principal, args *nfsv4.ExchangeId4args) (*nfsv4.ExchangeId4resok, nfsv4.Nfsstat4) {
	if args.EiaFlags&^exchangeFlags != 0 {
		return nil, nfsv4.NFS4ERR_INVAL
	}
	switch args.EiaStateProtect.(type) {
	case *nfsv4.StateProtect4A_SP4_NONE:
	case *nfsv4.StateProtect4A_SP4_SSV:
		// Nothing of what the client offers is spoken here (section 18.35.3).
		return nil, nfsv4.NFS4ERR_HASH_ALG_UNSUPP
	default:
		// SP4_MACH_CRED needs RPCSEC_GSS, which AUTH_SYS is not (section 18.35.3).
		return nil, nfsv4.NFS4ERR_INVAL
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireSometimes()
	owner := string(args.EiaClientowner.CoOwnerid)
	verifier := args.EiaClientowner.CoVerifier
	confirmed := s.confirmed[owner]
	if confirmed != nil && confirmed.expired(s.now(), s.lease) {
		s.drop(confirmed)
		confirmed = nil
	}
	if args.EiaFlags&nfsv4.EXCHGID4_FLAG_UPD_CONFIRMED_REC_A != 0 {
		switch {
		case confirmed == nil:
			return nil, nfsv4.NFS4ERR_NOENT // 7
		case confirmed.verifier != verifier:
			return nil, nfsv4.NFS4ERR_NOT_SAME // 8
		case confirmed.principal != caller:
			return nil, nfsv4.NFS4ERR_PERM // 9
		}
		return s.exchanged(confirmed), nfsv4.NFS4_OK // 6
	}
	if confirmed != nil {
		switch {
		case confirmed.principal != caller && len(confirmed.sessions) > 0:
			return nil, nfsv4.NFS4ERR_CLID_INUSE // 3
		case confirmed.principal != caller:
			s.drop(confirmed) // 3, without state
		case confirmed.verifier == verifier:
			return s.exchanged(confirmed), nfsv4.NFS4_OK // 2
		}
		// 5: the client has restarted; its old record goes with the next CREATE_SESSION.
	}
	if old := s.tentative[owner]; old != nil {
		s.drop(old) // 4
	}
	if !s.makeRoom() {
		s.log.Warn("A client was put off: too many clients", "clients", len(s.clients))
		return nil, nfsv4.NFS4ERR_DELAY
	}
	s.counter++
	record := &clientRecord{
		owner: owner, verifier: verifier, principal: caller, id: uint64(s.boot)<<32 | uint64(s.counter),
		renewed: s.now(), sessions: map[sessionID]*session{},
	}
	s.clients[record.id] = record
	s.tentative[owner] = record
	return s.exchanged(record), nfsv4.NFS4_OK // 1
}

// makeRoom is true if another client fits, at the cost of the oldest that has not
// confirmed itself: probes leave such records, and an attacker might.
func (s *Server) makeRoom() bool {
	if len(s.clients) < s.limits.Clients {
		return true
	}
	s.expire()
	if len(s.clients) < s.limits.Clients {
		return true
	}
	var oldest *clientRecord
	for _, c := range s.tentative {
		if oldest == nil || c.id < oldest.id {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	s.drop(oldest)
	return true
}

func (s *Server) exchanged(c *clientRecord) *nfsv4.ExchangeId4resok {
	flags := uint32(serverFlags)
	if c.isConfirmed {
		flags |= nfsv4.EXCHGID4_FLAG_CONFIRMED_R
	}
	return &nfsv4.ExchangeId4resok{
		EirClientid: c.id, EirSequenceid: c.lastSequence + 1, EirFlags: flags,
		EirStateProtect: &nfsv4.StateProtect4R_SP4_NONE{},
		EirServerOwner:  nfsv4.ServerOwner4{SoMajorId: s.owner}, EirServerScope: s.scope,
	}
}

// destroyClientID is RFC 8881 section 18.50.
func (s *Server) destroyClientID(id uint64) nfsv4.Nfsstat4 {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[id]
	switch {
	case c == nil:
		return nfsv4.NFS4ERR_STALE_CLIENTID
	case len(c.sessions) > 0:
		return nfsv4.NFS4ERR_CLIENTID_BUSY
	}
	s.drop(c)
	return nfsv4.NFS4_OK
}

// reclaimComplete is RFC 8881 section 18.51. There is never anything to reclaim here.
func (s *Server) reclaimComplete(session *session, oneFS bool) nfsv4.Nfsstat4 {
	if oneFS {
		return nfsv4.NFS4_OK
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if session.client.reclaimed {
		return nfsv4.NFS4ERR_COMPLETE_ALREADY
	}
	session.client.reclaimed = true
	return nfsv4.NFS4_OK
}

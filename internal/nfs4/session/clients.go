package session

import (
	"container/list"
	"net/netip"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// principal is who made a client ID or sent a request. AUTH_SYS has no more to it than a
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
	// address is where the client is, as limits count it; place is the client's among the tentative of it.
	address *addressState
	place   *list.Element
	// from is the address that the client last made itself known from.
	from netip.Addr
	// link is the connection that the client last made itself known on, or made a session.
	link *rpc.Link

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
	return now.Sub(c.renewed) > max(courtesy, 2*lease) && !c.busy()
}

// busy is true while a request of the client is being executed.
func (c *clientRecord) busy() bool {
	for _, session := range c.sessions {
		if session.inFlight > 0 {
			return true
		}
	}
	return false
}

// cached is the bytes of replies that are kept for the client.
func (c *clientRecord) cached() (bytes int) {
	for _, session := range c.sessions {
		for _, slot := range session.slots {
			if slot != nil {
				bytes += cap(slot.reply)
			}
		}
	}
	return bytes
}

// confirmPlace takes a client out of the tentative of its address.
func (c *clientRecord) confirmPlace() {
	if c.place != nil {
		c.address.tentative.Remove(c.place)
		c.place = nil
	}
}

// drop forgets a client and its sessions.
func (s *Server) drop(c *clientRecord) {
	for _, session := range c.sessions {
		s.retire(session)
	}
	delete(s.clients, c.id)
	delete(c.address.clients, c.id)
	c.confirmPlace()
	s.confirmed.remove(c)
	s.tentative.remove(c)
	s.forgetIdle(c.address)
}

const (
	// exchangeFlags are those that a client of any minor version may set (RFC 8881 section 18.35.3);
	// SUPP_FENCE_OPS came with 4.2 (RFC 7862 section 14.1).
	exchangeFlags = nfsv4.EXCHGID4_FLAG_SUPP_MOVED_REFER | nfsv4.EXCHGID4_FLAG_SUPP_MOVED_MIGR |
		nfsv4.EXCHGID4_FLAG_BIND_PRINC_STATEID | nfsv4.EXCHGID4_FLAG_MASK_PNFS |
		nfsv4.EXCHGID4_FLAG_UPD_CONFIRMED_REC_A
	// serverFlags: no pNFS, but referrals.
	serverFlags = nfsv4.EXCHGID4_FLAG_USE_NON_PNFS | nfsv4.EXCHGID4_FLAG_SUPP_MOVED_REFER
)

// exchangeID is RFC 8881 section 18.35; the numbers are the cases of 18.35.4, for each address (ownership.go).
func (s *Server) exchangeID(from rpc.Caller, minorVersion uint32, args *nfsv4.ExchangeId4args) (*nfsv4.ExchangeId4resok, nfsv4.Nfsstat4) {
	allowed := uint32(exchangeFlags)
	if minorVersion >= 2 {
		allowed |= nfsv4.EXCHGID4_FLAG_SUPP_FENCE_OPS
	}
	if args.EiaFlags&^allowed != 0 {
		return nil, nfsv4.NFS4ERR_INVAL
	}
	caller := principalOf(from)
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
	owner := ownerAt(from.Door, args.EiaClientowner.CoOwnerid)
	verifier := args.EiaClientowner.CoVerifier
	address := s.addressOf(from)
	address.expected = true
	defer func() {
		address.expected = false
		s.forgetIdle(address)
	}()
	confirmed := s.confirmed.at(owner, address.address)
	if confirmed != nil && confirmed.principal != caller && confirmed.lapsed(s.now(), s.lease) {
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
		return s.exchanged(confirmed, from), nfsv4.NFS4_OK // 6
	}
	if confirmed != nil {
		switch {
		case confirmed.principal != caller && len(confirmed.sessions) > 0:
			return nil, nfsv4.NFS4ERR_CLID_INUSE // 3
		case confirmed.principal != caller:
			s.drop(confirmed) // 3, without state
		case confirmed.verifier == verifier:
			return s.exchanged(confirmed, from), nfsv4.NFS4_OK // 2
		}
		// 5: the client has restarted; its old record goes with the next CREATE_SESSION.
	}
	if old := s.tentative.at(owner, address.address); old != nil {
		s.drop(old) // 4
	}
	if !s.makeRoom(address) {
		s.delayed.Clients++
		s.warn("A client was put off: there are too many", "address", address.address, "clientsOfIt", len(address.clients), "inTotal", len(s.clients))
		return nil, nfsv4.NFS4ERR_DELAY
	}
	id, err := s.newClientID()
	if err != nil {
		s.log.Error("No client ID for a client", "error", err)
		return nil, nfsv4.NFS4ERR_SERVERFAULT
	}
	record := &clientRecord{
		owner: owner, verifier: verifier, principal: caller, id: id, address: address, renewed: s.now(), sessions: map[sessionID]*session{},
	}
	record.place = address.tentative.PushBack(record)
	address.clients[record.id] = record
	s.clients[record.id] = record
	s.tentative.put(record)
	return s.exchanged(record, from), nfsv4.NFS4_OK // 1
}

func (s *Server) exchanged(c *clientRecord, from rpc.Caller) *nfsv4.ExchangeId4resok {
	c.link, c.from = from.Link, from.Addr
	flags := uint32(serverFlags)
	if c.isConfirmed {
		flags |= nfsv4.EXCHGID4_FLAG_CONFIRMED_R
	}
	return &nfsv4.ExchangeId4resok{
		EirClientid: c.id, EirSequenceid: c.lastSequence + 1, EirFlags: flags,
		EirStateProtect: &nfsv4.StateProtect4R_SP4_NONE{},
		EirServerOwner:  nfsv4.ServerOwner4{SoMajorId: s.ownerAt(from.Door)}, EirServerScope: s.scope,
	}
}

// ownerAt is the server owner at a door: each has its own. A client takes two addresses with one owner for one server
// (RFC 8881 section 2.10.5.1), and goes on using the address that it knew first for what is mounted through the other:
// it would get the referrals of the first.
func (s *Server) ownerAt(door string) []byte {
	if door == "" {
		return s.owner
	}
	return []byte(string(s.owner) + "/" + door)
}

// destroyClientID is RFC 8881 section 18.50.
func (s *Server) destroyClientID(id uint64, from rpc.Caller) nfsv4.Nfsstat4 {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[id]
	switch {
	case c == nil, !s.owns(c, from):
		return nfsv4.NFS4ERR_STALE_CLIENTID
	case len(c.sessions) > 0:
		return nfsv4.NFS4ERR_CLIENTID_BUSY
	}
	s.drop(c)
	return nfsv4.NFS4_OK
}

// reclaimComplete is RFC 8881 section 18.51, for all file systems. There is never anything to reclaim here.
func (s *Server) reclaimComplete(session *session) nfsv4.Nfsstat4 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session.client.reclaimed {
		return nfsv4.NFS4ERR_COMPLETE_ALREADY
	}
	session.client.reclaimed = true
	return nfsv4.NFS4_OK
}

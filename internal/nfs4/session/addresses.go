package session

import (
	"cmp"
	"container/list"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// addressState is what the clients of one network address hold. The server's lock guards it.
type addressState struct {
	address netip.Addr
	clients map[uint64]*clientRecord
	// tentative are the clients that have not confirmed themselves, the oldest first.
	tentative *list.List
	sessions  int
	// cached is the bytes of replies that are kept for retries.
	cached int
	// changes is the rate of changes, running has an element for each that is being done, waiting is how many are to be.
	changes *rate.Limiter
	running chan struct{}
	waiting int
	// expected: a client is about to be added, so the address is not forgotten while room is made for it.
	expected bool
	// alone has an element while a change is beyond the rate, oneByOne is the rate of these.
	alone    chan struct{}
	oneByOne *rate.Limiter
}

// addressOf is the state of a caller's address, made if there is none.
func (s *Server) addressOf(caller rpc.Caller) *addressState {
	address := caller.CountsAs()
	a := s.addresses[address]
	if a == nil {
		a = &addressState{
			address: address, clients: map[uint64]*clientRecord{}, tentative: list.New(),
			changes: rate.NewLimiter(rate.Limit(s.limits.ChangesPerSecond), s.limits.ChangeBurst),
			running: make(chan struct{}, s.limits.ChangesPerAddress), alone: make(chan struct{}, 1),
			oneByOne: rate.NewLimiter(rate.Limit(aloneFactor*s.limits.ChangesPerSecond), aloneFactor),
		}
		s.addresses[address] = a
	}
	return a
}

// forget drops the state of addresses that hold nothing and have not changed anything for a while.
func (s *Server) forget() {
	for _, a := range s.addresses {
		s.forgetIdle(a)
	}
}

// forgetIdle drops the state of an address that holds nothing any more.
func (s *Server) forgetIdle(a *addressState) {
	busy := a.expected || len(a.clients) > 0 || len(a.running) > 0 || a.waiting > 0
	if !busy && s.addresses[a.address] == a && a.changes.TokensAt(s.now()) >= float64(s.limits.ChangeBurst) {
		delete(s.addresses, a.address)
	}
}

// makeRoom is true if another client of the address fits. At the limit of the address the oldest of its clients that
// has not confirmed itself goes; at the limit of all, the one whose lease was over first, or else one of the address that has most. Clients that are dropped
// recover by themselves: they have no state here. False means that the newcomer is put off.
func (s *Server) makeRoom(a *addressState) bool {
	if len(a.clients) < s.limits.ClientsPerAddress && len(s.clients) < s.limits.Clients {
		return true
	}
	s.expireNow()
	switch {
	case len(a.clients) >= s.limits.ClientsPerAddress:
		return s.evict(a, s.lease)
	case len(s.clients) >= s.limits.Clients:
		return s.evictLapsed(&s.noneLapsed.clients, func(*clientRecord) bool { return true }) || s.evictFor(a)
	}
	return true
}

// makeRoomForSession is makeRoom for sessions.
func (s *Server) makeRoomForSession(a *addressState) bool {
	if a.sessions < s.limits.SessionsPerAddress && len(s.sessions) < s.limits.Sessions {
		return true
	}
	s.expireNow()
	switch {
	case a.sessions >= s.limits.SessionsPerAddress:
		return s.evictSession(a, s.lease)
	case len(s.sessions) >= s.limits.Sessions:
		if s.evictLapsed(&s.noneLapsed.sessions, hasSessions) {
			return true
		}
		most := s.most(func(other *addressState) int { return other.sessions })
		return most.sessions > a.sessions+1 && s.evictSession(most, 0)
	}
	return true
}

// most is the address that holds most.
func (s *Server) most(held func(*addressState) int) (most *addressState) {
	for _, a := range s.addresses {
		if most == nil || held(a) > held(most) {
			most = a
		}
	}
	return most
}

// evictFor drops a client of the address that holds most, if that is more than the newcomer's address holds, or
// else one that has not confirmed itself or is silent, of an address that holds no less.
func (s *Server) evictFor(newcomer *addressState) bool {
	holds := len(newcomer.clients)
	most := s.most(func(other *addressState) int { return len(other.clients) })
	if len(most.clients) > holds+1 && s.evict(most, 0) {
		return true
	}
	for _, a := range s.addresses {
		if len(a.clients) >= holds && s.evict(a, s.lease) {
			return true
		}
	}
	return false
}

// evict drops the oldest client of the address that has not confirmed itself, or else the one that was silent
// longest, if that is longer than the time given. A client with a request in flight stays.
func (s *Server) evict(a *addressState, silentFor time.Duration) bool {
	if front := a.tentative.Front(); front != nil {
		s.drop(front.Value.(*clientRecord))
		return true
	}
	return s.evictSilent(a, silentFor, func(*clientRecord) bool { return true })
}

// evictSession is evict for the sake of sessions.
func (s *Server) evictSession(a *addressState, silentFor time.Duration) bool {
	return s.evictSilent(a, silentFor, hasSessions)
}

func hasSessions(c *clientRecord) bool { return len(c.sessions) > 0 }

// evictLapsed drops the client that is silent longest, of whatever address, if its lease is over. Where none was found it looks
// again a second later at the earliest: it is asked at every request while there is no room, and looks at all clients.
func (s *Server) evictLapsed(none *time.Time, eligible func(*clientRecord) bool) bool {
	var silent *clientRecord
	now := s.now()
	if now.Sub(*none) < time.Second {
		return false
	}
	for _, c := range s.clients {
		if c.isConfirmed && c.lapsed(now, s.lease) && eligible(c) && (silent == nil || c.renewed.Before(silent.renewed)) {
			silent = c
		}
	}
	if silent == nil {
		*none = now
		return false
	}
	s.log.Debug("A silent client gives its place to another", "clientid", silent.id, "address", silent.address.address)
	s.drop(silent)
	return true
}

func (s *Server) evictSilent(a *addressState, silentFor time.Duration, eligible func(*clientRecord) bool) bool {
	var displaced *clientRecord
	for _, c := range a.clients {
		if c.isConfirmed && !c.busy() && eligible(c) && (displaced == nil || c.renewed.Before(displaced.renewed)) {
			displaced = c
		}
	}
	if displaced == nil || s.now().Sub(displaced.renewed) < silentFor {
		return false
	}
	s.log.Debug("A client gives its place to another", "clientid", displaced.id, "address", a.address, "clientsOfIt", len(a.clients))
	s.drop(displaced)
	return true
}

// keepReply puts a reply in its slot for retries. Replies that the client did not ask to keep are kept while there
// is memory to spare. For those it asked for memory is made: a silent client of the address with most goes.
func (s *Server) keepReply(o outcome, reply []byte) {
	a := o.session.client.address
	size := cap(reply)
	keeps := func(c *clientRecord) bool { return c != o.session.client && c.cached() > 0 }
	for s.cached+size > s.limits.CachedBytes/2 && s.evictLapsed(&s.noneLapsed.replies, keeps) {
	}
	if !o.keepReply && (s.cached+size > s.limits.CachedBytes/2 || a.cached+size > s.limits.CachedBytes/8) {
		return
	}
	for s.cached+size > s.limits.CachedBytes {
		most := s.most(func(other *addressState) int { return other.cached })
		if !s.evictSilent(most, 0, keeps) {
			break
		}
	}
	s.setReply(o.session, o.slot, reply)
}

// setReply replaces the reply that a slot has.
func (s *Server) setReply(session *session, slot *slot, reply []byte) {
	if session.gone {
		return
	}
	more := cap(reply) - cap(slot.reply)
	s.cached += more
	session.client.address.cached += more
	slot.reply = reply
}

// retire takes what a session holds out of the sums.
func (s *Server) retire(doomed *session) {
	for _, slot := range doomed.slots {
		if slot != nil {
			s.setReply(doomed, slot, nil)
		}
	}
	doomed.gone = true
	doomed.client.address.sessions--
	delete(s.sessions, doomed.id)
	delete(doomed.client.sessions, doomed.id)
}

// quarter is the default part of a limit for one address.
func quarter(whole int) int { return cmp.Or((whole+3)/4, 1) }

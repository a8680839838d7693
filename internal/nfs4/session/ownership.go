package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// A client ID and its sessions belong to the network address (rpc.Caller.Client) that made them. To any other they do not exist
// while the client has a connection and its lease is not over. Afterwards a caller that knows the random ID is taken for the
// client at a new address. An owner string proves nothing, so it makes one client for each address: a caller with another's
// owner string gets a client of its own at once. That is a machine with a new address, one with the same name, or an attacker.
// There is no state here that two clients of one owner could disagree about, and a client that finds its session missing
// makes another (docs/design/2026-11-25-clients-and-addresses.md).

// courtesy is how long a silent client is kept while its place is not needed. Linux's server has the same.
const courtesy = 24 * time.Hour

// idTries bounds the search for an ID that is not in use: more than one is a fault of the source of random bytes.
const idTries = 8

var errRandom = errors.New("the source of random bytes repeats itself")

// ownerAt is a client's owner string at a door. Doors are servers of their own to clients (Server.ownerAt), so a client that
// comes through two has a client ID at each. Names of doors have no NUL.
func ownerAt(door string, owner []byte) string { return door + "\x00" + string(owner) }

// registry finds clients by owner (ownerAt) and address.
type registry map[string]map[netip.Addr]*clientRecord

func (r registry) at(owner string, address netip.Addr) *clientRecord { return r[owner][address] }

func (r registry) put(c *clientRecord) {
	if r[c.owner] == nil {
		r[c.owner] = map[netip.Addr]*clientRecord{}
	}
	r[c.owner][c.address.address] = c
}

// remove takes a client out, unless another one is in its place.
func (r registry) remove(c *clientRecord) {
	if r.at(c.owner, c.address.address) != c {
		return
	}
	delete(r[c.owner], c.address.address)
	if len(r[c.owner]) == 0 {
		delete(r, c.owner)
	}
}

// lapsed is true for a client whose lease is over. It is kept for as long as there is room. Linux renews its lease every two
// thirds of it, and on a busy machine later, so a second one is allowed for.
func (c *clientRecord) lapsed(now time.Time, lease time.Duration) bool {
	return now.Sub(c.renewed) > 2*lease && !c.busy()
}

// connected is true while a request of the client can come on a connection that one came on before.
func (c *clientRecord) connected() bool {
	if c.link != nil && !c.link.Ended() {
		return true
	}
	for _, session := range c.sessions {
		if session.links.alive() {
			return true
		}
	}
	return false
}

// isAt tells whether a caller is where a client is. An address may come to count as something else while its client is there: a
// machine is found to be a node.
func (c *clientRecord) isAt(from rpc.Caller) bool {
	return c.address.address == from.CountsAs() || c.from == from.Addr
}

// admits tells whether a client's sessions may be used by a caller. One that has the client's ID and another address takes
// it over where the client is gone.
func (s *Server) admits(c *clientRecord, from rpc.Caller) bool {
	if c.isAt(from) {
		return true
	}
	address := from.CountsAs()
	if c.connected() && !c.lapsed(s.now(), s.lease) {
		s.warn("A request for a client ID or session of another address was refused", "from", address, "of", c.address.address)
		return false
	}
	if s.confirmed.at(c.owner, address) != nil || s.tentative.at(c.owner, address) != nil {
		return false // It has made itself known there already.
	}
	s.move(c, s.addressOf(from), from.Addr)
	return true
}

// owns tells whether a caller may change a client's state: make and destroy sessions, and the client ID.
func (s *Server) owns(c *clientRecord, from rpc.Caller) bool {
	return c.principal == principalOf(from) && s.admits(c, from)
}

// move makes a client one of another address.
func (s *Server) move(c *clientRecord, to *addressState, from netip.Addr) {
	s.log.Info("A client has another address now", "clientid", c.id, "before", c.address.address, "now", to.address)
	before := c.address
	known := s.confirmed
	if !c.isConfirmed {
		known = s.tentative
	}
	known.remove(c)
	delete(before.clients, c.id)
	tentative := c.place != nil
	c.confirmPlace()
	bytes := c.cached()
	before.sessions -= len(c.sessions)
	before.cached -= bytes

	c.address, c.from = to, from
	known.put(c)
	to.clients[c.id] = c
	if tentative {
		c.place = to.tentative.PushBack(c)
	}
	to.sessions += len(c.sessions)
	to.cached += bytes
	c.link = nil
	for _, session := range c.sessions {
		session.links = links{}
	}
	s.forgetIdle(before)
}

// newClientID is random and not in use. Two servers behind one address, or one before and after its
// restart, don't give out the same: a client that meets both would hang on NFS4ERR_SEQ_MISORDERED.
func (s *Server) newClientID() (uint64, error) {
	var bytes [8]byte
	for range idTries {
		if _, err := io.ReadFull(s.random, bytes[:]); err != nil {
			return 0, fmt.Errorf("read random bytes for a client ID: %w", err)
		}
		id := binary.BigEndian.Uint64(bytes[:])
		if s.clients[id] == nil && id != 0 {
			return id, nil
		}
	}
	return 0, errRandom
}

// newSessionID is newClientID for sessions.
func (s *Server) newSessionID() (sessionID, error) {
	var id sessionID
	for range idTries {
		if _, err := io.ReadFull(s.random, id[:]); err != nil {
			return id, fmt.Errorf("read random bytes for a session ID: %w", err)
		}
		if s.sessions[id] == nil && id != (sessionID{}) {
			return id, nil
		}
	}
	return id, errRandom
}

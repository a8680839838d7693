package rpc

import (
	"sync"
	"time"
)

// firstTurn is what any address may hold of replies even when all memory for them is used up: the work of a long
// listing, so that a quiet client is served while the connections at fault are being closed.
const firstTurn = 384 << 10

// account is what one client address holds. The server's lock guards it.
type account struct {
	connections map[*connection]struct{}
	requests    int
	buffered    int
	replies     int
	// turn is waited on by connections whose next request can't be executed yet; waiting counts them.
	turn    *sync.Cond
	waiting int
}

// admit gives a connection its place, at the cost of another's if there is none. False: it is to be closed.
func (s *Server) admit(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[c.client]
	held := 0
	if a != nil {
		held = len(a.connections)
	}
	var displaced *connection
	switch {
	case held >= s.limits.ConnectionsPerAddress:
		displaced = a.mostIdle(func(other *connection) bool { return other.silent(s.limits.Stuck) })
	case s.connections >= s.limits.Connections:
		displaced = s.replaceable(held)
	default:
		return s.enter(c)
	}
	if displaced == nil {
		s.totals.Refused++
		return false
	}
	s.log.Debug("A connection gives its place to another client", "client", displaced.address, "newcomer", c.address)
	s.leave(displaced)
	s.dismiss(displaced)
	return s.enter(c)
}

func (s *Server) enter(c *connection) bool {
	a := s.accounts[c.client]
	if a == nil {
		a = &account{connections: map[*connection]struct{}{}, turn: sync.NewCond(&s.mu)}
		s.accounts[c.client] = a
	}
	c.account = a
	a.connections[c] = struct{}{}
	s.connections++
	return true
}

// leave takes a connection out of the count, once.
func (s *Server) leave(c *connection) {
	if _, counted := c.account.connections[c]; !counted {
		return
	}
	delete(c.account.connections, c)
	s.connections--
	s.settle(c)
}

// settle forgets an account that holds nothing.
func (s *Server) settle(c *connection) {
	a := c.account
	if len(a.connections) == 0 && a.requests == 0 && a.buffered == 0 && a.replies == 0 && a.waiting == 0 && s.accounts[c.client] == a {
		delete(s.accounts, c.client)
	}
}

// replaceable is the connection that goes for a new one of an address with that many connections: of the address that
// holds most, unless that is the newcomer's, or one that has never sent anything.
func (s *Server) replaceable(held int) *connection {
	var most *account
	for _, a := range s.accounts {
		if most == nil || len(a.connections) > len(most.connections) {
			most = a
		}
	}
	if most != nil && len(most.connections) > held+1 {
		return most.mostIdle(func(*connection) bool { return true })
	}
	for _, a := range s.accounts {
		if displaced := a.mostIdle(func(c *connection) bool { return c.silent(s.limits.Stuck) }); displaced != nil {
			return displaced
		}
	}
	return nil
}

// mostIdle is the connection that is missed least: one without a request so far, else without one being
// executed, and of these the one that was silent longest.
func (a *account) mostIdle(eligible func(*connection) bool) *connection {
	var best *connection
	for c := range a.connections {
		if eligible(c) && (best == nil || c.idlerThan(best)) {
			best = c
		}
	}
	return best
}

func (c *connection) idlerThan(other *connection) bool {
	if a, b := c.class(), other.class(); a != b {
		return a < b
	}
	return c.active.Before(other.active)
}

func (c *connection) class() int {
	switch {
	case !c.greeted:
		return 0
	case c.executing == 0 && c.replies == 0:
		return 1
	}
	return 2
}

// silent is true for a connection that has had that long for its first request and sent none.
func (c *connection) silent(long time.Duration) bool {
	return !c.greeted && time.Since(c.active) > long
}

// awaitTurn waits until a request of the connection may be executed, and counts it. False: the connection
// or the server ends.
func (s *Server) awaitTurn(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := c.account
	c.greeted, c.active = true, time.Now()
	for !c.ends() && !s.turn(a) {
		a.waiting++
		s.waiting++
		a.turn.Wait()
		a.waiting--
		s.waiting--
	}
	if !c.ends() {
		c.executing++
		a.requests++
		s.requests++
	}
	// Whoever was woken may not have needed all that was free.
	s.passTurn()
	s.settle(c)
	return !c.ends()
}

func (s *Server) turn(a *account) bool {
	return s.requests < s.limits.Requests && a.requests < s.limits.RequestsPerAddress && a.replies < s.limits.ReplyBytesPerAddress &&
		(s.replies < s.limits.ReplyBytes || a.replies < firstTurn)
}

// passTurn wakes one connection of the address that has least being executed among those that wait.
func (s *Server) passTurn() {
	if s.waiting == 0 {
		return
	}
	var next *account
	for _, a := range s.accounts {
		if a.waiting > 0 && s.turn(a) && (next == nil || a.requests < next.requests) {
			next = a
		}
	}
	if next != nil {
		next.turn.Signal()
	}
}

// executed ends the execution of a request: its place is free before its reply is written. What was
// kept for the reply becomes what it is.
func (s *Server) executed(c *connection, kept, reply int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.executing--
	c.account.requests--
	s.requests--
	s.charge(c, reply-kept)
}

// keep takes memory for a reply that is being made, if there is so much.
func (s *Server) keep(c *connection, bytes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := c.account
	if a.replies+bytes > s.limits.ReplyBytesPerAddress || (s.replies+bytes > s.limits.ReplyBytes && a.replies+bytes > firstTurn) {
		return false
	}
	s.charge(c, bytes)
	return true
}

// taken gives back the memory of replies that the client has, or will never get.
func (s *Server) taken(c *connection, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charge(c, -bytes)
}

func (s *Server) charge(c *connection, bytes int) {
	c.replies += bytes
	c.account.replies += bytes
	s.replies += bytes
	c.room.Signal()
	s.passTurn()
	s.settle(c)
}

// awaitRoom waits until the connection may read another request: what it holds itself is below its limits.
func (s *Server) awaitRoom(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !c.ends() && (c.executing >= s.limits.RequestsPerConnection || c.replies >= s.limits.ReplyBytesPerConnection) {
		c.room.Wait()
	}
	return !c.ends()
}

// reserve takes memory for a request, if there is so much.
func (s *Server) reserve(c *connection, bytes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buffered+bytes > s.limits.BufferBytes || c.account.buffered+bytes > s.limits.BufferBytesPerAddress {
		return false
	}
	s.buffered += bytes
	c.account.buffered += bytes
	return true
}

// unreserve gives back the memory of a request.
func (s *Server) unreserve(c *connection, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffered -= bytes
	c.account.buffered -= bytes
	s.settle(c)
}

// relieve closes connections that accept nothing while the memory for replies, of all or of their
// address, is nearly used up. Others go on meanwhile.
func (s *Server) relieve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		short := a.replies >= s.limits.ReplyBytesPerAddress*3/4 || (s.replies >= s.limits.ReplyBytes*3/4 && a.replies > firstTurn)
		if !short {
			continue
		}
		for c := range a.connections {
			if since := c.stuckSince.Load(); since != 0 && time.Since(time.Unix(0, since)) > s.limits.Stuck {
				s.log.Debug("A client that does not read its replies is disconnected", "client", c.address, "bytes", c.replies)
				s.dismiss(c)
			}
		}
	}
}

// dismiss closes a connection whose reader may be waiting for its turn.
func (s *Server) dismiss(c *connection) {
	if !c.dismissed {
		c.dismissed = true
		s.totals.Displaced++
	}
	c.abandon()
	s.rouse(c)
}

// end has a connection wait for nothing any more: the server stops.
func (s *Server) end(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.ending = true
	s.rouse(c)
}

func (s *Server) rouse(c *connection) {
	c.room.Signal()
	if c.account.waiting > 0 {
		c.account.turn.Broadcast()
	}
}

package rpc

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/subnet"
)

const (
	attacker = "127.0.0.2"
	good     = "127.0.0.1"
)

// served sends a request on a connection and waits for its reply.
func (r *running) served(conn net.Conn) {
	r.Helper()
	r.send(conn, 1, "echo")
	r.xid(conn)
}

// until waits for the server to have come to something.
func (r *running) until(what string, is func(Stats) bool) {
	r.Helper()
	for deadline := time.Now().Add(testTimeout); !is(r.Stats()); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.Fatalf("it never came to pass that %s: %+v", what, r.Stats())
		}
	}
}

// A request's place is free before its reply is written, so clients that do not read hold no place.
func TestClientsThatDoNotReadHoldNoPlace(t *testing.T) {
	r := start(t, newGate(), Limits{Requests: 2, RequestsPerAddress: 2, RequestsPerConnection: 2, Stuck: time.Hour})
	for i := range 2 {
		// More than the kernel's buffers of both sides take.
		conn := r.dialFrom(attacker)
		for range 8 {
			r.send(conn, uint32(i), "big!")
		}
	}
	r.until("replies wait", func(s Stats) bool { return s.ReplyBytes > 1<<20 && s.Requests == 0 })
	r.served(r.dialFrom(attacker))
	r.served(r.dialFrom(good))
}

func TestAConnectionThatDoesNotReadIsReadNoFurther(t *testing.T) {
	g := newGate()
	r := start(t, g, Limits{ReplyBytesPerConnection: 1 << 20, RequestsPerConnection: 1, Stuck: time.Hour})
	conn := r.dialFrom(attacker)
	go func() {
		for i := range uint32(100) {
			if _, err := conn.Write(whole(callBytes(i, compoundCall, []byte("big!")...))); err != nil {
				return
			}
		}
	}()
	r.until("replies wait", func(s Stats) bool { return s.ReplyBytes > 1<<20 && s.Requests == 0 })
	time.Sleep(50 * time.Millisecond)
	if got := r.Stats().ReplyBytes; got > 3<<20 {
		t.Errorf("%d bytes wait for a client that does not read", got)
	}
	r.served(r.dialFrom(attacker))
	_ = conn.Close()
}

// Where memory for replies is used up, those who do not read go, and all others are served.
func TestMemoryForRepliesComesBack(t *testing.T) {
	for name, limits := range map[string]Limits{
		"of an address":      {ReplyBytesPerAddress: 4 << 20, Stuck: 50 * time.Millisecond},
		"of all connections": {ReplyBytes: 4 << 20, ReplyBytesPerAddress: 4 << 20, Stuck: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, newGate(), limits)
			var deaf []net.Conn
			for range 8 {
				conn := r.dialFrom(attacker)
				deaf = append(deaf, conn)
				go func() {
					for range 8 {
						if _, err := conn.Write(whole(callBytes(1, compoundCall, []byte("big!")...))); err != nil {
							return
						}
					}
				}()
			}
			r.served(r.dialFrom(good))
			r.until("those who do not read are gone", func(s Stats) bool { return s.ReplyBytes < 4<<20 && s.Requests == 0 })
			r.served(r.dialFrom(attacker))
			for _, conn := range deaf {
				_ = conn.Close()
			}
		})
	}
}

func TestKeepGivesNoMoreThanThereIs(t *testing.T) {
	s := NewServer(Config{Limits: Limits{ReplyBytes: 1 << 20, ReplyBytesPerAddress: 512 << 10}})
	greedy, other, third := connectionOf(s, "192.0.2.1"), connectionOf(s, "192.0.2.2"), connectionOf(s, "192.0.2.3")
	for _, step := range []struct {
		name  string
		c     *connection
		bytes int
		want  bool
	}{
		{"as much as an address may have", greedy, 512 << 10, true},
		{"one byte more", greedy, 1, false},
		{"another address", other, 512 << 10, true},
		{"a third one's first turn, when all is used up", third, firstTurn, true},
		{"and more of it", third, 1, false},
	} {
		if got := s.keep(step.c, step.bytes); got != step.want {
			t.Errorf("%s: %v", step.name, got)
		}
	}
	s.taken(greedy, 512<<10)
	if !s.keep(third, 1) {
		t.Error("what was given back can't be had")
	}
}

func connectionOf(s *Server, address string) *connection {
	client, _ := net.Pipe()
	c := newConnection(s, client, netip.MustParseAddr(address), "")
	s.enter(c)
	return c
}

// 5 addresses with as many idle connections as there may be do not shut the door.
func TestIdleConnectionsOfFewAddressesDoNotShutTheDoor(t *testing.T) {
	r := start(t, newGate(), Limits{Connections: 20, ConnectionsPerAddress: 20, Stuck: time.Hour})
	for i := range 20 {
		conn := r.dialFrom(fmt.Sprintf("127.0.0.%d", 2+i%5))
		if i%2 == 0 {
			r.served(conn)
		}
	}
	r.until("all places are taken", func(s Stats) bool { return s.Connections == 20 })
	mine := []net.Conn{r.dialFrom(good), r.dialFrom(good), r.dialFrom(good)}
	for _, conn := range mine {
		r.served(conn)
	}
	if !ended(r.dialFrom(attacker)) && r.Stats().Connections > 20 {
		t.Error("more connections than there may be")
	}
	for range 30 { // More of the same do not displace an address with fewer.
		_ = r.dialFrom(attacker)
	}
	for _, conn := range mine {
		r.served(conn)
	}
}

func TestAnAddressGetsNoMoreThanItsConnections(t *testing.T) {
	r := start(t, newGate(), Limits{ConnectionsPerAddress: 2, Stuck: 20 * time.Millisecond})
	busy, silent := r.dialFrom(attacker), r.dialFrom(attacker)
	r.served(busy)
	r.until("both are there", func(s Stats) bool { return s.Connections == 2 })
	time.Sleep(40 * time.Millisecond)
	third := r.dialFrom(attacker)
	r.served(third) // In place of the one that has sent nothing.
	if !ended(silent) {
		t.Error("the silent one stays")
	}
	if !ended(r.dialFrom(attacker)) {
		t.Error("one too many")
	}
	r.served(busy)
	r.served(r.dialFrom(good))
	if got := r.Totals(); got != (Totals{Refused: 1, Displaced: 1}) {
		t.Errorf("counted %+v", got)
	}
}

// While one address has all its requests in execution, others get their turn.
func TestClientsAreCountedByAddress(t *testing.T) {
	r := start(t, newGate(), Limits{})
	for range 3 {
		r.served(r.dialFrom(attacker))
	}
	r.served(r.dialFrom(good))
	want := map[netip.Addr]int{netip.MustParseAddr(attacker): 3, netip.MustParseAddr(good): 1}
	if got := r.Clients(); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// Limits count a /64 of IPv6 as one client. Whoever asks who the clients are wants to find nodes, which are mostly in one.
func TestClientsOfASubnetAreNamedByTheirAddresses(t *testing.T) {
	s := NewServer(Config{})
	want := map[netip.Addr]int{}
	for _, address := range []string{"2001:db8::1", "2001:db8::1", "2001:db8::2", "192.0.2.1"} {
		connectionOf(s, address)
		want[netip.MustParseAddr(address)]++
	}
	if got := s.Clients(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := s.Stats().Addresses; got != 2 {
		t.Errorf("limits count %d addresses, want 2", got)
	}
}

// Nodes of a cluster are mostly in one /64. Each is a client of its own: they would share what one may have otherwise.
func TestSomeAddressesOfASubnetAreClientsOfTheirOwn(t *testing.T) {
	node := netip.MustParseAddr("2001:db8::7")
	s := NewServer(Config{Client: func(address netip.Addr) netip.Addr {
		if address == node {
			return address
		}
		return subnet.Of(address)
	}})
	for _, address := range []string{"2001:db8::1", "2001:db8::2", node.String()} {
		connectionOf(s, address)
	}
	if got := s.Stats().Addresses; got != 2 {
		t.Errorf("limits count %d addresses, want the node and the others", got)
	}
}

func TestRequestsOfAnAddress(t *testing.T) {
	g := newGate()
	r := start(t, g, Limits{Requests: 8, RequestsPerAddress: 4})
	for range 3 {
		conn := r.dialFrom(attacker)
		for i := range uint32(8) {
			r.send(conn, i, "slow")
		}
	}
	for range 4 {
		<-g.entered
	}
	r.served(r.dialFrom(good))
	for range 20 {
		g.leave <- struct{}{}
		<-g.entered
	}
	for range 4 {
		g.leave <- struct{}{}
	}
	if g.most != 4 {
		t.Errorf("%d at once of one address", g.most)
	}
}

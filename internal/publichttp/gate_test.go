package publichttp

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// arrival is a connection that a test counts.
type arrival struct {
	net.Conn
	closed bool
}

func (a *arrival) Close() error {
	a.closed = true
	return nil
}

type crowd struct {
	*gate
	t   *testing.T
	sec int64
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{t: t, sec: 100}
	c.gate = newGate(nil, func(a netip.Addr) bool { return a == netip.MustParseAddr("10.0.0.1") })
	c.now = func() time.Time { return time.Unix(c.sec, 0) }
	return c
}

// come is a connection from an address, and whether it may stay.
func (c *crowd) come(from string) (*arrival, bool) {
	conn := &arrival{}
	return conn, c.arrive(c.place(conn, netip.MustParseAddr(from)))
}

func TestOneAddressHasSixteenPlaces(t *testing.T) {
	c := newCrowd(t)
	first, _ := c.come("10.1.0.1")
	other, _ := c.come("10.1.0.2")
	for range maxPerAddress - 1 {
		if _, in := c.come("10.1.0.1"); !in {
			t.Fatal("refused")
		}
	}
	if first.closed {
		t.Error("the first left while there was room")
	}
	if _, in := c.come("10.1.0.1"); !in || !first.closed || other.closed {
		t.Errorf("in %t, the first of the address left %t, another's left %t", in, first.closed, other.closed)
	}
	if len(c.open) != maxPerAddress+1 {
		t.Errorf("%d are open", len(c.open))
	}
}

func TestTheAddressWithMostGivesItsOldestPlace(t *testing.T) {
	c := newCrowd(t)
	quiet, _ := c.come("10.2.0.1")
	busy := map[int]*arrival{}
	for i := range 10 {
		busy[i], _ = c.come("10.3.0.1")
	}
	for i := len(c.open); i < maxConnections; i++ {
		c.come(netip.AddrFrom4([4]byte{10, 4, byte(i >> 8), byte(i)}).String())
	}
	if _, in := c.come("10.5.0.1"); !in || !busy[0].closed || quiet.closed || len(c.open) != maxConnections {
		t.Errorf("in %t; the busy one's oldest left %t, the quiet one %t; %d are open", in, busy[0].closed, quiet.closed, len(c.open))
	}
}

func TestAMachinesIPv6AddressesAreOne(t *testing.T) {
	c := newCrowd(t)
	first, _ := c.come("2001:db8::1")
	for i := range maxPerAddress {
		c.come(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i + 2)}).String())
	}
	if !first.closed {
		t.Error("each address of a network of 64 bits has places of its own")
	}
}

func TestProbesHavePlacesOfTheirOwn(t *testing.T) {
	c := newCrowd(t)
	probe, _ := c.come("10.0.0.1")
	for i := range 1000 {
		c.come(netip.AddrFrom4([4]byte{10, 4, byte(i >> 8), byte(i)}).String())
	}
	if probe.closed {
		t.Error("others took a probe's place")
	}
	for range reservedConnections {
		c.come("10.0.0.1")
	}
	if !probe.closed || len(c.probes) != reservedConnections {
		t.Errorf("the oldest left %t, %d are open", probe.closed, len(c.probes))
	}
}

func TestAnAddressThatConnectsAllTheTimeIsRefusedForTheSecond(t *testing.T) {
	c := newCrowd(t)
	for range maxPerSecond {
		if _, in := c.come("10.1.0.1"); !in {
			t.Fatal("refused too early")
		}
	}
	if _, in := c.come("10.1.0.1"); in {
		t.Error("let in")
	}
	if _, in := c.come("10.1.0.2"); !in {
		t.Error("another address is refused")
	}
	c.sec++
	if _, in := c.come("10.1.0.1"); !in {
		t.Error("refused in the next second")
	}
}

func TestAConnectionThatEndsLeavesItsPlace(t *testing.T) {
	c := newCrowd(t)
	c.come("10.1.0.1")
	_ = c.open[0].Close()
	if len(c.open) != 0 {
		t.Errorf("%d are open", len(c.open))
	}
}

package publichttp

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/howdah/howdah/internal/subnet"
)

const (
	// maxConnections limits the connections of all addresses without reserved ones, maxPerAddress those of one address.
	maxConnections, maxPerAddress = 128, 16
	// reservedConnections limits the connections of addresses with reserved ones.
	reservedConnections = 64
	// maxPerSecond limits the connections that one address may make in a second; a connection has one request.
	maxPerSecond = 100
)

// gate is a listener with limits. A new connection does not wait for others: at the limit, the gate closes the oldest
// connection of the address that has the most. So silent connections don't keep other clients out.
type gate struct {
	net.Listener
	reserved func(netip.Addr) bool
	now      func() time.Time

	mutex sync.Mutex
	// open has the connections of addresses without reserved ones, probes those of the others, the oldest first.
	open, probes []*place
	// second is the second that arrivals are counted of, by address.
	second   int64
	arrivals map[netip.Addr]int
}

// place is an accepted connection.
type place struct {
	net.Conn
	gate *gate
	// from is the address, network the network that counts as one address.
	from, network netip.Addr
}

func (g *gate) place(conn net.Conn, from netip.Addr) *place {
	return &place{Conn: conn, gate: g, from: from, network: subnet.Of(from)}
}

func newGate(listener net.Listener, reserved func(netip.Addr) bool) *gate {
	return &gate{Listener: listener, reserved: reserved, now: time.Now, arrivals: map[netip.Addr]int{}}
}

// Accept returns the next connection that the limits allow.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		arrived := g.place(conn, addressOf(conn))
		if g.arrive(arrived) {
			if tcp, is := conn.(*net.TCPConn); is {
				_ = tcp.SetWriteBuffer(bufferBytes)
			}
			return arrived, nil
		}
		reset(conn)
	}
}

// arrive counts a new connection. It returns false if the address makes too many.
func (g *gate) arrive(arrived *place) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.reserved(arrived.from) {
		g.probes = append(g.probes, arrived)
		if len(g.probes) > reservedConnections {
			g.probes = displace(g.probes, most(g.probes))
		}
		return true
	}
	if second := g.now().Unix(); second != g.second {
		g.second = second
		clear(g.arrivals)
	}
	if g.arrivals[arrived.network]++; g.arrivals[arrived.network] > maxPerSecond {
		return false
	}
	g.open = append(g.open, arrived)
	own := 0
	for _, each := range g.open {
		if each.network == arrived.network {
			own++
		}
	}
	switch {
	case own > maxPerAddress:
		g.open = displace(g.open, arrived.network)
	case len(g.open) > maxConnections:
		g.open = displace(g.open, most(g.open))
	}
	return true
}

// Close closes the connection and frees its place.
func (p *place) Close() error {
	p.gate.mutex.Lock()
	isThis := func(each *place) bool { return each == p }
	p.gate.open = slices.DeleteFunc(p.gate.open, isThis)
	p.gate.probes = slices.DeleteFunc(p.gate.probes, isThis)
	p.gate.mutex.Unlock()
	return p.Conn.Close()
}

// displace closes the oldest connection of a network.
func displace(of []*place, network netip.Addr) []*place {
	i := slices.IndexFunc(of, func(each *place) bool { return each.network == network })
	reset(of[i].Conn)
	return slices.Delete(of, i, i+1)
}

// most returns the network with the most connections; of several, the one with the oldest connection.
func most(of []*place) netip.Addr {
	counts := map[netip.Addr]int{}
	for _, each := range of {
		counts[each.network]++
	}
	return slices.MaxFunc(of, func(a, b *place) int { return counts[a.network] - counts[b.network] }).network
}

// reset closes a connection and discards unsent data in the kernel.
func reset(conn net.Conn) {
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func addressOf(conn net.Conn) netip.Addr {
	port, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return port.Addr().Unmap().WithZone("")
}

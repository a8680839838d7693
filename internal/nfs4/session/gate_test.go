package session

import (
	"net/netip"
	"sync"
	"testing"
)

// However many wait from one address, another's turn is the next.
func TestAddressesTakeTurns(t *testing.T) {
	crowd, single := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	g := newGate()
	g.free = 1
	g.enter(crowd)
	var mu sync.Mutex
	var order []netip.Addr
	var all sync.WaitGroup
	waits := func(address netip.Addr) {
		all.Go(func() {
			g.enter(address)
			mu.Lock()
			order = append(order, address)
			mu.Unlock()
			g.leave()
		})
	}
	until := func(count int) {
		for {
			g.mu.Lock()
			n := 0
			for _, queue := range g.waiting {
				n += len(queue)
			}
			g.mu.Unlock()
			if n == count {
				return
			}
		}
	}
	for range 100 {
		waits(crowd)
	}
	until(100)
	waits(single)
	until(101)
	g.leave()
	all.Wait()
	for i, address := range order {
		if address == single && i > 1 {
			t.Errorf("the single one was number %d", i+1)
		}
	}
	if g.free != 1 || len(g.waiting) != 0 || len(g.turns) != 0 {
		t.Errorf("left behind: %d free, %v, %v", g.free, g.waiting, g.turns)
	}
}

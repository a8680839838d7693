package session

import (
	"context"
	"net/netip"
	"runtime"
	"sync"
)

// gate bounds how many operations compute at a time, and gives client addresses turns: behind a thousand operations
// of one address, the next of another address waits for one to end and not for a thousand. Go's scheduler would
// let all of them share the processors.
type gate struct {
	mu   sync.Mutex
	free int
	// waiting has those that wait, by address; turns are the addresses in the order of their next turn.
	waiting map[netip.Addr][]chan struct{}
	turns   []netip.Addr
}

// newGate makes a gate that keeps all processors busy, with some to spare for operations that wait for a lock.
func newGate() *gate {
	return &gate{free: 2 * runtime.GOMAXPROCS(0), waiting: map[netip.Addr][]chan struct{}{}}
}

// enter waits for the address's turn.
func (g *gate) enter(address netip.Addr) {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	if len(g.waiting[address]) == 0 {
		g.turns = append(g.turns, address)
	}
	g.waiting[address] = append(g.waiting[address], turn)
	g.mu.Unlock()
	<-turn
}

// leave gives the place to the address whose turn it is.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.turns) == 0 {
		g.free++
		return
	}
	address := g.turns[0]
	g.turns = g.turns[1:]
	queue := g.waiting[address]
	close(queue[0])
	if queue = queue[1:]; len(queue) == 0 {
		delete(g.waiting, address)
		return
	}
	g.waiting[address] = queue
	g.turns = append(g.turns, address)
}

// place is one compound's place at the gate: taken for each of its operations, and given back while one waits. It is
// used by one goroutine at a time.
type place struct {
	gate    *gate
	address netip.Addr
	held    bool
}

func (p *place) enter() {
	p.gate.enter(p.address)
	p.held = true
}

// leave may be called again; only the first call does something.
func (p *place) leave() {
	if p.held {
		p.held = false
		p.gate.leave()
	}
}

type placeKey struct{}

// Await runs wait without the place at the gate that the operation with this context has, and takes a place again
// afterwards. A Compound calls it around whatever takes time without computing: a few operations that wait with their
// places would leave none for all other clients. Without a place, wait just runs.
func Await(ctx context.Context, wait func()) {
	p, ok := ctx.Value(placeKey{}).(*place)
	if !ok || !p.held {
		wait()
		return
	}
	p.leave()
	defer p.enter()
	wait()
}

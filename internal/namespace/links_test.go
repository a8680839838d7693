package namespace

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// link is a connection of a network that can be cut: who should reach the target uses its address.
type link struct {
	address, target string

	// passing is held for writing while nothing passes.
	passing sync.RWMutex
	mu      sync.Mutex
	open    map[net.Conn]bool
	refuses bool
}

// newLink makes a link that ends with the test.
func newLink(t *testing.T, target string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{address: listener.Addr().String(), target: target, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()
		l.sever(0)
	})
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(near)
		}
	}()
	return l
}

func (l *link) carry(near net.Conn) {
	far, err := net.Dial("tcp", l.target)
	if err != nil {
		_ = near.Close()
		return
	}
	l.mu.Lock()
	refuses := l.refuses
	l.open[near], l.open[far] = true, true
	l.mu.Unlock()
	if refuses {
		l.end(near, far)
		return
	}
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		ways.Go(func() {
			l.pass(way[0], way[1])
			l.end(near, far)
		})
	}
	ways.Wait()
}

func (l *link) pass(from io.Reader, to io.Writer) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		l.passing.RLock()
		_, writeErr := to.Write(buffer[:n])
		l.passing.RUnlock()
		if err != nil || writeErr != nil {
			return
		}
	}
}

func (l *link) end(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(l.open, c)
	}
}

// sever ends all connections, so that answers are lost, and lets none begin for some time.
func (l *link) sever(during time.Duration) {
	l.mu.Lock()
	l.refuses = true
	for c := range l.open {
		_ = c.Close()
	}
	l.mu.Unlock()
	time.Sleep(during)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses = false
}

// hold lets nothing pass for some time. Nothing is lost.
func (l *link) hold(during time.Duration) {
	l.passing.Lock()
	defer l.passing.Unlock()
	time.Sleep(during)
}

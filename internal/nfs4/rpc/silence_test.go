package rpc

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener without a network: in a bubble of synctest, time passes when
// everybody waits, and a limit of minutes is reached at once and exactly.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialed:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.closed)
	return nil
}

func (p pipes) Addr() net.Addr { return nil }

// startInBubble is start for the bubble of a test.
func startInBubble(t *testing.T, limits Limits) *running {
	t.Helper()
	p := pipes{dialed: make(chan net.Conn), closed: make(chan struct{})}
	return serve(t, newGate(), limits, p, func() (net.Conn, error) {
		here, there := net.Pipe()
		p.dialed <- there
		return here, nil
	})
}

func TestSilentConnectionsEndAfterTheirTime(t *testing.T) {
	const greeting, idle, receive = 5 * time.Second, 15 * time.Second, 10 * time.Second
	for name, tc := range map[string]struct {
		send func(*running, net.Conn)
		want time.Duration
	}{
		"silent from the start":  {func(*running, net.Conn) {}, greeting},
		"silent after a request": {func(r *running, conn net.Conn) { r.send(conn, 1, "echo"); r.xid(conn) }, idle},
		"silent within a request": {
			func(_ *running, conn net.Conn) { _, _ = conn.Write(fragment(true, 100, []byte("abc"))) }, receive,
		},
		// Slow bytes do not keep a request alive: the time is for the whole of it.
		"a request that trickles": {func(_ *running, conn net.Conn) {
			for _, b := range fragment(true, 100, nil) {
				_, _ = conn.Write([]byte{b})
				time.Sleep(receive / 5)
			}
		}, receive},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := startInBubble(t, Limits{Greeting: greeting, Idle: idle, Receive: receive})
				conn, began := r.dial(), time.Now()
				tc.send(r, conn)
				if !ended(conn) {
					t.Error("the connection stays")
				}
				if lasted := time.Since(began); lasted != tc.want {
					t.Errorf("it lasted %v, want %v", lasted, tc.want)
				}
				other := r.dial()
				r.send(other, 1, "echo")
				r.xid(other)
			})
		})
	}
}

package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"
)

// gate holds each COMPOUND until it is let go; "panic!!!" panics, and "big" is
// answered with a megabyte.
type gate struct {
	entered, leave chan struct{}
	mu             sync.Mutex
	most, now      int
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 1000), leave: make(chan struct{})} }

func (g *gate) Compound(ctx context.Context, _ Caller, args []byte) ([]byte, rpcv2.AcceptStat) {
	switch string(args) {
	case "panic!!!":
		panic("a mistake")
	case "big!":
		return make([]byte, 1<<20), rpcv2.SUCCESS
	case "echo":
		return args, rpcv2.SUCCESS
	}
	g.mu.Lock()
	g.now++
	g.most = max(g.most, g.now)
	g.mu.Unlock()
	g.entered <- struct{}{}
	select {
	case <-g.leave:
	case <-ctx.Done():
	}
	g.mu.Lock()
	g.now--
	g.mu.Unlock()
	return args, rpcv2.SUCCESS
}

// testTimeout is for what takes milliseconds unless the machine is very busy.
const testTimeout = time.Minute

type running struct {
	*testing.T
	*Server
	address string
	connect func() (net.Conn, error)
	stop    context.CancelFunc
	done    chan error
}

// start serves on loopback.
func start(t *testing.T, handler Handler, limits Limits) *running {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, handler, limits, listener, func() (net.Conn, error) { return net.Dial("tcp", listener.Addr().String()) })
}

func serve(t *testing.T, handler Handler, limits Limits, listener net.Listener, connect func() (net.Conn, error)) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{T: t, Server: NewServer(Config{Handler: handler, Limits: limits}), connect: connect, stop: cancel, done: make(chan error, 1)}
	if listener.Addr() != nil {
		r.address = listener.Addr().String()
	}
	go func() { r.done <- r.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-r.done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(testTimeout):
			t.Error("Serve does not return")
		}
		if got := r.Stats(); got != (Stats{}) {
			t.Errorf("left behind: %+v", got)
		}
	})
	return r
}

func (r *running) dial() net.Conn {
	r.Helper()
	conn, err := r.connect()
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		r.Fatal(err)
	}
	return conn
}

// dialFrom connects to a server on loopback from one of the loopback addresses, each a client of its own.
func (r *running) dialFrom(address string) net.Conn {
	r.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := dialer.Dial("tcp", r.address)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		r.Fatal(err)
	}
	return conn
}

func (r *running) send(conn net.Conn, xid uint32, args string) {
	r.Helper()
	if _, err := conn.Write(whole(callBytes(xid, compoundCall, []byte(args)...))); err != nil {
		r.Fatal(err)
	}
}

// xid reads a reply and gives its number.
func (r *running) xid(conn net.Conn) byte {
	r.Helper()
	reply, err := ReadRecord(conn, 2<<20)
	if err != nil {
		r.Fatal(err)
	}
	return reply[3]
}

// ended is true if the server has closed the connection.
func ended(conn net.Conn) bool {
	_, err := io.Copy(io.Discard, conn)
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}

func TestRepliesOvertake(t *testing.T) {
	g := newGate()
	r := start(t, g, Limits{})
	conn := r.dial()
	r.send(conn, 1, "slow")
	r.send(conn, 2, "echo")
	if got := r.xid(conn); got != 2 {
		t.Errorf("the first reply is to %d", got)
	}
	g.leave <- struct{}{}
	if got := r.xid(conn); got != 1 {
		t.Errorf("the second reply is to %d", got)
	}
}

func TestReadingPausesAtTheLimitOfRequests(t *testing.T) {
	for name, limits := range map[string]Limits{
		"of a connection":    {RequestsPerConnection: 3},
		"of an address":      {RequestsPerAddress: 3},
		"of all connections": {Requests: 3, RequestsPerAddress: 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			r := start(t, g, limits)
			conn := r.dial()
			for i := range uint32(10) {
				r.send(conn, i, "slow")
			}
			for range 3 {
				<-g.entered
			}
			for i := range 10 {
				g.leave <- struct{}{}
				r.xid(conn)
				if i < 7 {
					<-g.entered
				}
			}
			if g.most != 3 {
				t.Errorf("%d at once", g.most)
			}
		})
	}
}

func TestLimitsOfConnections(t *testing.T) {
	for name, limits := range map[string]Limits{
		"in total":      {Connections: 2, ConnectionsPerAddress: 2},
		"of an address": {ConnectionsPerAddress: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, newGate(), limits)
			first, second := r.dial(), r.dial()
			for _, conn := range []net.Conn{first, second} {
				r.send(conn, 1, "echo")
				r.xid(conn)
			}
			if !ended(r.dial()) {
				t.Error("a third connection stays")
			}
			_ = first.Close()
			// The place is free as soon as the server has seen the end.
			for r.Stats().Connections == 2 {
				time.Sleep(time.Millisecond)
			}
			fourth := r.dial()
			r.send(fourth, 1, "echo")
			r.xid(fourth)
		})
	}
}

func TestConnectionsThatEnd(t *testing.T) {
	limits := Limits{MessageBytes: 10000, BufferBytesPerAddress: 5000}
	for name, send := range map[string]func(*running, net.Conn){
		"too large":                func(_ *running, conn net.Conn) { _, _ = conn.Write(fragment(true, 10001, nil)) },
		"beyond the common memory": func(_ *running, conn net.Conn) { _, _ = conn.Write(whole(make([]byte, 9500))) },
		"not a call":               func(_ *running, conn net.Conn) { _, _ = conn.Write(whole([]byte("GET / HTTP/1.1"))) },
		"closed by the client":     func(_ *running, conn net.Conn) { _ = conn.(*net.TCPConn).CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, newGate(), limits)
			conn := r.dial()
			send(r, conn)
			if !ended(conn) {
				t.Error("the connection stays")
			}
			other := r.dial()
			r.send(other, 1, "echo")
			r.xid(other)
		})
	}
}

func TestAClientThatReadsNothingIsDropped(t *testing.T) {
	r := start(t, newGate(), Limits{Write: 100 * time.Millisecond})
	conn := r.dial()
	for i := range uint32(32) {
		// The server may have hung up before the last one.
		if _, err := conn.Write(whole(callBytes(i, compoundCall, []byte("big!")...))); err != nil {
			break
		}
	}
	for deadline := time.Now().Add(testTimeout); r.Stats() != (Stats{}); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still there: %+v", r.Stats())
		}
	}
}

func TestAPanicIsOneRequestsError(t *testing.T) {
	r := start(t, newGate(), Limits{})
	conn := r.dial()
	r.send(conn, 9, "panic!!!")
	reply, err := ReadRecord(conn, 1000)
	if err != nil || reply[3] != 9 || reply[len(reply)-1] != byte(rpcv2.SYSTEM_ERR) {
		t.Errorf("%x, %v", reply, err)
	}
	r.send(conn, 1, "echo")
	r.xid(conn)
}

func TestShutdown(t *testing.T) {
	t.Run("closes silent connections at once, with FIN", func(t *testing.T) {
		r := start(t, newGate(), Limits{Drain: time.Hour})
		conn := r.dial()
		r.send(conn, 1, "echo")
		r.xid(conn)
		r.stop()
		if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if conn, err := r.connect(); err == nil {
			_ = conn.Close()
			t.Error("it still listens")
		}
	})
	t.Run("lets a request end and sends its reply", func(t *testing.T) {
		g := newGate()
		r := start(t, g, Limits{})
		conn := r.dial()
		r.send(conn, 7, "slow")
		<-g.entered
		r.stop()
		time.Sleep(20 * time.Millisecond)
		g.leave <- struct{}{}
		if got := r.xid(conn); got != 7 {
			t.Errorf("reply %d", got)
		}
		if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("ends a request that takes too long without a reply", func(t *testing.T) {
		g := newGate()
		r := start(t, g, Limits{Drain: 100 * time.Millisecond})
		conn := r.dial()
		r.send(conn, 7, "slow")
		<-g.entered
		r.stop()
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// doors answers with the name of the door that the call came through.
type doors struct{}

func (doors) Compound(_ context.Context, caller Caller, _ []byte) ([]byte, rpcv2.AcceptStat) {
	return []byte(caller.Door), rpcv2.SUCCESS
}

func TestTheHandlerGetsTheDoorThatACallCameThrough(t *testing.T) {
	server := NewServer(Config{Handler: doors{}})
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	for _, door := range []string{"", "side"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serving.Go(func() {
			if err := server.ServeDoor(ctx, door, listener); err != nil {
				t.Error(err)
			}
		})
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		r := &running{T: t}
		r.send(conn, 1, "echo")
		_ = conn.SetReadDeadline(time.Now().Add(testTimeout))
		const header = 24 // xid, reply, accepted, verifier, success
		if reply, err := ReadRecord(conn, 1<<10); err != nil || len(reply) != header+len(door) || string(reply[header:]) != door {
			t.Errorf("door %q: %q, %v", door, reply, err)
		}
		_ = conn.Close()
	}
	stop()
	serving.Wait()
}

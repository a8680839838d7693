package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/client"
)

// proxy forwards connections to a server and can cut them, before or after a reply.
type proxy struct {
	listener net.Listener
	target   atomic.Pointer[string]
	mu       sync.Mutex
	conns    map[net.Conn]bool
	// swallow makes the next reply get lost together with its connection.
	swallow atomic.Bool
	// replace turns each # of a reply into a byte that is never part of UTF-8.
	replace atomic.Bool
	// loss is raised to have all present connections carry nothing any more, as those to a node without power do.
	loss atomic.Int32
	// before is called before a reply is passed on, with its number, from 1.
	before  func(reply int32)
	replies atomic.Int32
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, conns: map[net.Conn]bool{}}
	p.target.Store(&target)
	t.Cleanup(func() { _ = listener.Close(); p.cut() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.forward(conn)
		}
	}()
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) forward(conn net.Conn) {
	server, err := net.Dial("tcp", *p.target.Load())
	if err != nil {
		_ = conn.Close()
		return
	}
	p.mu.Lock()
	p.conns[conn], p.conns[server] = true, true
	p.mu.Unlock()
	go func() { _, _ = io.Copy(server, conn); _ = server.Close() }()
	buffer := make([]byte, 64<<10)
	before := p.loss.Load()
	for {
		n, err := server.Read(buffer)
		if p.loss.Load() != before {
			n = 0
		}
		for i, b := range buffer[:n] {
			if b == '#' && p.replace.Load() {
				buffer[i] = 0xff
			}
		}
		if n > 0 && p.swallow.CompareAndSwap(true, false) {
			// The server has answered, and the answer is lost with the connection.
			err = io.ErrUnexpectedEOF
		} else if n > 0 {
			if number := p.replies.Add(1); p.before != nil {
				p.before(number)
			}
			_, err = conn.Write(buffer[:n])
		}
		if err != nil {
			_ = conn.Close()
			_ = server.Close()
			return
		}
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
		delete(p.conns, conn)
	}
}

// A node that has lost its power ends no connection, and the server is soon at the same address on another node. Each call
// gives up before the connection counts as silent.
func TestAConnectionThatCarriesNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	s := serve(t, newTree(), "127.0.0.1:0")
	p := newProxy(t, s.addr)
	c := dial(t, p.addr(), client.Options{CallTimeout: 2 * time.Second})
	if err := c.Mkdir(context.Background(), root, "/before", client.MkdirOptions{}); err != nil {
		t.Fatal(err)
	}
	p.loss.Add(1)
	began := time.Now()
	for attempt := 0; ; attempt++ {
		err := c.Mkdir(context.Background(), root, fmt.Sprint("/after", attempt), client.MkdirOptions{})
		if err == nil {
			break
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("no call is answered %s after the connection was lost: %v", time.Since(began), err)
		}
	}
	t.Logf("answered again after %s", time.Since(began))
}

// The reply is lost with the connection: the call is sent again, executed once, and succeeds.
func TestALostReplyIsAskedForAgain(t *testing.T) {
	s := serve(t, newTree(), "127.0.0.1:0")
	p := newProxy(t, s.addr)
	c := dial(t, p.addr(), client.Options{})
	for i := range 5 {
		p.swallow.Store(true)
		if err := c.Mkdir(context.Background(), root, fmt.Sprint("/d", i), client.MkdirOptions{}); err != nil {
			t.Fatal(err)
		}
		if p.swallow.Load() {
			t.Fatal("no reply was lost")
		}
	}
	if got := s.tree.creates.Load(); got != 5 {
		t.Errorf("CREATE was executed %d times", got)
	}
}

// The reply is lost and the server forgets the session as well: the second
// attempt meets its own work, and the error says that this may be so.
func TestALostReplyAndALostSession(t *testing.T) {
	tree := newTree()
	one := serve(t, tree, "127.0.0.1:0")
	two := serve(t, tree, "127.0.0.1:0")
	p := newProxy(t, one.addr)
	c := dial(t, p.addr(), client.Options{})
	if err := c.Mkdir(context.Background(), root, "/before", client.MkdirOptions{}); err != nil {
		t.Fatal(err)
	}
	p.target.Store(&two.addr)
	p.swallow.Store(true)
	err := c.Mkdir(context.Background(), root, "/d", client.MkdirOptions{})
	var status *client.StatusError
	if !errors.As(err, &status) || status.Status != nfsv4.NFS4ERR_EXIST || !status.Retried {
		t.Errorf("%v (%+v)", err, status)
	}
	err = c.Mkdir(context.Background(), root, "/d", client.MkdirOptions{})
	if !errors.As(err, &status) || status.Status != nfsv4.NFS4ERR_EXIST || status.Retried {
		t.Errorf("an ordinary EXIST: %v (%+v)", err, status)
	}
}

// Another client with the same owner begins again while the client makes its session, as an earlier life of a client does
// whose lease is renewed once more: the session is lost before its first use, and the client makes another one.
func TestASessionIsLostWhileItIsMade(t *testing.T) {
	s := serve(t, newTree(), "127.0.0.1:0")
	p := newProxy(t, s.addr)
	const afterCreateSession = 2
	p.before = func(reply int32) {
		if reply != afterCreateSession {
			return
		}
		other, err := client.Dial(context.Background(), s.addr, client.Options{ClientOwner: "twice"})
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = other.Close(context.Background()) })
	}
	c := dial(t, p.addr(), client.Options{ClientOwner: "twice"})
	if p.replies.Load() <= afterCreateSession+1 {
		t.Fatal("the session was not lost")
	}
	if _, err := c.Stat(t.Context(), root, "/"); err != nil {
		t.Error(err)
	}
}

// The server restarts without any state, on the same address.
func TestServerRestart(t *testing.T) {
	tree := newTree()
	s := serve(t, tree, "127.0.0.1:0")
	c := dial(t, s.addr, client.Options{})
	for i := range 3 {
		if err := c.Mkdir(context.Background(), root, fmt.Sprint("/d", i), client.MkdirOptions{}); err != nil {
			t.Fatal(err)
		}
		s.stop()
		s = serve(t, tree, s.addr)
	}
	if _, err := c.Stat(context.Background(), root, "/d2"); err != nil {
		t.Fatal(err)
	}
}

func TestCallsRunAtTheSameTime(t *testing.T) {
	const together = 32
	s := serve(t, newTree(), "127.0.0.1:0")
	c := dial(t, s.addr, client.Options{CallTimeout: testTimeout})
	// No call ends before all have begun.
	var begun sync.WaitGroup
	begun.Add(together)
	s.tree.onCreate.Store(new(func() { begun.Done(); begun.Wait() }))
	var calls sync.WaitGroup
	for i := range together {
		calls.Go(func() {
			if err := c.Mkdir(context.Background(), root, fmt.Sprint("/d", i), client.MkdirOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

// Connections are cut all the time under load: everything is executed once.
func TestCutsUnderLoad(t *testing.T) {
	s := serve(t, newTree(), "127.0.0.1:0")
	p := newProxy(t, s.addr)
	c := dial(t, p.addr(), client.Options{Slots: 8})
	s.tree.onCreate.Store(new(func() { time.Sleep(2 * time.Millisecond) }))
	stop := make(chan struct{})
	var cutter, calls sync.WaitGroup
	cutter.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(150 * time.Millisecond):
				p.cut()
			}
		}
	})
	for worker := range 8 {
		calls.Go(func() {
			for i := range 40 {
				// Some calls are given up while they run; their slots must come back.
				if i%10 == 9 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
					_, _ = c.Stat(ctx, root, "/")
					cancel()
				}
				if err := c.Mkdir(context.Background(), root, fmt.Sprintf("/d-%d-%d", worker, i), client.MkdirOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	close(stop)
	cutter.Wait()
	if got := s.tree.creates.Load(); got != 320 {
		t.Errorf("CREATE was executed %d times, want 320", got)
	}
}

func TestContextEndsACall(t *testing.T) {
	s := serve(t, newTree(), "127.0.0.1:0")
	c := dial(t, s.addr, client.Options{Slots: 1, CallTimeout: testTimeout})
	begun, end := make(chan struct{}), make(chan struct{})
	s.tree.onCreate.Store(new(func() { close(begun); <-end }))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-begun; cancel() }()
	// The server does not answer before the call has been given up.
	if err := c.Mkdir(ctx, root, "/d", client.MkdirOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(end)
	// The only slot comes back with the reply.
	if _, err := c.Stat(context.Background(), root, "/d"); err != nil {
		t.Error(err)
	}
}

func TestDelaysHaveALimit(t *testing.T) {
	s := serve(t, newTree(), "127.0.0.1:0")
	steady := dial(t, s.addr, client.Options{CallTimeout: testTimeout})
	if err := steady.Mkdir(context.Background(), root, "/d", client.MkdirOptions{}); err != nil {
		t.Fatal(err)
	}
	s.tree.delays.Store(2)
	if _, err := steady.Stat(context.Background(), root, "/d"); err != nil {
		t.Errorf("two delays: %v", err)
	}
	// A call's time may end between attempts or in the midst of one: the error says the last answer of the server. A machine that is so slow that there
	// was none in this time gets more of it.
	const most = 1000
	for limit := 1100 * time.Millisecond; ; limit *= 2 {
		s.tree.delays.Store(0)
		hasty, err := client.Dial(context.Background(), s.addr, client.Options{ClientOwner: "hasty " + limit.String(), CallTimeout: limit})
		if err == nil {
			s.tree.delays.Store(most)
			_, err = hasty.Stat(context.Background(), root, "/d")
			answers := most - s.tree.delays.Load()
			_ = hasty.Close(context.Background())
			if client.IsStatus(err, nfsv4.NFS4ERR_DELAY) {
				return
			}
			if answers > 1 { // It asks again once it has an answer.
				t.Fatalf("delays without end: %v", err)
			}
		}
		if limit > testTimeout {
			t.Fatalf("no call came to an answer in %s: %v", limit, err)
		}
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := client.Dial(ctx, addr, client.Options{ClientOwner: "x"}); err == nil {
		t.Error("Dial succeeds")
	}
	if client.Null(ctx, addr) == nil {
		t.Error("Null succeeds")
	}
	if _, err := client.Identify(ctx, addr); err == nil {
		t.Error("Identify succeeds")
	}
}

// Whoever lets clients wait resets them later than a data server that does not let an address in. An orderly end is no waiting room's.
func TestAnEndOfAConnectionCountsIfItComesAtOnceOrInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		reset bool
		is    bool
	}{
		"a reset at once": {reset: true, is: true},
		"a late reset":    {after: 500 * time.Millisecond, reset: true},
		"a late end":      {after: 500 * time.Millisecond, is: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				if tc.reset {
					_ = conn.(*net.TCPConn).SetLinger(0)
				} else {
					_, _ = conn.Read(make([]byte, 1<<10)) // What is not read makes the end a reset.
				}
				time.Sleep(tc.after)
				_ = conn.Close()
			}()
			if tc.after == 0 {
				err = knockAtOnce(t, listener.Addr().String())
			} else {
				err = client.Knock(t.Context(), listener.Addr().String())
			}
			if (err == nil) != tc.is {
				t.Error(err)
			}
		})
	}
}

func TestProbes(t *testing.T) {
	s := serve(t, newTree(), "127.0.0.1:0")
	if err := client.Null(context.Background(), s.addr); err != nil {
		t.Error(err)
	}
	identity, err := client.Identify(context.Background(), s.addr)
	if err != nil || identity != (client.Identity{Owner: "owner-1", Scope: "scope-1"}) {
		t.Errorf("%+v, %v", identity, err)
	}
}

func TestClosedClient(t *testing.T) {
	s := serve(t, newTree(), "127.0.0.1:0")
	c := dial(t, s.addr, client.Options{})
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Stat(context.Background(), root, "/"); !errors.Is(err, client.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestPathsThatCannotBeSent(t *testing.T) {
	s := serve(t, newTree(), "127.0.0.1:0")
	c := dial(t, s.addr, client.Options{})
	deep := ""
	for range 25 {
		deep += "/d"
	}
	for name, path := range map[string]string{"relative": "a", "empty": "", "the root": "/", "a NUL": "/a\x00b", "too deep": deep} {
		t.Run(name, func(t *testing.T) {
			if err := c.Mkdir(context.Background(), root, path, client.MkdirOptions{}); !errors.Is(err, client.ErrPath) {
				t.Error(err)
			}
		})
	}
	if err := c.Mkdir(context.Background(), root, "/\xff", client.MkdirOptions{}); err == nil {
		t.Error("a name that is not UTF-8 was sent")
	}
	if _, err := c.Stat(context.Background(), root, "/"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestReadDirPages(t *testing.T) {
	s := serve(t, newTree(), "127.0.0.1:0")
	c := dial(t, s.addr, client.Options{})
	for i := range 1234 {
		s.tree.file(fmt.Sprintf("/f%04d", i))
	}
	entries, err := c.ReadDir(context.Background(), root, "/")
	if err != nil || len(entries) != 1234 || entries[1233].Name != "f1233" {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
}

// Users can make names that are not UTF-8 on a data server; a listing goes on without them.
func TestReadDirLeavesOutNamesThatAreNotUTF8(t *testing.T) {
	s := serve(t, newTree(), "127.0.0.1:0")
	p := newProxy(t, s.addr)
	c := dial(t, p.addr(), client.Options{})
	for _, name := range []string{"/a", "/bad#name", "/c", "/z#"} {
		s.tree.file(name)
	}
	// go-xdr does not encode such names either, so they are made on the way.
	p.replace.Store(true)
	entries, err := c.ReadDir(context.Background(), root, "/")
	if err != nil || len(entries) != 2 || entries[0].Name != "a" || entries[1].Name != "c" || entries[1].FileID == 0 {
		t.Fatalf("%+v, %v", entries, err)
	}
}

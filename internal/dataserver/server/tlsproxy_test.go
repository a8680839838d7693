package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/listing"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/naming"
)

// echoProxy is a TLS port before a server that echoes what it gets.
type echoProxy struct {
	*Proxy
	address string
	logged  *dataservertest.Lines
	client  *tls.Config
}

func startEchoProxy(t *testing.T, handshake time.Duration) *echoProxy {
	t.Helper()
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	mustWork(t, "listen", err)
	go func() {
		for {
			conn, err := behind.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); _ = conn.Close() }()
		}
	}()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	mustWork(t, "listen", err)
	p := &echoProxy{address: listener.Addr().String(), logged: &dataservertest.Lines{}}
	p.Proxy = NewProxy(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", behind.Addr().String())
	}, NewMetrics("default", "training-0"), slog.New(slog.NewTextHandler(p.logged, nil)))
	p.handshake = handshake
	own, err := mtls.Parse(dataservertest.Issue(t, dataservertest.TestAuthority, func(a *mtls.Authority) ([]byte, error) { return a.DataServer("training-0") }))
	mustWork(t, "read a certificate", err)
	p.Use(mtls.ServerConfig([]*mtls.Identity{own}, naming.NamespaceServerTLSName(dataservertest.DataServer(1).Spec.ServerScope), nil, time.Now))
	p.client = dataservertest.TLSConfig(t, dataservertest.Issue(t, dataservertest.TestAuthority, (*mtls.Authority).NamespaceServers))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		mustWork(t, "serve", <-ended) // All connections have ended by then.
		_ = behind.Close()
	})
	return p
}

// connect opens a connection from a loopback address.
func (p *echoProxy) connect(t *testing.T, from string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
	conn, err := dialer.DialContext(t.Context(), "tcp", p.address)
	mustWork(t, "connect", err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// enter connects as a namespace server; false if it is refused.
func (p *echoProxy) enter(t *testing.T, from string) (net.Conn, bool) {
	t.Helper()
	conn := tls.Client(p.connect(t, from), p.client)
	_, err := conn.Write([]byte("hello"))
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 5))
	}
	return conn, err == nil
}

func TestSilentClientsDoNotKeepNamespaceServersOut(t *testing.T) {
	p := startEchoProxy(t, time.Hour) // No silent connection times out.
	closed := make(chan int, 4*tlsHandshakes)
	for range 4 * tlsHandshakes {
		silent := p.connect(t, "127.0.0.2")
		go func() {
			n, _ := silent.Read(make([]byte, 1)) // Until it is closed.
			closed <- n
		}()
	}
	// All but the newest are closed. On a busy machine they are not accepted in the order in which they connected.
	for range 3 * tlsHandshakes {
		if n := <-closed; n > 0 {
			t.Fatalf("a silent client got %d bytes", n)
		}
	}
	for range 10 {
		if _, in := p.enter(t, "127.0.0.3"); !in {
			t.Fatal("a namespace server was refused")
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.handshaking) > tlsHandshakes {
		t.Errorf("%d handshakes run at once", len(p.handshaking))
	}
}

// Whoever has one IPv6 address has all of its /64.
func TestSilentClientsOfOneSubnetMakeRoomForOthers(t *testing.T) {
	p := &Proxy{}
	arrive := func(from string) net.Conn {
		near, far := net.Pipe()
		t.Cleanup(func() { _, _ = near.Close(), far.Close() })
		p.arrive(&newcomer{Conn: near, from: netip.MustParseAddr(from)})
		return far
	}
	server := arrive("fd00:1::1")
	for i := range 2 * tlsHandshakes {
		arrive(fmt.Sprintf("fd00:2::%x", i+1))
	}
	mustWork(t, "set a deadline", server.SetReadDeadline(time.Now()))
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection of a namespace server: %v", err)
	}
}

func TestASilentClientTimesOut(t *testing.T) {
	p := startEchoProxy(t, 20*time.Millisecond)
	conn := p.connect(t, "127.0.0.2")
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a silent client got an answer")
	}
}

func TestNamespaceServersConnectionsAreBounded(t *testing.T) {
	before := memoryInUse()
	p := startEchoProxy(t, handshakeTimeout)
	var inside []net.Conn
	for range tlsConnections {
		conn, in := p.enter(t, "127.0.0.2")
		if !in {
			t.Fatalf("only %d were accepted", len(inside))
		}
		inside = append(inside, conn)
	}
	t.Logf("FIGURE memory of %d connections, both ends and what is behind: %d KiB", tlsConnections, (memoryInUse()-before)>>10)
	if _, in := p.enter(t, "127.0.0.3"); in {
		t.Error("one more was accepted")
	}
	if got := dataservertest.MetricOf(t, p.metrics.Registry, "howdah_data_server_tls_connections"); got != tlsConnections {
		t.Errorf("the metric says %v", got)
	}
	if text := p.logged.String(); !strings.Contains(text, "which is the maximum") || !strings.Contains(text, "127.0.0.3") {
		t.Errorf("the log: %s", text)
	}
	if got := dataservertest.MetricOf(t, p.metrics.Registry, "howdah_data_server_tls_refused_total"); got != 1 {
		t.Errorf("%v were refused", got)
	}
	// A closed connection makes room for another.
	mustWork(t, "leave", inside[0].Close())
	for deadline := time.Now().Add(timeout); ; time.Sleep(time.Millisecond) {
		if _, in := p.enter(t, "127.0.0.3"); in {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a free place was not given")
		}
	}
}

// memoryInUse returns the size of heap and stacks in bytes.
func memoryInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}

func TestRefusalsAreLoggedOnceInAWhile(t *testing.T) {
	p := startEchoProxy(t, handshakeTimeout)
	for range 50 {
		conn := p.connect(t, "127.0.0.2")
		_, _ = conn.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
		_, _ = io.ReadAll(conn)
	}
	if n := strings.Count(p.logged.String(), "refused a connection"); n != 1 {
		t.Errorf("%d lines of log: %s", n, p.logged)
	}
}

// lists is storage with one share, "s".
type lists struct{}

func (lists) Directories(_ context.Context, share string, depth int32) ([]listing.Directory, error) {
	if share != "s" {
		return nil, errors.New("not exported")
	}
	return []listing.Directory{{Path: "train", Mode: uint32(depth)}}, nil
}

func (lists) Sizes(_ context.Context, share string, depth int32) (map[string]int64, error) {
	switch {
	case share != "s":
		return nil, errors.New("not exported")
	case depth == 0:
		return map[string]int64{"": 3 << 40}, nil
	}
	return map[string]int64{"train": 1 << 30, "secret name": 2}, nil
}

func TestNamespaceServersListDirectoriesWithoutGanesha(t *testing.T) {
	p := startEchoProxy(t, handshakeTimeout)
	ask := func(share string) ([]listing.Directory, error) {
		return listing.Ask(t.Context(), tls.Client(p.connect(t, "127.0.0.2"), p.client), listing.Request{Share: share, Depth: 2})
	}
	if _, err := ask("s"); !errors.Is(err, listing.ErrNotOffered) {
		t.Errorf("storage that lists nothing: %v", err)
	}
	p.Offer(lists{})
	if found, err := ask("s"); err != nil || !slices.Equal(found, []listing.Directory{{Path: "train", Mode: 2}}) {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := ask("other"); err == nil || !strings.Contains(err.Error(), "not exported") {
		t.Errorf("another share: %v", err)
	}
	if _, in := p.enter(t, "127.0.0.2"); !in {
		t.Error("ganesha can't be reached any more")
	}
	unknown := p.client.Clone()
	unknown.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
	if found, err := listing.Ask(t.Context(), tls.Client(p.connect(t, "127.0.0.2"), unknown), listing.Request{Share: "s", Depth: 2}); err == nil {
		t.Errorf("a client without a certificate got %v", found)
	}
}

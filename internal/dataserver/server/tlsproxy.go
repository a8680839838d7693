package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/listing"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/subnet"
)

const (
	// tlsConnections is the maximum number of namespace servers' connections. Each namespace server has one.
	tlsConnections = 64
	// tlsHandshakes is the maximum number of TLS handshakes at the same time. handshakeTimeout limits each. Go also limits
	// what it reads from an unauthenticated client: 64 KiB, and 256 KiB of certificates.
	tlsHandshakes    = 32
	handshakeTimeout = 5 * time.Second
	// listTimeout limits the listing of a share, including the wait for other listings.
	listTimeout = time.Minute
	// relayTimeout limits connecting to ganesha.
	relayTimeout = 3 * time.Second
	// logRefusedEvery is the minimum time between two log lines about refusals: a refused client may retry very often.
	logRefusedEvery = 10 * time.Second
)

// tlsKeepAlive closes the connection of a namespace server within half a minute after its node has failed.
var tlsKeepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// Proxy is the port for namespace servers. It connects a client that proves in the TLS handshake that it is a namespace
// server with ganesha. Ganesha trusts connections from the proxy's loopback address (OwnAddress). The proxy reads only
// the start of the stream: it answers a request for a share's directories (package listing) itself.
type Proxy struct {
	config  atomic.Pointer[tls.Config]
	lists   atomic.Pointer[backend.Lister]
	ganesha func(ctx context.Context) (net.Conn, error)
	metrics *Metrics
	log     *slog.Logger
	// peers answers other data servers of the FileServer; nil refuses them.
	peers func(ctx context.Context, name string, conn net.Conn)
	// handshake is handshakeTimeout; tests change it.
	handshake time.Duration
	// logEvery is logRefusedEvery; tests change it.
	logEvery time.Duration

	// listing allows one listing at a time, because each is a client of the storage.
	listing chan struct{}

	mutex sync.Mutex
	// handshaking are the connections in their TLS handshake, the oldest first.
	handshaking []*newcomer
	// open is the number of authenticated connections.
	open int
	// refused is the number of refusals since loggedAt.
	refused  int
	loggedAt time.Time
}

// newcomer is a connection in its TLS handshake.
type newcomer struct {
	net.Conn
	from netip.Addr
}

// NewProxy makes the port for namespace servers. It refuses all connections until Use is called. ganesha connects to
// ganesha from a trusted address.
func NewProxy(ganesha func(ctx context.Context) (net.Conn, error), metrics *Metrics, log *slog.Logger) *Proxy {
	return &Proxy{ganesha: ganesha, metrics: metrics, log: log, handshake: handshakeTimeout, logEvery: logRefusedEvery, listing: make(chan struct{}, 1)}
}

// LogRefusals sets the minimum time between two log lines about refusals. Call it before the proxy serves.
func (p *Proxy) LogRefusals(every time.Duration) { p.logEvery = every }

// ServePeers sets who answers other data servers, by the name in their certificates: the mover. Ganesha never gets their connections, because it would
// trust them as it trusts namespace servers. Call it before the proxy serves.
func (p *Proxy) ServePeers(peers func(ctx context.Context, name string, conn net.Conn)) {
	p.peers = peers
}

// Use sets the TLS configuration for new connections. With nil all are refused.
func (p *Proxy) Use(config *tls.Config) { p.config.Store(config) }

// Offer lets namespace servers list the storage's directories.
func (p *Proxy) Offer(lister backend.Lister) { p.lists.Store(&lister) }

// Lister returns the storage of Offer; nil if there is none.
func (p *Proxy) Lister() backend.Lister {
	if offered := p.lists.Load(); offered != nil {
		return *offered
	}
	return nil
}

// ListenAndServe serves on a TCP port until the context ends.
func (p *Proxy) ListenAndServe(ctx context.Context, port int32) error {
	configured := net.ListenConfig{KeepAliveConfig: tlsKeepAlive}
	listener, err := configured.Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("listening for namespace servers: %w", err)
	}
	return p.serve(ctx, listener)
}

// serve accepts connections until the context ends.
func (p *Proxy) serve(ctx context.Context, listener net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	var relays sync.WaitGroup
	defer relays.Wait()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accepting namespace servers: %w", err)
		case err != nil:
			// There are no free file descriptors, or the connection was reset before it was accepted.
			p.log.Warn("can't accept a connection to the TLS port", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		relays.Go(func() {
			defer func() { _ = conn.Close() }()
			// Everything that waits on the connection ends with the context.
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			if err := p.connect(ctx, conn); err != nil && ctx.Err() == nil {
				p.refuse(conn, err)
			}
		})
	}
}

// connect connects a namespace server with ganesha until one of them closes the connection. The error says why it was
// refused.
func (p *Proxy) connect(ctx context.Context, conn net.Conn) error {
	secured, err := p.shakeHands(ctx, conn)
	if err != nil {
		return err
	}
	if !p.enter() {
		return fmt.Errorf("%d namespace servers are connected, which is the maximum", tlsConnections)
	}
	defer p.leave()
	if name := mtls.PeerName(secured.ConnectionState()); !naming.IsNamespaceServerTLSName(name) {
		if p.peers == nil {
			return errors.New("this data server has nothing for other data servers")
		}
		p.peers(ctx, name, secured)
		return nil
	}
	reader := bufio.NewReader(secured)
	asked, err := listing.IsRequest(reader)
	if err != nil {
		return nil // The namespace server closed the connection before it sent anything.
	}
	if asked {
		_ = secured.SetDeadline(time.Now().Add(listTimeout + relayTimeout)) // Leave time to send the error of a timeout.
		if err := listing.Answer(reader, secured, func(of listing.Request) ([]listing.Directory, error) { return p.List(ctx, of) }); err != nil {
			p.log.Debug("can't send a share's directories to a namespace server", "err", err)
		}
		return nil
	}
	dialing, cancel := context.WithTimeout(ctx, relayTimeout)
	behind, err := p.ganesha(dialing)
	cancel()
	if err != nil {
		// Ganesha is restarting. The namespace server tries again, as after any lost connection.
		p.log.Debug("can't connect a namespace server to ganesha", "err", err)
		return nil
	}
	relay(&begun{secured, reader}, behind)
	return nil
}

// begun is a connection whose first bytes are in a reader.
type begun struct {
	net.Conn
	reader *bufio.Reader
}

func (b *begun) Read(p []byte) (int, error) { return b.reader.Read(p) }

// List lists the directories of a share, one request at a time.
func (p *Proxy) List(ctx context.Context, of listing.Request) ([]listing.Directory, error) {
	lister := p.Lister()
	if lister == nil {
		return nil, listing.ErrNotOffered
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	select {
	case p.listing <- struct{}{}:
		defer func() { <-p.listing }()
	case <-ctx.Done():
		return nil, errors.New("the data server is busy with other listings")
	}
	return lister.Directories(ctx, of.Share, of.Depth)
}

// shakeHands does the TLS handshake. It returns an error if the client is not a namespace server.
func (p *Proxy) shakeHands(ctx context.Context, conn net.Conn) (*tls.Conn, error) {
	config := p.config.Load()
	if config == nil {
		return nil, errors.New("this data server has no certificate")
	}
	arrived := &newcomer{Conn: conn, from: addressOf(conn)}
	p.arrive(arrived)
	defer p.settle(arrived)
	ctx, cancel := context.WithTimeout(ctx, p.handshake)
	defer cancel()
	secured := tls.Server(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return secured, nil
}

// arrive adds a newcomer. If there are too many, it closes the oldest one of the subnet that has most of them. So
// clients that connect and send nothing can't keep namespace servers out.
func (p *Proxy) arrive(arrived *newcomer) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.handshaking = append(p.handshaking, arrived)
	if len(p.handshaking) <= tlsHandshakes {
		return
	}
	count := map[netip.Addr]int{}
	for _, each := range p.handshaking {
		count[subnet.Of(each.from)]++
	}
	oldest := slices.MaxFunc(p.handshaking, func(a, b *newcomer) int { return count[subnet.Of(a.from)] - count[subnet.Of(b.from)] })
	_ = oldest.Close()
	p.handshaking = slices.DeleteFunc(p.handshaking, func(each *newcomer) bool { return each == oldest })
}

// settle removes a newcomer when its handshake has ended.
func (p *Proxy) settle(arrived *newcomer) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.handshaking = slices.DeleteFunc(p.handshaking, func(each *newcomer) bool { return each == arrived })
}

func (p *Proxy) enter() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.open == tlsConnections {
		return false
	}
	p.open++
	p.metrics.tlsConnections.Set(float64(p.open))
	return true
}

func (p *Proxy) leave() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.open--
	p.metrics.tlsConnections.Set(float64(p.open))
}

// refuse counts a refusal and logs some of them.
func (p *Proxy) refuse(conn net.Conn, err error) {
	p.metrics.tlsRefused.Inc()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.refused++
	if now := time.Now(); now.Sub(p.loggedAt) >= p.logEvery {
		p.log.Warn("refused a connection to the port for namespace servers", "from", addressOf(conn), "err", err, "refused", p.refused)
		p.refused, p.loggedAt = 0, now
	}
}

// relay copies both ways until one side ends.
func relay(a, b net.Conn) {
	var copies sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		copies.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // If one direction ends, close both.
			_ = a.Close()
			_ = b.Close()
		})
	}
	copies.Wait()
}

func addressOf(conn net.Conn) netip.Addr {
	port, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return port.Addr().Unmap().WithZone("")
}

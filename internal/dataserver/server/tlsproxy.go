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
)

const (
	// tlsConnections is how many namespace servers' connections there may be. Each namespace server has one.
	tlsConnections = 64
	// tlsHandshakes is how many may be proving who they are at the same time, and handshakeTimeout how long that may
	// take. What Go reads of a stranger before it judges him is bounded too, by 64 KiB, and 256 KiB of certificates.
	tlsHandshakes    = 32
	handshakeTimeout = 5 * time.Second
	// listTimeout bounds the listing of a share, and how long it waits for others.
	listTimeout = time.Minute
	// relayTimeout bounds the connection to ganesha.
	relayTimeout = 3 * time.Second
	// logRefusedEvery is how often refusals are logged: whoever is refused may try very often.
	logRefusedEvery = 10 * time.Second
)

// tlsKeepAlive ends the connection of a namespace server whose node is gone within half a minute.
var tlsKeepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// Proxy is the port for namespace servers. Who proves in the TLS handshake to be one is connected with ganesha, which
// trusts what comes from the instance manager's own address. It reads nothing of what goes to and fro but how it begins: a question for a
// share's directories (package listing) it answers itself.
type Proxy struct {
	config  atomic.Pointer[tls.Config]
	lists   atomic.Pointer[backend.Lister]
	ganesha func(ctx context.Context) (net.Conn, error)
	metrics *Metrics
	log     *slog.Logger
	// handshake is handshakeTimeout, but for tests.
	handshake time.Duration
	// logEvery is logRefusedEvery, but for tests.
	logEvery time.Duration

	// listing has one token: each listing is a client of the storage for as long as it takes.
	listing chan struct{}

	mutex sync.Mutex
	// shaking are the connections that have yet to prove themselves, the oldest first.
	shaking []*stranger
	// open is how many have.
	open int
	// refused are the refusals since loggedAt.
	refused  int
	loggedAt time.Time
}

// stranger is a connection that has yet to prove itself.
type stranger struct {
	net.Conn
	from netip.Addr
}

// NewProxy makes the port for namespace servers. It refuses everyone until Use; ganesha connects to ganesha from a trusted address.
func NewProxy(ganesha func(ctx context.Context) (net.Conn, error), metrics *Metrics, log *slog.Logger) *Proxy {
	return &Proxy{ganesha: ganesha, metrics: metrics, log: log, handshake: handshakeTimeout, logEvery: logRefusedEvery, listing: make(chan struct{}, 1)}
}

// LogRefusals has refusals logged at most once in that time. It is called before the proxy serves.
func (p *Proxy) LogRefusals(every time.Duration) { p.logEvery = every }

// Use makes the configuration count for connections from now on; with nil there can be none.
func (p *Proxy) Use(config *tls.Config) { p.config.Store(config) }

// Offer has the storage's directories told to namespace servers that ask for them.
func (p *Proxy) Offer(lister backend.Lister) { p.lists.Store(&lister) }

// Lister is what was offered, nil if nothing was.
func (p *Proxy) Lister() backend.Lister {
	if offered := p.lists.Load(); offered != nil {
		return *offered
	}
	return nil
}

// ListenAndServe serves on a TCP port until the context ends.
func (p *Proxy) ListenAndServe(ctx context.Context, port int) error {
	configured := net.ListenConfig{KeepAliveConfig: tlsKeepAlive}
	listener, err := configured.Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listening for namespace servers: %w", err)
	}
	return p.serve(ctx, listener)
}

// serve connects until the context ends.
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
			// Out of descriptors, or a connection that was reset before it was accepted.
			p.log.Warn("a connection to the TLS port was not accepted", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		relays.Go(func() {
			defer func() { _ = conn.Close() }()
			// What waits on the connection ends with the context.
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			if err := p.connect(ctx, conn); err != nil && ctx.Err() == nil {
				p.refuse(conn, err)
			}
		})
	}
}

// connect lets a namespace server speak with ganesha until either ends it. The error is why it was not let in.
func (p *Proxy) connect(ctx context.Context, conn net.Conn) error {
	secured, err := p.shakeHands(ctx, conn)
	if err != nil {
		return err
	}
	if !p.enter() {
		return fmt.Errorf("%d namespace servers are connected, and no more may be", tlsConnections)
	}
	defer p.leave()
	reader := bufio.NewReader(secured)
	asked, err := listing.Asked(reader)
	if err != nil {
		return nil // It went before it said anything.
	}
	if asked {
		_ = secured.SetDeadline(time.Now().Add(listTimeout + relayTimeout)) // Why it took too long is told.
		if err := listing.Answer(reader, secured, func(of listing.Request) ([]listing.Directory, error) { return p.List(ctx, of) }); err != nil {
			p.log.Debug("a namespace server that asked for a share's directories went before the answer", "err", err)
		}
		return nil
	}
	dialing, cancel := context.WithTimeout(ctx, relayTimeout)
	behind, err := p.ganesha(dialing)
	cancel()
	if err != nil {
		// It is being started again; the namespace server tries again, as after any lost connection.
		p.log.Debug("ganesha takes no connection for a namespace server", "err", err)
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

// List has one share after the other listed.
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
		return nil, errors.New("the data server is at other listings")
	}
	return lister.Directories(ctx, of.Share, of.Depth)
}

// shakeHands is nil unless the connection is a namespace server's.
func (p *Proxy) shakeHands(ctx context.Context, conn net.Conn) (*tls.Conn, error) {
	config := p.config.Load()
	if config == nil {
		return nil, errors.New("this data server has no certificate itself")
	}
	arrived := &stranger{Conn: conn, from: addressOf(conn)}
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

// arrive takes one more stranger. If there are too many, the place is that of the one who has waited longest among those of
// the address that has most: nobody keeps namespace servers out by connecting and saying nothing.
func (p *Proxy) arrive(arrived *stranger) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.shaking = append(p.shaking, arrived)
	if len(p.shaking) <= tlsHandshakes {
		return
	}
	count := map[netip.Addr]int{}
	for _, each := range p.shaking {
		count[each.from]++
	}
	victim := slices.MaxFunc(p.shaking, func(a, b *stranger) int { return count[a.from] - count[b.from] })
	_ = victim.Close()
	p.shaking = slices.DeleteFunc(p.shaking, func(each *stranger) bool { return each == victim })
}

func (p *Proxy) settle(arrived *stranger) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.shaking = slices.DeleteFunc(p.shaking, func(each *stranger) bool { return each == arrived })
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

// refuse counts a refusal, and tells of some.
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
			_, _ = io.Copy(way[0], way[1]) // Whichever way it ended, the other is told.
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

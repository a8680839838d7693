package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/howdah/howdah/internal/subnet"
)

// Config is what a Server needs. Only Handler is required.
type Config struct {
	Handler Handler
	Limits  Limits
	// Logger gets what clients do wrong at level Debug, refused connections at Warn.
	Logger *slog.Logger
	// Client is what an address counts as to limits: itself, or the network that it is one of. The default is subnet.Of.
	Client func(netip.Addr) netip.Addr
}

// Server answers RPC calls on the connections of a listener.
type Server struct {
	handler Handler
	limits  Limits
	log     *slog.Logger
	client  func(netip.Addr) netip.Addr
	// refused counts refused connections since the last warning, warned is when that was.
	refused atomic.Int64
	warned  atomic.Int64

	mu       sync.Mutex
	accounts map[netip.Addr]*account
	// What all clients hold together, and how many connections wait for their turn.
	connections, requests, buffered, replies, waiting int
	totals                                            Totals
}

// Stats are the numbers of the moment.
type Stats struct {
	Connections, Addresses int
	// Requests that are being executed.
	Requests int
	// BufferBytes are held for requests beyond their first 4 KiB, ReplyBytes for replies that clients have not taken.
	BufferBytes, ReplyBytes int
}

// Totals count connections since the start: those that were closed at once, because there were too many, and those
// that were closed for the sake of others.
type Totals struct{ Refused, Displaced int64 }

// NewServer makes a server; nothing runs before Serve.
func NewServer(config Config) *Server {
	limits := config.Limits.withDefaults()
	log := config.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if config.Client == nil {
		config.Client = subnet.Of
	}
	return &Server{
		handler:  config.Handler,
		limits:   limits,
		client:   config.Client,
		log:      log,
		accounts: map[netip.Addr]*account{},
	}
}

// Stats returns the numbers of the moment.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Connections: s.connections, Addresses: len(s.accounts), Requests: s.requests, BufferBytes: s.buffered, ReplyBytes: s.replies,
	}
}

// Totals returns what was counted since the start.
func (s *Server) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

// Clients is how many connections each client address has. Limits may count several of them as one (Config.Client).
func (s *Server) Clients() map[netip.Addr]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	clients := make(map[netip.Addr]int, len(s.accounts))
	for _, a := range s.accounts {
		for c := range a.connections {
			clients[c.address]++
		}
	}
	return clients
}

// Limits are those that the server works with.
func (s *Server) Limits() Limits { return s.limits }

// Serve answers until ctx ends: then it closes the listener, stops reading, lets requests in
// flight end within Limits.Drain, closes all connections and returns nil. It also closes the
// listener and the connections when it fails. It may be called for several listeners.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	return s.ServeDoor(ctx, "", listener)
}

// ServeDoor is Serve for a listener with a name, which the handler gets with each request (Caller.Door). Limits are for
// all listeners together.
func (s *Server) ServeDoor(ctx context.Context, door string, listener net.Listener) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	// Requests outlive ctx by the drain time: a directory that is being made must not
	// end half made because a pod is being replaced.
	requests, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	defer unwatch()
	go s.watch(watching)
	var connections sync.WaitGroup
	defer connections.Wait()
	defer stop()
	// Connections end after the listener is closed: who comes back at once must meet another server.
	stopping, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	context.AfterFunc(serving, func() {
		// The error of a second Close says nothing new.
		_ = listener.Close()
		end()
		timer := time.AfterFunc(s.limits.Drain, abort)
		context.AfterFunc(requests, func() { timer.Stop() })
	})
	backoff := 5 * time.Millisecond
	for {
		conn, err := listener.Accept()
		switch {
		case serving.Err() != nil:
			if conn != nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept connections: %w", err)
		case err != nil:
			// Out of descriptors, or a connection that was reset before it was accepted.
			s.log.Warn("A connection could not be accepted", "error", err, "retryAfter", backoff)
			select {
			case <-serving.Done():
			case <-time.After(backoff):
			}
			backoff = min(2*backoff, time.Second)
			continue
		}
		backoff = 5 * time.Millisecond
		address := clientAddress(conn)
		c := newConnection(s, conn, address, door)
		if !s.admit(c) {
			s.warnOfRefusal(address)
			_ = conn.Close()
			continue
		}
		connections.Go(func() {
			defer s.release(c)
			c.serve(stopping, requests)
		})
	}
}

// watch relieves the server of clients that do not read, until all connections have ended.
func (s *Server) watch(ctx context.Context) {
	ticker := time.NewTicker(s.limits.Stuck / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.relieve()
		}
	}
}

// warnOfRefusal writes one line a second at most: whoever is refused may try very often.
func (s *Server) warnOfRefusal(address netip.Addr) {
	s.refused.Add(1)
	now, last := time.Now().UnixNano(), s.warned.Load()
	if now-last >= int64(time.Second) && s.warned.CompareAndSwap(last, now) {
		s.log.Warn("Connections were refused: too many are open", "lastClient", address, "refused", s.refused.Swap(0))
	}
}

func (s *Server) release(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(c)
}

// clientPort is the port that a connection comes from; 0 if it has none.
func clientPort(conn net.Conn) uint16 {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return 0
	}
	return from.Port()
}

func clientAddress(conn net.Conn) netip.Addr {
	port, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return port.Addr().Unmap().WithZone("")
}

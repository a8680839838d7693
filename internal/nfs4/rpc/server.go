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
)

// Config is what a Server needs. Only Handler is required.
type Config struct {
	Handler Handler
	Limits  Limits
	// Logger gets what clients do wrong at level Debug, refused connections at Warn.
	Logger *slog.Logger
}

// Server answers RPC calls on the connections of a listener.
type Server struct {
	handler  Handler
	limits   Limits
	log      *slog.Logger
	requests chan struct{}
	inFlight atomic.Int64
	buffered atomic.Int64
	// refused counts refused connections since the last warning, warned is when that was.
	refused atomic.Int64
	warned  atomic.Int64

	mu         sync.Mutex
	total      int
	perAddress map[netip.Addr]int
}

// Stats are the numbers of the moment.
type Stats struct {
	Connections, Addresses int
	// Requests in flight.
	Requests int
	// BufferBytes are held for requests beyond their first 4 KiB.
	BufferBytes int
}

// NewServer makes a server; nothing runs before Serve.
func NewServer(config Config) *Server {
	limits := config.Limits.withDefaults()
	log := config.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Server{
		handler:    config.Handler,
		limits:     limits,
		log:        log,
		requests:   make(chan struct{}, limits.Requests),
		perAddress: map[netip.Addr]int{},
	}
}

// Stats returns the numbers of the moment.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Connections: s.total, Addresses: len(s.perAddress), Requests: int(s.inFlight.Load()), BufferBytes: int(s.buffered.Load())}
}

// Serve answers until ctx ends: then it closes the listener, stops reading, lets requests in
// flight end within Limits.Drain, closes all connections and returns nil. It also closes the
// listener and the connections when it fails. It may be called for several listeners.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	// Requests outlive ctx by the drain time: a directory that is being made must not
	// end half made because a pod is being replaced.
	requests, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	var connections sync.WaitGroup
	defer connections.Wait()
	defer stop()
	context.AfterFunc(serving, func() {
		// The error of a second Close says nothing new.
		_ = listener.Close()
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
		if !s.admit(address) {
			s.warnOfRefusal(address)
			_ = conn.Close()
			continue
		}
		connections.Go(func() {
			defer s.release(address)
			newConnection(s, conn, address).serve(serving, requests)
		})
	}
}

func (s *Server) admit(address netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= s.limits.Connections || s.perAddress[address] >= s.limits.ConnectionsPerAddress {
		return false
	}
	s.total++
	s.perAddress[address]++
	return true
}

// warnOfRefusal writes one line a second at most: whoever is refused may try very often.
func (s *Server) warnOfRefusal(address netip.Addr) {
	s.refused.Add(1)
	now, last := time.Now().UnixNano(), s.warned.Load()
	if now-last >= int64(time.Second) && s.warned.CompareAndSwap(last, now) {
		s.log.Warn("Connections were refused: too many are open", "lastClient", address, "refused", s.refused.Swap(0))
	}
}

func (s *Server) release(address netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.perAddress[address]--; s.perAddress[address] == 0 {
		delete(s.perAddress, address)
	}
}

// reserve takes bytes of the common buffer memory, if there are so many.
func (s *Server) reserve(bytes int) bool {
	if s.buffered.Add(int64(bytes)) > int64(s.limits.BufferBytes) {
		s.buffered.Add(-int64(bytes))
		return false
	}
	return true
}

func clientAddress(conn net.Conn) netip.Addr {
	port, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return port.Addr().Unmap().WithZone("")
}

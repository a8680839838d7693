package publichttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const (
	// requestTimeout limits the time to read a request's head and body, which have some hundred bytes.
	requestTimeout = 3 * time.Second
	// AnswerTimeout limits the time to make and send an answer. A handler that needs longer sets it (http.ResponseController).
	AnswerTimeout = 10 * time.Second
	// maxHeaderBytes limits a request's head, maxBodyBytes its body, which no request here needs.
	maxHeaderBytes = 8 << 10
	maxBodyBytes   = 1 << 10
	// bufferBytes is the kernel's send buffer of a connection, which matters for slow readers.
	bufferBytes = 64 << 10
)

// Server answers requests within the limits of this package.
type Server struct {
	Handler http.Handler
	// Reserved reports whether an address has reserved connections: the addresses of the pod's node, from which the kubelet's
	// probes come. Loopback addresses always have; nil means only these.
	Reserved func(netip.Addr) bool
	// Log gets net/http's messages about connections at level debug. Required.
	Log *slog.Logger
}

// ListenAndServe serves at a TCP address until the context ends. It returns an error if it can't listen or serve.
func (s *Server) ListenAndServe(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for probes and metrics: %w", err)
	}
	return s.Serve(ctx, listener)
}

// Serve serves until the context ends, and closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, newGate(listener, func(address netip.Addr) bool {
		return address.IsLoopback() || s.Reserved != nil && s.Reserved(address)
	}))
}

func (s *Server) serve(ctx context.Context, gate *gate) error {
	server := &http.Server{
		Handler:           http.MaxBytesHandler(s.Handler, maxBodyBytes),
		ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: AnswerTimeout, IdleTimeout: requestTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	// One request for each connection: requests are rare, and idle connections would use up the limits.
	server.SetKeepAlivesEnabled(false)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(gate); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answer probes and give metrics: %w", err)
	}
	return nil
}

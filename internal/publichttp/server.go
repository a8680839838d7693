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
	// requestTimeout is for a request's head and body: nobody sends more than some hundred bytes.
	requestTimeout = 3 * time.Second
	// AnswerTimeout is for making and sending an answer. A handler that needs longer says so (http.ResponseController).
	AnswerTimeout = 10 * time.Second
	// maxHeaderBytes is for a request's head, maxBodyBytes for its body, which no request here needs.
	maxHeaderBytes = 8 << 10
	maxBodyBytes   = 1 << 10
	// bufferBytes is what the kernel keeps of an answer that is read slowly, for each connection.
	bufferBytes = 64 << 10
)

// Server answers requests within the limits of this package.
type Server struct {
	Handler http.Handler
	// Reserved tells which addresses have places of their own, which no other address takes: those of the pod's own node, from which the
	// kubelet's probes come. Loopback addresses always do; nil means no more than these.
	Reserved func(netip.Addr) bool
	// Log gets what net/http says of connections, as debug. Required.
	Log *slog.Logger
}

// ListenAndServe answers at an address of TCP until the context ends. The error is why it can't, or can't any longer.
func (s *Server) ListenAndServe(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for probes and metrics: %w", err)
	}
	return s.Serve(ctx, listener)
}

// Serve answers until the context ends, and closes the listener.
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
	// A connection for each request: nobody asks often, and so no one keeps a place for nothing.
	server.SetKeepAlivesEnabled(false)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(gate); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answer probes and give metrics: %w", err)
	}
	return nil
}

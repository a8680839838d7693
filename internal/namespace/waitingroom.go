package namespace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// waitingTime is how long a connection waits, and the most that it adds to the pause of a client with one connection. Each leaves an entry in the
	// connection tracking of the client's node for 10 s, and is work for both ends: a shorter time is worth little.
	waitingTime = 500 * time.Millisecond
	// waitingBuffer bounds what a client can send meanwhile, in bytes; the kernel doubles it. It is not read.
	waitingBuffer = 4 << 10
	// acceptAgain is the pause after a connection could not be accepted, for want of file descriptors, say.
	acceptAgain = 100 * time.Millisecond
)

// waitingRoom is where the Services of data servers lead to while these have no pod (docs/design/2026-11-22-waiting-room.md). Connections are
// let in, get no answer, and are reset after a while; their clients connect again at once, by then maybe to the next pod. Linux' client, refused, would
// come back after 3 s, 6 s, 12 s and so on (xprt_reconnect_backoff). It is a reset: after an orderly end it may wait, too.
type waitingRoom struct {
	// stay is how long each waits, places how many do at a time. More wait in the kernel's queue: reset at once they would be back at once.
	stay    time.Duration
	places  int
	entered func()
	log     *slog.Logger
}

// waiting is one who waits.
type waiting struct {
	connection net.Conn
	until      time.Time
}

// waitingRoom lets clients of data servers wait until the context ends. Without it a namespace server serves all the same.
func (s *server) waitingRoom(ctx context.Context) {
	if s.WaitingRoom == "" {
		return
	}
	listener, err := listenForWaiting(ctx, s.WaitingRoom)
	if err != nil {
		s.Log.Error("clients of data servers without a pod are refused, and come back seconds later", "err", err)
		return
	}
	room := &waitingRoom{stay: waitingTime, places: s.RPC.Connections, entered: s.metrics.waiting.Inc, log: s.Log}
	room.serve(ctx, listener)
}

func listenForWaiting(ctx context.Context, address string) (net.Listener, error) {
	small := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		// Connections inherit it.
		if err := raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, waitingBuffer) }); err != nil {
			return err
		}
		return failed
	}}
	listener, err := small.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for clients of data servers without a pod: %w", err)
	}
	return listener, nil
}

// serve lets connections in until the context ends; then all are reset, and it returns.
func (w *waitingRoom) serve(ctx context.Context, listener net.Listener) {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	queue, places := make(chan waiting, w.places), make(chan struct{}, w.places)
	dismissed := make(chan struct{})
	go func() {
		defer close(dismissed)
		for next := range queue { // All wait as long, so who came first goes first.
			pause(ctx, time.Until(next.until))
			reset(next.connection)
			<-places
		}
	}()
	for ctx.Err() == nil {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		connection, err := listener.Accept()
		if err != nil {
			<-places
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				w.log.Warn("a client of a data server without a pod was not let in", "err", err)
			}
			pause(ctx, acceptAgain)
			continue
		}
		w.entered()
		queue <- waiting{connection, time.Now().Add(w.stay)}
	}
	close(queue)
	<-dismissed
}

// pause ends early with the context.
func pause(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// reset ends a connection with RST.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Fails only if it is closed.
	}
	_ = connection.Close()
}

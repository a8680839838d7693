package namespace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// waitingTime is how long a connection waits while no data server comes, and the most that it adds to a client's pause if no report of one comes.
	// Each leaves an entry in the connection tracking of the client's node for 10 s, which leads the next connection from the same port back here. Linux
	// takes one of some 400 ports at random, and with nconnect=16 takes many when the data server is back.
	waitingTime = 2 * time.Second
	// comingTime is how long a connection waits for comingFor after a data server has reported that it comes: new connections are led to it any moment now.
	// A shorter time would pass for the answer of a data server (client.Knock).
	comingTime = 500 * time.Millisecond
	comingFor  = 5 * time.Second
	// leadTime is how long connections that have waited already stay then, so that the next connection is led to the data server.
	leadTime = 250 * time.Millisecond
	// waitingBuffer bounds what a client can send meanwhile, in bytes; the kernel doubles it. It is not read.
	waitingBuffer = 4 << 10
	// acceptAgain is the pause after a connection could not be accepted, for want of file descriptors, say.
	acceptAgain = 100 * time.Millisecond
)

// waitingRoom is where the Services of data servers lead to while these have no pod (docs/design/2026-11-22-waiting-room.md). Connections are
// let in, get no answer, and are reset after a while; their clients connect again at once, by then maybe to the next pod. Linux' client, refused, would
// come back after 3 s (call_connect_status), or later and later where it keeps its ports, as with NFS 4.0 (xprt_reconnect_backoff). It is a
// reset: after an orderly end it may wait, too.
type waitingRoom struct {
	// stay is how long each waits while no data server comes, places how many do at a time. More wait in the kernel's queue: reset at once they would be
	// back at once.
	stay    time.Duration
	places  int
	entered func()
	log     *slog.Logger

	// news has a token when a data server comes.
	news  chan struct{}
	mutex sync.Mutex
	// came is when a data server last reported that it comes.
	came time.Time
}

func newWaitingRoom(stay time.Duration, places int, entered func(), log *slog.Logger) *waitingRoom {
	return &waitingRoom{stay: stay, places: places, entered: entered, log: log, news: make(chan struct{}, 1)}
}

// waiting is one who waits.
type waiting struct {
	connection net.Conn
	since      time.Time
}

// serverComes has all who wait try again soon: a data server has reported that it starts. It does not block.
func (w *waitingRoom) serverComes() {
	w.mutex.Lock()
	w.came = time.Now()
	w.mutex.Unlock()
	select {
	case w.news <- struct{}{}:
	default: // The one before was not read yet.
	}
}

// until is when one who waits since a moment is reset, as far as is known. Who came first goes first.
func (w *waitingRoom) until(since time.Time) time.Time {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	until := since.Add(w.stay)
	if w.came.IsZero() || since.After(w.came.Add(comingFor)) {
		return until
	}
	soon := since.Add(comingTime)
	if lead := w.came.Add(leadTime); lead.After(soon) {
		soon = lead
	}
	if soon.Before(until) {
		return soon
	}
	return until
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
	s.room.serve(ctx, listener)
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
		for next := range queue {
			w.await(ctx, next)
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
		queue <- waiting{connection, time.Now()}
	}
	close(queue)
	<-dismissed
}

// await returns when one who waits is to be reset, or with the context.
func (w *waitingRoom) await(ctx context.Context, who waiting) {
	for {
		left := time.Until(w.until(who.since))
		if left <= 0 || ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-w.news:
		case <-ctx.Done():
		}
		timer.Stop()
	}
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

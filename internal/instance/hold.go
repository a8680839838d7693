package instance

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// portHolder listens on ganesha's port while ganesha does not. Nobody is accepted: connections wait in the kernel, and when the holder lets go
// they are reset, and their clients connect again at once. A client that is refused instead tries again after 3 s, 6 s, 12 s and so on (Linux:
// xprt_reconnect_backoff), so that pauses are 3, 9 or 21 s long, whatever ganesha takes (9.7 and 21.9 s were measured). Once the pod is gone they
// wait with the namespace servers (v1alpha1.WaitingRoomPort).
type portHolder struct {
	// port is ganesha's; 0: nothing is held.
	port  uint16
	mutex sync.Mutex
	held  net.Listener
}

// hold begins to listen, unless it does. Ganesha can listen beside it, by what internal/ganesha/handles does to its socket. It takes no context:
// clients wait also while everything ends.
func (h *portHolder) hold() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.port == 0 || h.held != nil {
		return nil
	}
	shared := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		if err := raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }); err != nil {
			return err
		}
		return failed
	}}
	held, err := shared.Listen(context.Background(), "tcp", net.JoinHostPort("", strconv.Itoa(int(h.port))))
	if err != nil {
		return fmt.Errorf("listening in ganesha's place: %w", err)
	}
	h.held = held
	return nil
}

// release lets go.
func (h *portHolder) release() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.held != nil {
		_ = h.held.Close() // Fails only if it is closed.
		h.held = nil
	}
}

// environment tells ganesha's library which port is shared.
func (h *portHolder) environment() string { return "HOWDAH_HELD_PORT=" + strconv.Itoa(int(h.port)) }

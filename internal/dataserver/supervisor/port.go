package supervisor

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// heldSocket is the port holder's socket in ganesha: the first descriptor after the standard ones.
const heldSocket = 3

// portHolder has the socket that ganesha listens on, from before ganesha's first start to the end of the process. Ganesha inherits it instead of
// opening its own (internal/ganesha/build/patches/0407-inherited-socket.patch). So connections wait in the kernel while no ganesha runs, and the
// next one accepts them. A client that is refused tries again only after 3 s, 6 s, 12 s and so on (Linux: xprt_reconnect_backoff), however soon
// ganesha is back (9.7 and 21.9 s were measured). Clients would be refused, too, if this process opened the port only after ganesha's end. When
// the pod is gone, they wait with the namespace servers (v1alpha1.WaitingRoomPort).
type portHolder struct {
	// port is ganesha's; 0: nothing is held.
	port  uint16
	mutex sync.Mutex
	held  *os.File
}

// Hold starts to listen, unless it does already. It takes no context: clients wait also while the process stops.
func (h *portHolder) Hold() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.port == 0 || h.held != nil {
		return nil
	}
	held, err := listenFor(h.port)
	if err != nil {
		return fmt.Errorf("listening in ganesha's place: %w", err)
	}
	h.held = held
	return nil
}

// listenFor returns a listening socket that Go's runtime does not manage.
func listenFor(port uint16) (*os.File, error) {
	var configured net.ListenConfig
	listener, err := configured.Listen(context.Background(), "tcp", net.JoinHostPort("", strconv.Itoa(int(port))))
	if err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }() // The copy goes on listening.
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	// Ganesha's accept must block: ntirpc (svc_vc.c) treats any error but EINTR as the end of the socket.
	if err := syscall.SetNonblock(int(socket.Fd()), false); err != nil {
		_ = socket.Close()
		return nil, err
	}
	return socket, nil
}

// Release closes the socket; connections that wait are reset.
func (h *portHolder) Release() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.held != nil {
		_ = h.held.Close() // Fails only if it is closed.
		h.held = nil
	}
}

// lend is what ganesha must inherit to listen on the held socket: files from heldSocket on, and an environment.
func (h *portHolder) lend() (files []*os.File, environment []string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.held == nil {
		return nil, nil
	}
	return []*os.File{h.held}, []string{"HOWDAH_HELD_PORT=" + strconv.Itoa(int(h.port)), "HOWDAH_HELD_SOCKET=" + strconv.Itoa(heldSocket)}
}

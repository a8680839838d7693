package instance

import (
	"errors"
	"io"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func TestWhoConnectsWhileGaneshaIsAwayWaitsAndIsThenReset(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	mustWork(t, "find a port", err)
	port := free.Addr().(*net.TCPAddr).Port
	mustWork(t, "free it", free.Close())
	h, address := &portHolder{port: uint16(port)}, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for range 2 { // Also for a start that follows one that failed.
		mustWork(t, "hold", h.hold())
	}
	defer h.release()
	waiting, err := net.Dial("tcp", address)
	mustWork(t, "connect", err)
	defer func() { _ = waiting.Close() }()
	// Ganesha listens beside it.
	ganeshas := &portHolder{port: uint16(port)}
	mustWork(t, "listen as ganesha does", ganeshas.hold())
	defer ganeshas.release()
	h.release()
	_ = waiting.SetReadDeadline(time.Now().Add(patience)) // It is open.
	if _, err := waiting.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("it waits on: %v", err)
	}
	again, err := net.Dial("tcp", address)
	mustWork(t, "connect to ganesha", err)
	_ = again.Close() // It is open.
	mustWork(t, "hold nothing", (&portHolder{}).hold())
}

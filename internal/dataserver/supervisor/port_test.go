package supervisor

import (
	"errors"
	"io"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// holdSomePort holds a port that was free. What is free may be taken before it is held, so it tries again.
func holdSomePort(t *testing.T) (h *portHolder, address string) {
	t.Helper()
	for {
		free, err := net.Listen("tcp", ":0")
		mustWork(t, "find a port", err)
		port := free.Addr().(*net.TCPAddr).Port
		mustWork(t, "free it", free.Close())
		h = &portHolder{port: uint16(port)}
		if err = h.Hold(); errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		mustWork(t, "hold", err)
		t.Cleanup(h.Release)
		return h, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
}

func TestWhoConnectsWhileGaneshaIsAwayIsServedByTheNextOne(t *testing.T) {
	h, address := holdSomePort(t)
	for range 2 { // Also for a start that follows another.
		mustWork(t, "hold", h.Hold())
	}
	for range 2 { // One ganesha after the other.
		waiting, err := net.Dial("tcp", address)
		mustWork(t, "connect while no ganesha accepts", err)
		_, err = waiting.Write([]byte("call"))
		mustWork(t, "send", err)
		files, environment := h.lend()
		if len(files) != 1 || len(environment) != 2 {
			t.Fatalf("it lends %v, %v", files, environment)
		}
		ganeshas, err := net.FileListener(files[0])
		mustWork(t, "inherit", err)
		served, err := ganeshas.Accept()
		mustWork(t, "accept", err)
		call := make([]byte, 4)
		if _, err := io.ReadFull(served, call); err != nil || string(call) != "call" {
			t.Errorf("it was sent %q, %v", call, err)
		}
		mustWork(t, "end as ganesha does", errors.Join(served.Close(), ganeshas.Close(), waiting.Close()))
	}
	waiting, err := net.Dial("tcp", address)
	mustWork(t, "connect", err)
	defer func() { _ = waiting.Close() }()
	h.Release()
	_ = waiting.SetReadDeadline(time.Now().Add(timeout)) // It is open.
	if _, err := waiting.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("it waits on: %v", err)
	}
	nothing := &portHolder{}
	mustWork(t, "hold nothing", nothing.Hold())
	if files, environment := nothing.lend(); files != nil || environment != nil {
		t.Errorf("nothing is lent as %v, %v", files, environment)
	}
}

package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/howdah/howdah/internal/nfs4/client"
)

// knockAtOnce knocks on a server that acts at once. In the bubble no time passes while it waits for the network: however slow the machine is, what
// the server does at once counts as that.
func knockAtOnce(t *testing.T, addr string) (err error) {
	synctest.Test(t, func(t *testing.T) { err = client.Knock(t.Context(), addr) })
	return err
}

// A server that ends connections is there, one that answers nothing may hang, and one that takes no connection is not there.
func TestKnock(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan bool, 1)
	ends <- true
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			select {
			case <-ends:
				_ = conn.Close()
			default:
				defer func() { _ = conn.Close() }()
			}
		}
	}()
	addr := listener.Addr().String()
	if err := knockAtOnce(t, addr); err != nil {
		t.Errorf("a server that ends the connection: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if client.Knock(ctx, addr) == nil {
		t.Error("a server that does not answer is taken for one that does")
	}
	_ = listener.Close()
	if client.Knock(t.Context(), addr) == nil {
		t.Error("a port that is closed is taken for a server")
	}
	if err := client.Knock(t.Context(), serve(t, newTree(), "127.0.0.1:0").addr); err != nil {
		t.Error(err)
	}
}

// endsBeforeCall is a connection that its reader finds ended, and closes, before the call is sent.
type endsBeforeCall struct {
	net.Conn
	closed chan struct{}
}

func (c *endsBeforeCall) Read([]byte) (int, error) { return 0, io.EOF }

func (c *endsBeforeCall) Close() error {
	close(c.closed)
	return nil
}

func (c *endsBeforeCall) SetWriteDeadline(time.Time) error {
	<-c.closed
	return net.ErrClosed
}

func TestCallOnAnEndedConnectionHasTheReasonOfTheEnd(t *testing.T) {
	err := client.NullVia(t.Context(), "server", func(context.Context, string) (net.Conn, error) {
		return &endsBeforeCall{closed: make(chan struct{})}, nil
	})
	if !errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		t.Errorf("%v; want the end that the reader saw", err)
	}
}

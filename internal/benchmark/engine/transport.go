package engine

import (
	"context"
	"net"
	"strconv"
)

// transport connects the clients of a run.
type transport interface {
	// listen returns the coordinator's listener and the address for other clients.
	listen() (net.Listener, string, error)
	dial(ctx context.Context, address string) (net.Conn, error)
}

// tcp is the transport of every run outside of tests.
type tcp struct {
	host string
	port int
}

func (t tcp) listen() (net.Listener, string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(t.port)))
	if err != nil {
		return nil, "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return listener, net.JoinHostPort(t.host, port), err
}

func (tcp) dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, "tcp", address)
}

package engine

import (
	"context"
	"net"
	"strconv"
)

// transport is how the clients of a run reach one another.
type transport interface {
	// listen gives the coordinator's listener and the address that others reach it at.
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

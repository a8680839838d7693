package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// probeOwner is the same for all probes of a process: the server replaces the unconfirmed
// record of the last one, and drops the last of all by itself (RFC 8881 section 18.35.4).
var (
	probeVerifier = randomVerifier()
	probeOwner    = fmt.Sprintf("howdah-probe-%x", probeVerifier)
)

// Null calls the procedure NULL: the server is alive, no more.
func Null(ctx context.Context, addr string) error { return NullVia(ctx, addr, dialTCP) }

// NullVia is Null over a connection that the function makes.
func NullVia(ctx context.Context, addr string, connect func(context.Context, string) (net.Conn, error)) error {
	l, err := dial(ctx, connect, addr)
	if err != nil {
		return err
	}
	defer l.fail(ErrClosed)
	if _, err := l.call(ctx, procedureNull, Credentials{}, nil); err != nil {
		return fmt.Errorf("call NULL on %s: %w", addr, err)
	}
	return nil
}

// Knock tells whether a server takes connections: it answers NULL, or it ends the connection, as data servers do with addresses
// that none of their exports lets in. One that hangs does neither.
func Knock(ctx context.Context, addr string) error {
	err := Null(ctx, addr)
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, ended) {
			return nil
		}
	}
	return err
}

// Identify asks a server what it calls itself, also during its grace period. It leaves no client behind.
func Identify(ctx context.Context, addr string) (Identity, error) {
	return IdentifyVia(ctx, addr, dialTCP)
}

// IdentifyVia is Identify over a connection that the function makes.
func IdentifyVia(ctx context.Context, addr string, connect func(context.Context, string) (net.Conn, error)) (Identity, error) {
	l, err := dial(ctx, connect, addr)
	if err != nil {
		return Identity{}, err
	}
	defer l.fail(ErrClosed)
	id, err := exchangeID(ctx, l, Credentials{}, probeOwner, probeVerifier)
	if err != nil {
		return Identity{}, fmt.Errorf("identify the NFS server %s: %w", addr, err)
	}
	return Identity{Owner: string(id.EirServerOwner.SoMajorId), Scope: string(id.EirServerScope)}, nil
}

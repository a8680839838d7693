package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
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

// atOnce is how soon a server that does not let an address in ends its connection. The waiting room of a namespace server, where the
// address of a data server leads while it has no pod, resets later: after half a second.
const atOnce = 400 * time.Millisecond

// Knock tells whether a server takes connections: it answers NULL, or it ends the connection at once, as data servers do with addresses
// that none of their exports lets in. One that hangs does neither, nor does a waiting room.
func Knock(ctx context.Context, addr string) error {
	began := time.Now() // Before it connects: on a busy machine this process may hear of the connection long after the other end.
	err := Null(ctx, addr)
	if err == nil || errors.Is(err, io.EOF) {
		return nil // An end in order: a waiting room resets.
	}
	// A reset that comes before this process sees the connection is an error of connect(2), and counts as well.
	for _, ended := range []error{io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, ended) && time.Since(began) < atOnce {
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

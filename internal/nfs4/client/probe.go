package client

import (
	"context"
	"fmt"
)

// probeOwner is the same for all probes of a process: the server replaces the unconfirmed
// record of the last one, and drops the last of all by itself (RFC 8881 section 18.35.4).
var (
	probeVerifier = randomVerifier()
	probeOwner    = fmt.Sprintf("howdah-probe-%x", probeVerifier)
)

// Null calls the procedure NULL: the server is alive, no more.
func Null(ctx context.Context, addr string) error {
	l, err := dial(ctx, dialTCP, addr)
	if err != nil {
		return err
	}
	defer l.fail(ErrClosed)
	if _, err := l.call(ctx, procedureNull, Credentials{}, nil); err != nil {
		return fmt.Errorf("call NULL on %s: %w", addr, err)
	}
	return nil
}

// Identify asks a server what it calls itself, also during its grace period. It leaves no client behind.
func Identify(ctx context.Context, addr string) (Identity, error) {
	l, err := dial(ctx, dialTCP, addr)
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

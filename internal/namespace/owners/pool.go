package owners

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/listing"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// dialTimeout bounds the making of a session with a data server.
const dialTimeout = 5 * time.Second

// callTimeout bounds one operation with all its retries, so that a change ends well before
// the client that asked for it gives up.
const callTimeout = 8 * time.Second

// listTimeout bounds the listing of a share: longer than the data server gives itself.
const listTimeout = 70 * time.Second

// Pool has a session with every data server that was asked for, made when it is first needed. It
// implements directories.Owners.
type Pool struct {
	// clientOwner names this namespace server to the data servers.
	clientOwner string
	log         *slog.Logger
	dial        Dial
	// identity tells what the data server at an address calls itself; "" if that is not known.
	identity func(address string) string

	mu      sync.Mutex
	clients map[string]*lazy
	closed  bool
}

// lazy is a client that is dialled once at a time.
type lazy struct {
	// lock guards the client; a channel, so that waiting for it ends with a context.
	lock   chan struct{}
	client *nfs.Client
}

func (l *lazy) acquire(ctx context.Context) error {
	select {
	case l.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lazy) release() { <-l.lock }

// NewPool makes a pool without sessions. It speaks with no server that calls itself otherwise than identity
// says of its address ("" for any): what another one does not have proves nothing.
func NewPool(clientOwner string, identity func(address string) string, dial Dial, log *slog.Logger) *Pool {
	return &Pool{clientOwner: clientOwner, identity: identity, dial: dial, log: log, clients: map[string]*lazy{}}
}

var (
	errClosed = errors.New("this namespace server is stopping")
	errGone   = errors.New("no data server has this address any more")
)

// client is the session with a data server. Who waits while another one makes it waits no longer than for that.
func (p *Pool) client(ctx context.Context, address string) (*nfs.Client, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	l := p.clients[address]
	if l == nil {
		l = &lazy{lock: make(chan struct{}, 1)}
		p.clients[address] = l
	}
	p.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := l.acquire(ctx); err != nil {
		return nil, fmt.Errorf("reach data server %s: %w", address, err)
	}
	defer l.release()
	if l.client != nil {
		return l.client, nil
	}
	c, err := nfs.Dial(ctx, address, nfs.Options{
		ClientOwner: p.clientOwner, CallTimeout: callTimeout, Logger: p.log,
		ServerOwner: func() string { return p.identity(address) }, Dial: p.dial,
	})
	if err != nil {
		return nil, fmt.Errorf("reach data server %s: %w", address, err)
	}
	if !p.has(address, l) {
		// Nothing would end it.
		return nil, fmt.Errorf("reach data server %s: %w", address, errors.Join(errGone, c.Close(ctx)))
	}
	l.client = c
	return c, nil
}

// has reports whether sessions with an address are still this one.
func (p *Pool) has(address string, l *lazy) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clients[address] == l
}

// Keep ends the sessions with data servers that are not among the addresses any more.
func (p *Pool) Keep(ctx context.Context, addresses map[string]bool) {
	p.mu.Lock()
	var gone []*lazy
	for address, l := range p.clients {
		if !addresses[address] {
			gone = append(gone, l)
			delete(p.clients, address)
		}
	}
	p.mu.Unlock()
	p.end(ctx, gone)
}

// Close ends all sessions, so that data servers need not wait for this client in their next grace period.
func (p *Pool) Close(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Keep(ctx, nil)
}

func (p *Pool) end(ctx context.Context, gone []*lazy) {
	var ends sync.WaitGroup
	for _, l := range gone {
		ends.Go(func() {
			// If one is being made meanwhile, it is ended there.
			if l.acquire(ctx) != nil {
				return
			}
			defer l.release()
			if l.client == nil {
				return
			}
			if err := l.client.Close(ctx); err != nil {
				p.log.Debug("a session with a data server did not end well", "error", err)
			}
		})
	}
	ends.Wait()
}

// Mkdir makes a directory.
func (p *Pool) Mkdir(ctx context.Context, address, path string, creds nfs.Credentials, opts nfs.MkdirOptions) error {
	c, err := p.client(ctx, address)
	if err != nil {
		return err
	}
	return explainMissingExport(c.Mkdir(ctx, creds, path, opts))
}

// Rmdir removes an empty directory.
func (p *Pool) Rmdir(ctx context.Context, address, path string, creds nfs.Credentials) error {
	c, err := p.client(ctx, address)
	if err != nil {
		return err
	}
	return explainMissingExport(c.Rmdir(ctx, creds, path))
}

// Rename renames a directory.
func (p *Pool) Rename(ctx context.Context, address, from, to string, creds nfs.Credentials) error {
	c, err := p.client(ctx, address)
	if err != nil {
		return err
	}
	return explainMissingExport(c.Rename(ctx, creds, from, to))
}

// SetAttributes sets attributes of a path.
func (p *Pool) SetAttributes(ctx context.Context, address, path string, creds nfs.Credentials, settings nfs.Settings) error {
	c, err := p.client(ctx, address)
	if err != nil {
		return err
	}
	return explainMissingExport(c.SetAttributes(ctx, creds, path, settings))
}

// Stat looks at a path.
func (p *Pool) Stat(ctx context.Context, address, path string, creds nfs.Credentials) (nfs.Attributes, error) {
	c, err := p.client(ctx, address)
	if err != nil {
		return nfs.Attributes{}, err
	}
	attributes, err := c.Stat(ctx, creds, path)
	return attributes, explainMissingExport(err)
}

// Entries gives the entries of a directory one by one until yield returns false.
func (p *Pool) Entries(ctx context.Context, address, path string, creds nfs.Credentials, yield func(nfs.DirEntry) bool) error {
	c, err := p.client(ctx, address)
	if err != nil {
		return err
	}
	return explainMissingExport(c.Entries(ctx, creds, path, yield))
}

// Directories are those of a share, down to a depth, as the data server tells them past its NFS service; listing.ErrNotOffered if it does not.
func (p *Pool) Directories(ctx context.Context, address, share string, depth int32) ([]listing.Directory, error) {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := p.dial(dialing, address)
	if err != nil {
		return nil, fmt.Errorf("reach data server %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }()
	ctx, finish := context.WithTimeout(ctx, listTimeout)
	defer finish()
	return listing.Ask(ctx, conn, listing.Request{Share: share, Depth: depth})
}

// explainMissingExport makes the answer that an export is not there into one about the server. NFS4ERR_NOENT means as well that the export
// is not served (yet, or not to this client), and then it tells nothing about what is in it.
func explainMissingExport(err error) error {
	var status *nfs.StatusError
	if errors.As(err, &status) && status.Status == nfsv4.NFS4ERR_NOENT && !insideExport(status.Path) {
		return fmt.Errorf("the data server does not show the export: %s of %q was answered with %s",
			status.Op, status.Path, nfs.StatusName(status.Status))
	}
	return err
}

// insideExport is true for a path below an export's root, which has two elements (naming.ExportPseudo).
func insideExport(path string) bool { return strings.Count(path, "/") > 2 }

// Null asks a data server whether it is alive. It asks at the port of clients, as this is about whether they can be sent there, and
// no certificate is needed for it. A namespace server's address is in no access rule as a rule, so the answer is the end of the connection.
func (p *Pool) Null(ctx context.Context, address string) error {
	return nfs.Knock(ctx, endpoint(address, v1alpha1.NFSPort))
}

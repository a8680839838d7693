package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
)

// Options are those of Dial.
type Options struct {
	// ClientOwner names this client to the server (RFC 8881 section 2.4): unique among all
	// clients, and the same again after a restart if possible, because the server then
	// replaces the old record at once. Required.
	ClientOwner string
	// Machine are the credentials of calls about the session itself; default root.
	Machine Credentials
	// Slots is how many calls run at the same time, if the server grants them; default 32.
	Slots uint32
	// CallTimeout bounds every call with all its retries, also when its context has no
	// deadline; default 30 s.
	CallTimeout time.Duration
	// Renew is how often the session is used when nothing else does; default a third of
	// the server's lease.
	Renew  time.Duration
	Logger *slog.Logger
	// ServerOwner gives what the server must call itself (RFC 8881 section 2.10.4), read for each session; "" or
	// no function: whatever. Behind an address may be another server than a moment ago.
	ServerOwner func() string
	// Dial makes a connection; default plain TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// Client is a session with one server, for any number of goroutines. It connects again and
// makes new sessions by itself. An operation is sent again until its reply is there or the time is
// over, and has one effect as long as the session lives; see StatusError.Retried for
// the case when the server forgets the session meanwhile.
type Client struct {
	addr     string
	options  Options
	log      *slog.Logger
	verifier [8]byte
	stop     context.CancelFunc
	renewing sync.WaitGroup

	// lock guards the rest; a channel, so that waiting for it ends with a context.
	lock    chan struct{}
	closed  bool
	link    *link
	id      *nfsv4.ExchangeId4resok
	session *session
}

// ErrClosed is the error of calls on a closed client.
var ErrClosed = errors.New("the NFS client is closed")

// Dial connects to a server ("address:port") and makes a session. The context bounds only this.
func Dial(ctx context.Context, addr string, options Options) (*Client, error) {
	if options.ClientOwner == "" || len(options.ClientOwner) > nfsv4.NFS4_OPAQUE_LIMIT {
		return nil, fmt.Errorf("a client owner has 1 to %d bytes, this has %d", nfsv4.NFS4_OPAQUE_LIMIT, len(options.ClientOwner))
	}
	if options.Slots == 0 {
		options.Slots = defaultSlots
	}
	if options.CallTimeout <= 0 {
		options.CallTimeout = 30 * time.Second
	}
	if options.Dial == nil {
		options.Dial = dialTCP
	}
	c := &Client{addr: addr, options: options, log: options.Logger, verifier: randomVerifier(), lock: make(chan struct{}, 1)}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	lease, err := c.leaseTime(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a session on %s: %w", addr, err), c.abandon())
	}
	if c.options.Renew <= 0 {
		c.options.Renew = min(max(lease/3, time.Second), time.Minute)
	}
	background, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.renewing.Go(func() { c.renew(background) })
	return c, nil
}

// Close ends the session and the client ID on the server, so that it need not wait for this client after
// a restart of its own. The client is closed even if that fails.
func (c *Client) Close(ctx context.Context) error {
	c.stop()
	c.renewing.Wait()
	if err := c.acquire(ctx); err != nil {
		return err
	}
	l, session, id := c.link, c.session, c.id
	c.closed, c.session = true, nil
	if session != nil {
		close(session.gone)
	}
	c.release()
	var problems []error
	if l != nil && session != nil {
		_, err := single(ctx, l, c.options.Machine, &nfsv4.NfsArgop4_OP_DESTROY_SESSION{
			OpdestroySession: nfsv4.DestroySession4args{DsaSessionid: session.id},
		})
		if err == nil {
			_, err = single(ctx, l, c.options.Machine, &nfsv4.NfsArgop4_OP_DESTROY_CLIENTID{
				OpdestroyClientid: nfsv4.DestroyClientid4args{DcaClientid: id.EirClientid},
			})
		}
		problems = append(problems, err)
	}
	if err := errors.Join(append(problems, c.abandon())...); err != nil {
		return fmt.Errorf("end the session on %s: %w", c.addr, err)
	}
	return nil
}

// abandon closes the connection, if there is one.
func (c *Client) abandon() error {
	c.lock <- struct{}{}
	defer c.release()
	c.closed = true
	if c.link != nil {
		c.link.fail(ErrClosed)
	}
	return nil
}

func (c *Client) acquire(ctx context.Context) error {
	select {
	case c.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) release() { <-c.lock }

// ready returns the session, making what is missing.
func (c *Client) ready(ctx context.Context) (*session, error) {
	if err := c.acquire(ctx); err != nil {
		return nil, err
	}
	defer c.release()
	if c.session == nil || c.closed {
		if err := c.connect(ctx); err != nil {
			return nil, err
		}
		if err := c.establish(ctx); err != nil {
			return nil, err
		}
	}
	return c.session, nil
}

// linkOf returns a connection for calls of a session, a new one if need be.
// The session is not bound explicitly: with SP4_NONE its SEQUENCE is enough (RFC 8881 section 2.10.3.1).
func (c *Client) linkOf(ctx context.Context, session *session) (*link, error) {
	if err := c.acquire(ctx); err != nil {
		return nil, err
	}
	defer c.release()
	if c.session != session {
		return nil, errSessionLost
	}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c.link, nil
}

// connect replaces a connection that is lost.
func (c *Client) connect(ctx context.Context) error {
	if c.closed {
		return ErrClosed
	}
	if c.link != nil && c.link.failure() == nil {
		return nil
	}
	l, err := dial(ctx, c.options.Dial, c.addr)
	if err != nil {
		return err
	}
	c.link = l
	return nil
}

// establish makes a session, with a new client ID if the old one is not known any more.
func (c *Client) establish(ctx context.Context) error {
	// Always ask: the server tells the next sequence ID, also for an ID that is still good.
	id, err := exchangeID(ctx, c.link, c.options.Machine, c.options.ClientOwner, c.verifier)
	if err != nil {
		return err
	}
	if c.options.ServerOwner != nil {
		if want, is := c.options.ServerOwner(), string(id.EirServerOwner.SoMajorId); want != "" && is != want {
			err := &RPCError{Reason: fmt.Sprintf("server %q answers at %s, where %q is expected", is, c.addr, want)}
			c.link.fail(err) // The next attempt may reach another one.
			return err
		}
	}
	c.id = id
	made, err := createSession(ctx, c.link, c.options.Machine, id, c.options.Slots)
	if err != nil {
		return err
	}
	// RFC 8881 section 18.51: needed before anything but reclaims, and once for each client ID.
	first := <-made.free
	first.sequence++
	args, err := encodeCompound(made.sequence(first, true), &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	if err != nil {
		return err
	}
	encoded, err := c.link.call(ctx, procedureCompound, c.options.Machine, args)
	if err != nil {
		return err
	}
	r, err := decodeCompound(encoded)
	if err != nil {
		return err
	}
	// Whoever has the same owner began again meanwhile, or the server forgot: there may be another session.
	if sequenceState(r, nil, 1) == sequenceUnknown {
		return errSessionLost
	}
	if err := r.err(); err != nil && !IsStatus(err, nfsv4.NFS4ERR_COMPLETE_ALREADY) {
		return err
	}
	made.free <- first
	c.session = made
	c.log.Debug("A session is made", "server", c.addr, "clientid", id.EirClientid)
	return nil
}

// forget gives a session up and wakes who waits for its slots.
func (c *Client) forget(old *session) {
	c.lock <- struct{}{}
	defer c.release()
	if c.session == old {
		c.session = nil
		close(old.gone)
	}
}

// renew keeps the lease, and finds out early that the server has restarted.
func (c *Client) renew(ctx context.Context) {
	tick := time.NewTicker(c.options.Renew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		bounded, cancel := context.WithTimeout(ctx, c.options.CallTimeout)
		_, err := c.do(bounded, c.options.Machine, false)
		cancel()
		if err != nil && ctx.Err() == nil {
			c.log.Info("The lease on an NFS server could not be renewed; calls will try again", "server", c.addr, "error", err)
		}
	}
}

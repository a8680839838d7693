package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// lookTimeout plus lookForEach per export limit a check. One export usually takes less than a millisecond.
const (
	lookTimeout = 20 * time.Second
	lookForEach = 10 * time.Millisecond
)

// Ganesha is how the data server's process reaches its ganesha.
type Ganesha struct {
	// Own is the address from which ganesha trusts this process.
	Own netip.Addr
	// Ports are those of the pod.
	Ports naming.Ports
}

// Address is on the loopback interface. IPv6-only pods have this address too: the kernel gives it to every such interface.
func (g Ganesha) Address() string { return onLoopback(g.Ports.NFS) }

// MetricsURL has ganesha's own metrics. It is on the loopback interface, because ganesha answers one client at a time.
func (g Ganesha) MetricsURL() string { return "http://" + onLoopback(g.Ports.Ganesha) + "/metrics" }

func onLoopback(port int32) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))) }

// Dial connects from the address that ganesha trusts.
func (g Ganesha) Dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(g.Own, 0))}
	return dialer.DialContext(ctx, "tcp4", g.Address())
}

// OwnAddress chooses a new loopback address at each start, from about 16 million. The data server's process connects to
// ganesha from it, and only ganesha knows it. No other traffic has this source address: traffic forwarded to a pod
// comes from 127.0.0.1, and service meshes use other addresses of 127.0.0.0/16. On a node's network every program of the node
// can find it out and use it (docs/operate/security.md).
func OwnAddress() netip.Addr {
	var random [3]byte
	for random[0] == 0 || random[0] == 255 {
		_, _ = rand.Read(random[:]) // This never returns an error: it ends the program instead.
	}
	return netip.AddrFrom4([4]byte{127, random[0], random[1], random[2]})
}

// nfsProber connects over the loopback interface, from the address that every export allows.
type nfsProber struct {
	address string
	dial    func(ctx context.Context, address string) (net.Conn, error)
	// owner is the NFS client owner of the prober's sessions. It is always the same, so that crashes with an open session
	// leave one recovery record and not many.
	owner string
}

// NewNFSProber makes a prober that connects from the address that ganesha trusts.
func NewNFSProber(dataServer string, ganesha Ganesha) *nfsProber {
	return &nfsProber{
		address: ganesha.Address(),
		dial:    func(ctx context.Context, _ string) (net.Conn, error) { return ganesha.Dial(ctx) },
		owner:   "howdah supervisor of " + dataServer,
	}
}

func (p *nfsProber) Null(ctx context.Context) error { return client.NullVia(ctx, p.address, p.dial) }

func (p *nfsProber) Identity(ctx context.Context) (owner, scope string, err error) {
	identity, err := client.IdentifyVia(ctx, p.address, p.dial)
	// Ganesha 9.14 sends the scope's C string with the NUL that ends it (measured).
	return identity.Owner, strings.TrimSuffix(identity.Scope, "\x00"), err
}

// inSession opens a session, calls use, and destroys the session. A client ID that remains would be in ganesha's
// recovery records, and a restarted ganesha would wait a whole grace period for it.
func (p *nfsProber) inSession(ctx context.Context, limit time.Duration, use func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	session, err := client.Dial(ctx, p.address, client.Options{ClientOwner: p.owner, Slots: 1, CallTimeout: lookTimeout, Dial: p.dial})
	if err != nil {
		return fmt.Errorf("connecting to ganesha: %w", err)
	}
	return errors.Join(use(ctx, session), session.Close(ctx))
}

func (p *nfsProber) Look(ctx context.Context, paths []string) (sights []Sight, err error) {
	err = p.inSession(ctx, lookTimeout+time.Duration(len(paths))*lookForEach, func(ctx context.Context, session *client.Client) error {
		sights, err = lookIn(ctx, session, paths)
		return err
	})
	return sights, err
}

func lookIn(ctx context.Context, session *client.Client, paths []string) (sights []Sight, err error) {
	root := client.Credentials{}
	for _, path := range paths {
		attributes, err := session.Stat(ctx, root, path)
		switch {
		case err == nil:
			sights = append(sights, Sight{Fsid: FileSystem{attributes.FSIDMajor, attributes.FSIDMinor}})
		case client.IsStatus(err, nfsv4.NFS4ERR_NOENT):
			sights = append(sights, Sight{Err: ErrNotThere})
		case ctx.Err() != nil:
			return nil, fmt.Errorf("looking at %s: %w", path, err)
		default:
			sights = append(sights, Sight{Err: err})
		}
	}
	return sights, nil
}

func (p *nfsProber) Forge(ctx context.Context, path string) error {
	return p.inSession(ctx, lookTimeout, func(ctx context.Context, session *client.Client) error {
		root := client.Credentials{}
		handle, err := session.Handle(ctx, root, path)
		if err != nil {
			return err
		}
		if len(handle) == 0 {
			return errors.New("ganesha gave an empty file handle")
		}
		// The bytes in the middle identify the file.
		handle[len(handle)/2] ^= 1
		switch _, err := session.StatHandle(ctx, root, handle); {
		case err == nil:
			return ErrForgeryTaken
		case client.IsStatus(err, nfsv4.NFS4ERR_BADHANDLE):
			return nil
		case client.IsStatus(err, nfsv4.NFS4ERR_STALE):
			// Ganesha looked for the file and did not find it, so it did not detect the forgery.
			return ErrForgeryTaken
		default:
			return err
		}
	})
}

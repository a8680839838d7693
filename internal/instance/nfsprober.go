package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// lookTimeout bounds a look at all exports, each of which takes less than a millisecond.
const lookTimeout = 20 * time.Second

// nfsProber looks over the loopback interface, which every export lets in.
type nfsProber struct {
	address string
	// owner names the prober's session to ganesha: the same each time, so that a crash between
	// opening and closing leaves one record behind and not many.
	owner string
}

func newNFSProber(dataServer string) *nfsProber {
	return &nfsProber{
		address: net.JoinHostPort(loopback.Addr().String(), strconv.Itoa(v1alpha1.NFSPort)),
		owner:   "howdah instance manager of " + dataServer,
	}
}

func (p *nfsProber) null(ctx context.Context) error { return client.Null(ctx, p.address) }

func (p *nfsProber) identity(ctx context.Context) (owner, scope string, err error) {
	identity, err := client.Identify(ctx, p.address)
	// Ganesha 9.14 sends the scope's C string with the NUL that ends it (measured).
	return identity.Owner, strings.TrimSuffix(identity.Scope, "\x00"), err
}

// look opens a session and destroys it at once: a client id that lives on would be in
// ganesha's recovery records, and a restarted ganesha would wait a whole grace period for it.
func (p *nfsProber) look(ctx context.Context, paths []string) (sights []sight, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	session, err := client.Dial(ctx, p.address, client.Options{ClientOwner: p.owner, Slots: 1, CallTimeout: lookTimeout})
	if err != nil {
		return nil, fmt.Errorf("connecting to ganesha: %w", err)
	}
	defer func() { err = errors.Join(err, session.Close(ctx)) }()
	root := client.Credentials{}
	for _, path := range paths {
		attributes, err := session.Stat(ctx, root, path)
		switch {
		case err == nil:
			sights = append(sights, sight{fsid: fileSystem{attributes.FSIDMajor, attributes.FSIDMinor}})
		case client.IsStatus(err, nfsv4.NFS4ERR_NOENT):
			sights = append(sights, sight{err: errNotThere})
		case ctx.Err() != nil:
			return nil, fmt.Errorf("looking at %s: %w", path, err)
		default:
			sights = append(sights, sight{err: err})
		}
	}
	return sights, nil
}

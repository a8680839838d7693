package ceph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/dataserver/durable"
)

// patience is how long something may take that is done with a share's directory; it takes some 0.1 s.
const patience = 30 * time.Second

// connected gives the recovery user's connection: a new one if the last has ended, or was made with a key that was replaced, which Ceph
// leaves without an answer sooner or later. A new key that is not taken is no reason to let go of one that is.
func (b *Backend) connected(ctx context.Context) (*client.Client, error) {
	key := b.secrets.keyOf(b.options.RecoveryUser)
	isAlive := false
	if b.own != nil {
		_, err := b.own.FSID(ctx)
		isAlive = err == nil
	}
	if isAlive && b.ownKey == key {
		return b.own, nil
	}
	own, err := b.connect(ctx, b.options.RecoveryUser)
	switch {
	case err == nil:
	case isAlive:
		return b.own, nil
	default:
		key = ""
	}
	if b.own != nil {
		b.own.Close()
	}
	b.own, b.ownKey = own, key
	return own, err
}

func (b *Backend) connect(ctx context.Context, user string) (*client.Client, error) {
	if err := b.secrets.key(user); err != nil {
		return nil, err
	}
	connection, err := client.Connect(ctx, client.Options{
		Binary: b.options.Helper, User: user, Config: b.options.ConfigFile, Keyring: b.secrets.keyring(user),
	})
	switch {
	case err == nil:
		return connection, nil
	case errors.Is(err, syscall.ETIMEDOUT):
		return nil, fmt.Errorf("no monitor answers at %s: are these the addresses, and does the network let pods reach them? (%w)", &b.monitors, err)
	// EIO: what is no key at all. EACCES: another one, or a user that there is not, or one without rights at the monitors (measured).
	case client.IsRefusal(err, syscall.EIO, syscall.EACCES, syscall.EPERM, syscall.EINVAL, syscall.ENOENT):
		return nil, fmt.Errorf("the key of client.%s is not taken by Ceph: entry client.%s.keyring of Secret %s must be what ceph auth get client.%s prints, mon 'allow r' included (%w)",
			user, user, b.options.SecretName, user, err)
	}
	return nil, err
}

// configure writes ceph.conf, if it is not as it should be. Ganesha reads it for exports that are new; what runs learns of monitors
// from Ceph itself.
func (b *Backend) configure(wanted []string) error {
	if len(wanted) == 0 {
		wanted = b.options.Monitors
	}
	if b.monitors.are(wanted) {
		return nil
	}
	config, err := ceph.Config(b.options.FSID, wanted, b.options.Secrets)
	if err != nil {
		return err
	}
	if err := durable.Write(b.options.ConfigFile, []byte(config)); err != nil {
		return err
	}
	b.monitors.set(wanted)
	return nil
}

// monitors are the addresses that are used now. They are read beside passes, too.
type monitors struct {
	mutex     sync.Mutex
	addresses []string
}

func (m *monitors) set(addresses []string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.addresses = slices.Clone(addresses)
}

func (m *monitors) are(addresses []string) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.addresses != nil && slices.Equal(m.addresses, addresses)
}

func (m *monitors) String() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return strings.Join(m.addresses, ", ")
}

// findPlaces looks whether there are the file system and the pool. Names that are wrong are found here, where they can be said in words.
func (b *Backend) findPlaces(ctx context.Context, own *client.Client) error {
	systems, err := own.Command(ctx, ceph.FileSystems())
	if err != nil {
		return b.withCaps(fmt.Errorf("asking for the file systems: %w", b.renewing(err)))
	}
	pools, err := own.Command(ctx, ceph.Usage())
	if err != nil {
		return b.withCaps(fmt.Errorf("asking for the pools: %w", b.renewing(err)))
	}
	return ceph.FindPlaces(b.options.FileSystem, b.options.RecoveryPool, systems, pools)
}

// renewing lets a connection go that has not done in time what it was asked for: librados can wait for an OSD for ever that all others reach
// again (seen after a minute without network, with the monitors' answers in time). The next try makes a new one.
func (b *Backend) renewing(err error) error {
	if b.own != nil && (errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, context.DeadlineExceeded)) {
		b.own.Close()
		b.own = nil
	}
	return err
}

// withCaps adds to an error that the recovery user may not do something what would let it. A connection keeps the rights that it began
// with, for an hour: the next try makes a new one.
func (b *Backend) withCaps(err error) error {
	if !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.EPERM) {
		return err
	}
	b.own.Close()
	b.own = nil
	user, namespace := b.options.RecoveryUser, strings.TrimRight(b.options.Node, "0123456789")
	return fmt.Errorf("user client.%s has too few rights: ceph auth caps client.%s mon 'allow r' osd 'allow rwx pool=%s namespace=%s*' (%w)",
		user, user, b.options.RecoveryPool, namespace, err)
}

// as does something with a share's directory as the share's user.
func (b *Backend) as(ctx context.Context, of share, what string, do func(context.Context, *client.Client, client.Directory) error) error {
	// The helper waits for monitors and for the mount as long as it is told to, and for a metadata server for ever.
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	user, err := b.connect(ctx, of.User)
	if err != nil {
		return err
	}
	defer user.Close()
	err = do(ctx, user, client.Directory{FileSystem: b.options.FileSystem, Root: of.Path})
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOENT) {
		// Ceph says EPERM of a directory that is not there, too.
		return fmt.Errorf("client.%s can't use %s: either the directory does not exist, or the user has no rights to it (ceph auth get client.%s must show mds 'allow rw path=%s') (%w)",
			of.User, of.Path, of.User, of.Path, err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) {
		// Who has no right to any metadata server waits for one.
		return fmt.Errorf("%s as client.%s: Ceph did not do it in time: are its metadata servers well (ceph health), and has the user rights (ceph auth get client.%s must show mds 'allow rw path=%s')? (%w)",
			what, of.User, of.User, of.Path, err)
	}
	if err != nil {
		return fmt.Errorf("%s as client.%s: %w", what, of.User, err)
	}
	return nil
}

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

// directoryTimeout limits an operation on a share's directory. Usually it takes about 0.1 s.
const directoryTimeout = 30 * time.Second

// connected returns the recovery user's connection. It makes a new one if the last has ended, or if its key was
// replaced: Ceph stops answering such a connection sooner or later. If Ceph refuses the new key, it keeps a connection
// that still works.
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
	// EIO: the text is not a key. EACCES: the key is wrong, or the user does not exist or has no rights at the monitors
	// (measured).
	case client.IsRefusal(err, syscall.EIO, syscall.EACCES, syscall.EPERM, syscall.EINVAL, syscall.ENOENT):
		return nil, fmt.Errorf("the cluster refuses the key of client.%s: entry client.%s.keyring of Secret %s must be what ceph auth get client.%s prints, including mon 'allow r' (%w)",
			user, user, b.options.SecretName, user, err)
	}
	return nil, err
}

// configure writes ceph.conf if the monitors have changed. Ganesha reads it for new exports. Existing ones learn of new
// monitors from Ceph itself.
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

// monitors are the addresses that are used now. Several goroutines read them.
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

// findPlaces checks that the file system and the pool exist, so that a wrong name gets a clear message.
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

// renewing closes a connection after a timeout, so that the next try makes a new one. librados can wait without end for
// an OSD that all other clients reach again (seen after a minute without network, while the monitors answered in time).
func (b *Backend) renewing(err error) error {
	if b.own != nil && (errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, context.DeadlineExceeded)) {
		b.own.Close()
		b.own = nil
	}
	return err
}

// withCaps adds the missing rights to a permission error of the recovery user. It also closes the connection, which
// keeps its old rights for an hour: the next try makes a new one.
func (b *Backend) withCaps(err error) error {
	if !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.EPERM) {
		return err
	}
	b.own.Close()
	b.own = nil
	user, namespace := b.options.RecoveryUser, strings.TrimRight(b.options.Node, "0123456789")
	return fmt.Errorf("user client.%s has too few rights; run: ceph auth caps client.%s mon 'allow r' osd 'allow rwx pool=%s namespace=%s*' (%w)",
		user, user, b.options.RecoveryPool, namespace, err)
}

// as calls do with a connection of the share's user, for the share's directory. what says in error messages what do
// does.
func (b *Backend) as(ctx context.Context, of share, what string, do func(context.Context, *client.Client, client.Directory) error) error {
	// The helper has timeouts for the monitors and for the mount, but none for the metadata servers.
	ctx, cancel := context.WithTimeout(ctx, directoryTimeout)
	defer cancel()
	user, err := b.connect(ctx, of.User)
	if err != nil {
		return err
	}
	defer user.Close()
	err = do(ctx, user, client.Directory{FileSystem: b.options.FileSystem, Root: of.Path})
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOENT) {
		// Ceph also answers EPERM if the directory does not exist.
		return fmt.Errorf("client.%s can't use %s: either the directory does not exist, or the user has no rights to it (ceph auth get client.%s must show mds 'allow rw path=%s') (%w)",
			of.User, of.Path, of.User, of.Path, err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) {
		// A user without rights to any metadata server waits for one.
		return fmt.Errorf("%s as client.%s: Ceph did not answer in time: check its metadata servers (ceph health) and the rights of the user (ceph auth get client.%s must show mds 'allow rw path=%s') (%w)",
			what, of.User, of.User, of.Path, err)
	}
	if err != nil {
		return fmt.Errorf("%s as client.%s: %w", what, of.User, err)
	}
	return nil
}

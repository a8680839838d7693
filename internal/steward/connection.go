package steward

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
)

// patience is how long one thing may take that Ceph is asked for; most take less than 0.3 s.
const patience = 30 * time.Second

// connector connects to the Ceph cluster of a Steward. Its files are in a directory of its own: several of them don't disturb each other.
type connector struct {
	// helper is howdah-ceph, credential where that Secret is mounted, directory where files may be written.
	helper, credential, directory string

	// The rest is of the connection that there is; nil if there is none.
	connection *client.Client
	as         credential
	to         internalv1.StewardCeph
	// expired: it lacks rights, which the account may have been given since. A connection keeps those that it began with, for an hour.
	expired bool
}

// connected gives the connection of the account that provisions: a new one if the last has ended, or if account or monitors are others now.
func (c *connector) connected(ctx context.Context, to *internalv1.StewardCeph) (*client.Client, error) {
	as, err := readCredential(c.credential, to.ProvisioningSecretName)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if c.connection != nil && !c.expired && as == c.as && reflect.DeepEqual(c.to, *to) {
		if _, err := c.connection.FSID(ctx); err == nil {
			return c.connection, nil
		}
	}
	c.close()
	connection, err := c.connect(ctx, to, as)
	if err != nil {
		return nil, unconnected(err, as.user, to.ProvisioningSecretName, to.Monitors)
	}
	fsid, err := connection.FSID(ctx)
	if err == nil && fsid != to.FSID {
		err = fmt.Errorf("the Ceph cluster at %v has the fsid %s, not %s: correct spec.storage.ceph (external.monitors, or the CephCluster that rook.clusterRef names), or, if the fsid was never right, make another FileServer",
			to.Monitors, fsid, to.FSID)
	}
	if err == nil {
		err = findPlaces(ctx, connection, to, as.user)
	}
	if err != nil {
		connection.Close()
		return nil, err
	}
	c.connection, c.as, c.to, c.expired = connection, as, *to.DeepCopy(), false
	return connection, nil
}

// hasNewCredential tells whether the Secret is another one than the connection was made with: a wrong key is to be said soon after it was
// written, and not when somebody needs it.
func (c *connector) hasNewCredential() bool {
	as, err := readCredential(c.credential, c.to.ProvisioningSecretName)
	return c.connection != nil && (err != nil || as != c.as)
}

// close ends the connection.
func (c *connector) close() {
	if c.connection != nil {
		c.connection.Close()
		c.connection = nil
	}
}

// connect makes a connection as any user, with files for its key and for the cluster.
func (c *connector) connect(ctx context.Context, to *internalv1.StewardCeph, as credential) (*client.Client, error) {
	config, err := ceph.Config(to.FSID, to.Monitors, c.directory)
	if err != nil {
		return nil, err
	}
	configFile, keyringFile := filepath.Join(c.directory, "ceph.conf"), filepath.Join(c.directory, keyringName(as.user))
	for file, text := range map[string]string{configFile: config, keyringFile: keyring(as.user, as.key)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("preparing to connect to Ceph: %w", err)
		}
	}
	return client.Connect(ctx, client.Options{Binary: c.helper, User: as.user, Config: configFile, Keyring: keyringFile})
}

// findPlaces looks whether there are the file system and the pool. Names that are wrong are found here, where they can be said in words.
func findPlaces(ctx context.Context, connection *client.Client, to *internalv1.StewardCeph, user string) error {
	systems, err := connection.Command(ctx, ceph.FileSystems())
	if err != nil {
		return refused(err, "asking for the file systems", user)
	}
	pools, err := connection.Command(ctx, ceph.Usage())
	if err != nil {
		return refused(err, "asking for the pools", user)
	}
	return ceph.FindPlaces(to.FileSystem, to.RecoveryPool, systems, pools)
}

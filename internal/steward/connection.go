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

// commandTimeout limits one command to Ceph; most take less than 0.3 s.
const commandTimeout = 30 * time.Second

// connector connects to the Ceph cluster of a Steward. Each connector has its files in its own directory.
type connector struct {
	// helper is the program howdah-ceph, credential the directory where the Secret is mounted, directory a writable one.
	helper, credential, directory string

	// The current connection (nil: none), and the account and cluster that it was made for.
	connection *client.Client
	as         credential
	to         internalv1.StewardCeph
	// expired: the connection lacks permissions that the account may have by now. A connection keeps the permissions of its
	// start for an hour.
	expired bool
}

// connected returns the connection of the provisioning account. It makes a new one if the last one has ended, or if the
// account or the monitors have changed.
func (c *connector) connected(ctx context.Context, to *internalv1.StewardCeph) (*client.Client, error) {
	as, err := readCredential(c.credential, to.ProvisioningSecretName)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
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

// hasNewCredential reports whether the Secret has changed since the connection was made. A wrong key is then reported soon
// after it was written, and not only when a share needs it.
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

// connect connects as the given user, and writes the files for its key and for the cluster.
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

// findPlaces checks that the file system and the pool exist, so that a wrong name is reported clearly.
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

package hostile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/realtest"
)

// hack/ceph-processes sets these: a monitor of a real Ceph cluster as "address:port", and where the root of its file system fs1 is mounted.
// The tests then run where they are, in the root directory of a data server.
const envMonitor, envMounted = "HOWDAH_CEPH_MONITOR", "HOWDAH_CEPH_MOUNTED"

// isInside reports whether the test is beside a ganesha. If not, it runs the test there.
func isInside(t *testing.T) bool {
	t.Helper()
	return os.Getenv(envMonitor) != "" || realtest.Inside(t)
}

// storage has the files of shares.
type storage interface {
	// clear removes the files of all shares, and what an earlier server stored about its clients.
	clear(ctx context.Context) error
	// device makes a device node (that of zeros).
	device(path string) error
	// path is where the test sees the files of a share.
	path(share string) string
	// complete tells ganesha where the files are. Each Export's Path is the name of the share before.
	complete(config *ganesha.Config)
	// snapshot is the name of a snapshot in each directory's .snap, "" if there are none. It has the files of the first server.
	snapshot(ctx context.Context) (string, error)
}

// files is the storage of all servers of this run: Ceph's if there is a cluster, else a volume.
var files = sync.OnceValues(func() (storage, error) {
	if os.Getenv(envMonitor) == "" {
		return volume("/volumes/hostile/0"), nil
	}
	return connectCeph(context.Background())
})

// volume is a directory on a disk.
type volume string

func (v volume) clear(context.Context) error {
	return errors.Join(os.RemoveAll(string(v)), os.MkdirAll(v.recovery(), 0o700))
}

func (v volume) recovery() string { return string(v) + "/.howdah/recovery" }

func (v volume) device(path string) error { return os.Link(realtest.Device, path) }

func (v volume) path(share string) string { return filepath.Join(string(v), share) }

func (v volume) complete(config *ganesha.Config) {
	config.RecoveryRoot = v.recovery()
	for i, export := range config.Exports {
		config.Exports[i].Path = v.path(export.Path)
	}
}

func (v volume) snapshot(context.Context) (string, error) { return "", nil }

const (
	cephConfig   = "/run/ceph.conf"
	cephKeyrings = "/run"
	fileSystem   = "fs1"
	recoveryPool = "howdah"
	identity     = "00000000-0000-4000-8000-000000000024"
	snapshotName = "kept"
)

// inCeph has each share in a subvolume of its own, with a user of its own, as data servers have.
type inCeph struct {
	admin  *client.Client
	volume ceph.Volume
	// paths are those of the shares in the file system.
	paths map[string]string
	// servers counts them: each has records of its own, so that it does not wait for clients of earlier ones.
	servers int32
	// kept is the snapshot's name in .snap.
	kept string
}

func connectCeph(ctx context.Context) (storage, error) {
	admin, err := client.Connect(ctx, client.Options{User: "admin", Config: "/etc/ceph/ceph.conf", Keyring: "/etc/ceph/ceph.client.admin.keyring"})
	if err != nil {
		return nil, err
	}
	c := &inCeph{admin: admin, volume: ceph.Volume{FileSystem: fileSystem, Group: ceph.Group(identity)}, paths: map[string]string{}}
	fsid, err := admin.FSID(ctx)
	if err != nil {
		return nil, err
	}
	text, err := ceph.Config(fsid, []string{os.Getenv(envMonitor)}, cephKeyrings)
	if err != nil {
		return nil, err
	}
	if err := realtest.WriteFile(cephConfig, []byte(text)); err != nil {
		return nil, err
	}
	if _, err := admin.Command(ctx, c.volume.CreateGroup()); err != nil {
		return nil, err
	}
	for _, name := range shares {
		if err := c.create(ctx, name); err != nil {
			return nil, fmt.Errorf("share %s: %w", name, err)
		}
	}
	return c, nil
}

func (c *inCeph) create(ctx context.Context, share string) error {
	subvolume, user := ceph.Subvolume(identity, share), ceph.ShareUser(identity, share)
	for _, command := range []ceph.Command{c.volume.Create(subvolume), c.volume.Authorize(subvolume, user)} {
		if _, err := c.admin.Command(ctx, command); err != nil {
			return err
		}
	}
	text, err := c.admin.Command(ctx, c.volume.Info(subvolume))
	if err != nil {
		return err
	}
	info, err := ceph.ParseInfo(text, subvolume)
	if err != nil {
		return err
	}
	c.paths[share] = info.Path
	return c.writeKeyring(ctx, user, ceph.GetUser(user))
}

// writeKeyring writes the key that is in the answer to a command.
func (c *inCeph) writeKeyring(ctx context.Context, user string, command ceph.Command) error {
	text, err := c.admin.Command(ctx, command)
	if err != nil {
		return err
	}
	key, err := ceph.ParseKey(text, user)
	if err != nil {
		return err
	}
	return realtest.WriteFile(filepath.Join(cephKeyrings, "client."+user+".keyring"), fmt.Appendf(nil, "[client.%s]\n\tkey = %s\n", user, key))
}

func (c *inCeph) clear(ctx context.Context) error {
	for _, share := range shares {
		// A ganesha that was killed leaves its sessions with Ceph, and what they hold is held for 60 s more.
		if _, err := c.admin.Command(ctx, c.volume.Evict(ceph.Subvolume(identity, share), ceph.ShareUser(identity, share))); err != nil {
			return err
		}
		entries, err := os.ReadDir(c.path(share))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := os.RemoveAll(filepath.Join(c.path(share), entry.Name())); err != nil {
				return err
			}
		}
	}
	c.servers++
	node := ceph.Node(identity, c.servers)
	if err := c.writeKeyring(ctx, c.recoveryUser(), ceph.CreateRecoveryUser(c.recoveryUser(), recoveryPool, node)); err != nil {
		return err
	}
	grace, err := ceph.JoinGrace(nil, node)
	if err != nil {
		return err
	}
	_, err = c.admin.Change(ctx, client.Place{Pool: recoveryPool, Namespace: node}, ceph.GraceObject, *grace)
	return err
}

func (c *inCeph) recoveryUser() string { return ceph.RecoveryUser(identity, c.servers) }

func (c *inCeph) device(path string) error {
	return syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|5)
}

func (c *inCeph) path(share string) string {
	return filepath.Join(os.Getenv(envMounted), c.paths[share])
}

func (c *inCeph) complete(config *ganesha.Config) {
	node := ceph.Node(identity, c.servers)
	config.Ceph = &ganesha.Ceph{ConfigFile: cephConfig, RecoveryUser: c.recoveryUser(), RecoveryPool: recoveryPool, RecoveryNamespace: node, NodeID: node}
	for i, export := range config.Exports {
		config.Exports[i].Path = c.paths[export.Path]
		config.Exports[i].CephFS = &ganesha.CephFS{FileSystem: fileSystem, User: ceph.ShareUser(identity, export.Path)}
	}
}

func (c *inCeph) snapshot(ctx context.Context) (string, error) {
	if c.kept != "" {
		return c.kept, nil
	}
	if _, err := c.admin.Command(ctx, c.volume.CreateSnapshot(ceph.Subvolume(identity, share), snapshotName)); err != nil {
		return "", err
	}
	for began := time.Now(); time.Since(began) < answersWithin; time.Sleep(100 * time.Millisecond) {
		entries, err := os.ReadDir(filepath.Join(c.path(share), ".snap"))
		if err != nil {
			return "", err
		}
		names := make([]string, 0, len(entries))
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		if folder, found := ceph.SnapshotFolder(names, snapshotName); found {
			c.kept = strings.TrimPrefix(folder, ".snap/")
			return c.kept, nil
		}
	}
	return "", fmt.Errorf("snapshot %s is not seen in %s", snapshotName, c.path(share))
}

package dataserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	cephclient "github.com/howdah/howdah/internal/ceph/client"
	cephstorage "github.com/howdah/howdah/internal/dataserver/ceph"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// inCeph is what a test in a real Ceph cluster needs: it runs as root in a root directory with ganesha, howdah-ceph and the cluster's
// /etc/ceph, with the address 10.99.0.1, and it makes the users and directories that an administrator would have made.
type inCeph struct {
	t       *testing.T
	admin   *cephclient.Client
	volume  ceph.Volume
	options cephstorage.Options
	uid     string
	// toothless is true if fencing is not allowed.
	toothless atomic.Bool
}

func newInCeph(t *testing.T) *inCeph {
	t.Helper()
	const clusterConfig = "/etc/ceph/ceph.conf"
	if os.Getenv("HOWDAH_CEPH_MONITOR") == "" {
		t.Skip("needs a Ceph cluster, and the root directory of a data server: HOWDAH_CEPH_MONITOR")
	}
	helper := "/usr/libexec/howdah-ceph"
	ctx := t.Context()
	admin, err := cephclient.Connect(ctx, cephclient.Options{Binary: helper, User: "admin", Config: clusterConfig, Keyring: "/etc/ceph/ceph.client.admin.keyring"})
	mustWork(t, "connect", err)
	t.Cleanup(admin.Close)
	fsid, err := admin.FSID(ctx)
	mustWork(t, "fsid", err)
	uid := fmt.Sprintf("00000000-0000-4000-8000-%012x", time.Now().UnixNano()&0xffffffffffff)
	c := &inCeph{t: t, admin: admin, volume: ceph.Volume{FileSystem: "fs1", Group: ceph.Group(uid)}, uid: uid}
	secrets := t.TempDir()
	c.options = cephstorage.Options{
		Monitors: []string{os.Getenv("HOWDAH_CEPH_MONITOR")}, FSID: fsid, FileSystem: "fs1", RecoveryPool: "howdah", RecoveryUser: ceph.RecoveryUser(uid, 0), Node: ceph.Node(uid, 0),
		ConfigFile: filepath.Join(secrets, "ceph.conf"), Secrets: secrets, SecretName: "ceph-shares", Helper: helper, Fence: c.Fence,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	c.send(c.volume.CreateGroup())
	c.keep(c.options.RecoveryUser, c.send(ceph.CreateRecoveryUser(c.options.RecoveryUser, "howdah", c.options.Node)))
	t.Cleanup(func() { _, _ = admin.Command(context.Background(), ceph.RemoveUser(c.options.RecoveryUser)) })
	return c
}

// another is a data server of the same FileServer, with the same shares.
func (c *inCeph) another(ordinal int32) *inCeph {
	other := &inCeph{t: c.t, admin: c.admin, volume: c.volume, options: c.options, uid: c.uid}
	other.options.RecoveryUser, other.options.Node, other.options.Fence = ceph.RecoveryUser(c.uid, ordinal), ceph.Node(c.uid, ordinal), other.Fence
	other.keep(other.options.RecoveryUser, c.send(ceph.CreateRecoveryUser(other.options.RecoveryUser, "howdah", other.options.Node)))
	c.t.Cleanup(func() { _, _ = c.admin.Command(context.Background(), ceph.RemoveUser(other.options.RecoveryUser)) })
	return other
}

func (c *inCeph) send(command ceph.Command) string {
	c.t.Helper()
	out, err := c.admin.Command(c.t.Context(), command)
	mustWork(c.t, "ceph", err)
	return out
}

func (c *inCeph) Fence(ctx context.Context, addresses []string) error {
	if c.toothless.Load() {
		return nil
	}
	for _, address := range addresses {
		if _, err := c.admin.Command(ctx, ceph.Blocklist(address, time.Minute)); err != nil {
			return err
		}
	}
	return nil
}

func (c *inCeph) keep(user, answer string) {
	c.t.Helper()
	key, err := ceph.ParseKey(answer, user)
	mustWork(c.t, "key", err)
	text := fmt.Sprintf("[client.%s]\n\tkey = %s\n", user, key)
	mustWork(c.t, "keyring", os.WriteFile(filepath.Join(c.options.Secrets, "client."+user+".keyring"), []byte(text), 0o600))
}

// make makes a share's directory and user.
func (c *inCeph) make(share string) {
	c.t.Helper()
	subvolume, user := ceph.Subvolume(c.uid, share), ceph.ShareUser(c.uid, share)
	c.send(c.volume.Create(subvolume))
	c.send(c.volume.Authorize(subvolume, user))
	c.t.Cleanup(func() {
		for _, command := range []ceph.Command{c.volume.Deauthorize(subvolume, user), c.volume.Remove(subvolume)} {
			_, _ = c.admin.Command(context.Background(), command)
		}
	})
	c.keep(user, c.send(ceph.GetUser(user)))
	info, err := ceph.ParseInfo(c.send(c.volume.Info(subvolume)), subvolume)
	mustWork(c.t, "info", err)
	c.entry(share, info.Path, user)
}

func (c *inCeph) entry(share, path, user string) {
	c.t.Helper()
	text, err := json.Marshal(map[string]string{"path": path, "user": user})
	mustWork(c.t, "entry", err)
	mustWork(c.t, "entry", os.WriteFile(filepath.Join(c.options.Secrets, share+".json"), text, 0o600))
}

func (c *inCeph) boot() *dataServer { return bootOn(c.t, "ceph", 0, cephstorage.New(c.options)) }

// writer makes a data server that serves the share alpha out of grace, and a client that may write there.
func (c *inCeph) writer() (*dataServer, *wire) {
	c.t.Helper()
	c.make("alpha")
	s := c.boot()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	s.await("the first start's grace to end", func(dataservertest.Reported) bool { return !s.supervisor.State().InGrace })
	w := dialWireAs(c.t, "a writer", "10.99.0.1:2049", 1)
	w.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	return s, w
}

func TestSharesAreServedFromARealCephCluster(t *testing.T) {
	c := newInCeph(t)
	c.make("alpha")
	s := c.boot()
	began := time.Now()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	first := s.settle()
	t.Logf("FIGURE from the first DataServer to a share served from CephFS: %s", time.Since(began).Round(time.Millisecond))
	from := s.from("10.99.0.1")
	mustWork(t, "mkdir", from.Mkdir(t.Context(), user, "/alpha/0/made", client.MkdirOptions{Mode: 0o755}))
	seen, err := from.Stat(t.Context(), user, "/alpha/0")
	mustWork(t, "stat", err)
	t.Logf("the root is %+v; the file system %+v", seen, first.Volumes)
	// A Ceph that is seconds old does not know its size yet.
	s.await("how full the file system is", func(status dataservertest.Reported) bool {
		return len(status.Volumes) == 1 && status.Volumes[0].TotalBytes != nil && *status.Volumes[0].TotalBytes > 0
	})

	// Faults of single shares stay with them.
	c.make("beta")
	c.entry("thief", "/volumes/elsewhere", ceph.ShareUser(c.uid, "alpha"))
	began = time.Now()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("keyless"), dataservertest.ShareSpec("thief"), dataservertest.ShareSpec("beta"))
	})
	served := s.await("the good share to be served", func(status dataservertest.Reported) bool { return len(status.Exports) == 2 })
	t.Logf("FIGURE a further share is served after %s", time.Since(began).Round(time.Millisecond))
	if served.Exports[0].ShareName != "alpha" || served.Exports[1].ShareName != "beta" || s.supervisor.State().Starts != 1 {
		t.Errorf("%+v are served, after %d starts", served.Exports, s.supervisor.State().Starts)
	}
	_, message := readyCondition(served)
	for _, want := range []string{`share keyless: no entry keyless.json is in Secret ceph-shares`, "is also used by share alpha"} {
		if !strings.Contains(message, want) {
			t.Errorf("%q does not say %q", message, want)
		}
	}
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha"), dataservertest.ShareSpec("beta")}
	})
	s.settle()

	// It comes back as itself after a crash, without waiting for its own ghost.
	for _, fenced := range []bool{true, false} {
		c.toothless.Store(!fenced)
		pid, starts := s.pid(), s.supervisor.State().Starts
		began = time.Now()
		mustWork(t, "kill", syscall.Kill(pid, syscall.SIGKILL))
		up := s.awaitStart(starts)
		s.settle()
		t.Logf("FIGURE killed, fenced %v: ganesha takes calls after %s, all is proven after %s", fenced, up.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond))
		if _, err := s.from("10.99.0.1").Stat(t.Context(), user, "/alpha/0/made"); err != nil {
			t.Errorf("after a crash: %v", err)
		}
	}
	ids := s.settle().Exports

	// Ceph shuts out a share's client, which never comes back by itself. The other share has its own.
	began = time.Now()
	c.send(c.volume.Evict(ceph.Subvolume(c.uid, "beta"), ceph.ShareUser(c.uid, "beta")))
	s.await("the loss to be seen", func(now dataservertest.Reported) bool {
		_, message := readyCondition(now)
		return strings.Contains(message, "share beta: ganesha lost its storage")
	})
	s.await("the share that was shut out to be served again", func(now dataservertest.Reported) bool { return len(now.Exports) == 2 })
	t.Logf("FIGURE a share whose client was shut out is served again after %s", time.Since(began).Round(100*time.Millisecond))
	for _, share := range []string{"/alpha/0", "/beta/0"} {
		if _, err := s.from("10.99.0.1").Stat(t.Context(), user, share); err != nil {
			t.Errorf("after beta was shut out: %s: %v", share, err)
		}
	}
	s.stop()

	// A new pod has nothing of the old one but its name.
	s = c.boot()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha"), dataservertest.ShareSpec("beta")}
	})
	again := s.settle()
	for i := range ids {
		if ids[i].ExportIDs[0] != again.Exports[i].ExportIDs[0] {
			t.Errorf("share %s had Export_Id %v and has %v", ids[i].ShareName, ids[i].ExportIDs, again.Exports[i].ExportIDs)
		}
	}
	if _, err := s.from("10.99.0.1").Stat(t.Context(), user, "/alpha/0/made"); err != nil {
		t.Errorf("in a new pod: %v", err)
	}
}

func TestAnotherRealCephClusterIsRefused(t *testing.T) {
	c := newInCeph(t)
	c.options.FSID = "00000000-0000-0000-0000-000000000001"
	s := c.boot()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	if message := s.awaitRefusal(); !strings.Contains(message, "not 00000000-0000-0000-0000-000000000001: correct spec.storage.ceph (external.monitors") || s.pid() != 0 {
		t.Errorf("%q, and ganesha is process %d", message, s.pid())
	}
}

// What hack/ceph-shares.sh gives a FileServer's recovery user is enough for each of its data servers. Missing rights are reported.
func TestRightsForRecoveryRecordsInARealCephCluster(t *testing.T) {
	c := newInCeph(t)
	c.make("alpha")
	user := "howdah-rec-test-" + c.uid[24:]
	t.Cleanup(func() { _, _ = c.admin.Command(context.Background(), ceph.RemoveUser(user)) })
	allow := func(verb, osd string) string {
		t.Helper()
		return c.send(ceph.Command{Target: ceph.Monitor, Arguments: map[string]any{
			"prefix": "auth " + verb, "format": "json", "entity": "client." + user, "caps": []string{"mon", "allow r", "osd", osd},
		}})
	}
	c.options.RecoveryUser = user
	c.keep(user, allow("get-or-create", "allow rwx pool=howdah namespace=other-*"))
	s := c.boot()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	want := "ceph auth caps client." + user + " mon 'allow r' osd 'allow rwx pool=howdah namespace=" + c.uid + "-*'"
	if message := s.awaitRefusal(); !strings.Contains(message, want) {
		t.Errorf("%q does not say %q", message, want)
	}
	allow("caps", "allow rwx pool=howdah namespace="+c.uid+"-*")
	s.settle()
}

func TestWhatIsMissingInARealCephClusterIsReported(t *testing.T) {
	c := newInCeph(t)
	good := c.options
	for want, change := range map[string]func(*cephstorage.Options){
		"no pool other for recovery records":   func(o *cephstorage.Options) { o.RecoveryPool = "other" },
		"no file system other; it has: fs1":    func(o *cephstorage.Options) { o.FileSystem = "other" },
		"no monitor answers at 10.77.0.1:3999": func(o *cephstorage.Options) { o.Monitors = []string{"10.77.0.1:3999"} },
		"the cluster refuses the key of client.unknown": func(o *cephstorage.Options) {
			o.RecoveryUser = "unknown"
			key, err := os.ReadFile(filepath.Join(o.Secrets, "client."+good.RecoveryUser+".keyring"))
			mustWork(t, "read", err)
			text := strings.ReplaceAll(string(key), good.RecoveryUser, "unknown")
			mustWork(t, "write", os.WriteFile(filepath.Join(o.Secrets, "client.unknown.keyring"), []byte(text), 0o600))
		},
	} {
		c.options = good
		change(&c.options)
		s := c.boot()
		s.apply(func(spec *dataservertest.Wanted) {
			spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
		})
		if message := s.awaitRefusal(); !strings.Contains(message, want) {
			t.Errorf("%q does not say %q", message, want)
		}
		s.stop()
	}
}

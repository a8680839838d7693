package steward

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	cephclient "github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/realtest"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// A frozen ganesha is one whose process stops, and goes on later with all that it had: the pod of a node that hangs. Before it goes on, the
// next ganesha of the same data server serves.

const (
	frozenConfig = "/run/frozen-ceph.conf"
	frozenShare  = "frozen"
	recoveryPool = "howdah"
	// provisioner has the account of docs/operate/ceph.md, as its Secret is mounted in a steward's pod (hack/ceph-processes).
	provisioner = "/etc/ceph/accounts/howdah-provisioner"

	// Blocks are far enough from each other to be in six objects of Ceph, which are on several OSDs.
	blocks, blockSize, blockEvery = 24, 64 << 10, 1 << 20
	// goesOnFor is how long the frozen one goes on: libcephfs writes what is in its cache after 5 s (client_oc_max_dirty_age).
	goesOnFor = 15 * time.Second
)

// content is a block's, by who wrote it and when.
func content(what string, block int) []byte {
	text := fmt.Sprintf("%s %d. ", what, block)
	return bytes.Repeat([]byte(text), blockSize/len(text)+1)[:blockSize]
}

// frozenWorld is a share in a real Ceph, with a steward's fencer, for the ganeshas of the data server training-0.
type frozenWorld struct {
	t        *testing.T
	admin    *cephclient.Client
	identity string
	path     string
	fencer   *fencer
	request  request
}

func newFrozenWorld(t *testing.T) *frozenWorld {
	t.Helper()
	monitor := os.Getenv("HOWDAH_CEPH_MONITOR")
	if monitor == "" {
		t.Skip("needs a Ceph cluster, and the root directory of a data server: HOWDAH_CEPH_MONITOR (hack/ceph-processes/run.sh)")
	}
	w := &frozenWorld{t: t, identity: fmt.Sprintf("00000000-0000-4000-8000-%012x", time.Now().UnixNano()&0xffffffffffff)}
	var err error
	w.admin, err = cephclient.Connect(t.Context(), cephclient.Options{User: "admin", Config: "/etc/ceph/ceph.conf", Keyring: "/etc/ceph/ceph.client.admin.keyring"})
	w.must(err)
	t.Cleanup(w.admin.Close)
	fsid, err := w.admin.FSID(t.Context())
	w.must(err)
	text, err := ceph.Config(fsid, []string{monitor}, "/run")
	w.must(err)
	w.must(realtest.WriteFile(frozenConfig, []byte(text)))

	volume := ceph.Volume{FileSystem: "fs1", Group: ceph.Group(w.identity)}
	subvolume, user := ceph.Subvolume(w.identity, frozenShare), ceph.ShareUser(w.identity, frozenShare)
	w.send(volume.CreateGroup())
	w.send(volume.Create(subvolume))
	w.send(volume.Authorize(subvolume, user))
	w.keyring(user, ceph.GetUser(user))
	info, err := ceph.ParseInfo(w.send(volume.Info(subvolume)), subvolume)
	w.must(err)
	w.path = info.Path
	for ordinal := range int32(2) {
		node := ceph.Node(w.identity, ordinal)
		w.keyring(ceph.RecoveryUser(w.identity, ordinal), ceph.CreateRecoveryUser(ceph.RecoveryUser(w.identity, ordinal), recoveryPool, node))
		joined, err := ceph.JoinGrace(nil, node)
		w.must(err)
		_, err = w.admin.Change(t.Context(), cephclient.Place{Pool: recoveryPool, Namespace: node}, ceph.GraceObject, *joined)
		w.must(err)
	}

	steward := &internalv1.Steward{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "training"},
		Spec: internalv1.StewardSpec{
			FileServerRef: internalv1.FileServerReference{Name: "training"}, FileServerUID: w.identity,
			Ceph: internalv1.StewardCeph{
				Monitors: []string{monitor}, FSID: fsid, FileSystem: "fs1", RecoveryPool: recoveryPool, ProvisioningSecretName: "ceph", SharesSecretName: "shares",
			},
			Fences: []internalv1.PodFence{{PodUID: "frozen", DataServerName: "training-0", NodeName: "n2", RequestTime: &metav1.Time{Time: time.Unix(1_800_000_000, 0)}}},
		},
	}
	scheme := runtime.NewScheme()
	w.must(internalv1.AddToScheme(scheme))
	server := serverNamed("training-0")
	server.Status.NodeName = "n2"
	server.Status.Unreachable.SeenBy = "training-namespace-a"
	w.request = request{steward: steward, servers: []*internalv1.DataServer{server}}
	w.fencer = &fencer{
		api: &api{
			namespace: "ml", name: "training",
			client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(steward.DeepCopy()).WithStatusSubresource(steward).Build(),
		},
		connector: &connector{credential: provisioner, directory: t.TempDir()},
		log:       slog.New(slog.NewTextHandler(t.Output(), nil)), seen: map[string]sighting{}, answered: map[string]string{},
		podFences: map[string]internalv1.PodFenceAnswer{}, tried: map[string]time.Time{}, lookAt: map[string]time.Time{}, now: time.Now,
	}
	t.Cleanup(w.fencer.connector.close)
	return w
}

func (w *frozenWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *frozenWorld) send(command ceph.Command) string {
	w.t.Helper()
	out, err := w.admin.Command(w.t.Context(), command)
	w.must(err)
	return out
}

func (w *frozenWorld) keyring(user string, command ceph.Command) {
	w.t.Helper()
	key, err := ceph.ParseKey(w.send(command), user)
	w.must(err)
	w.must(realtest.WriteFile("/run/client."+user+".keyring", fmt.Appendf(nil, "[client.%s]\n\tkey = %s\n", user, key)))
}

// ganesha starts a ganesha of the data server with the ordinal.
func (w *frozenWorld) ganesha(name string, ordinal int32, port uint16) *realtest.Server {
	w.t.Helper()
	node := ceph.Node(w.identity, ordinal)
	return realtest.StartNamed(w.t, name, ganesha.Config{
		Port: port, MonitoringPort: port + 1000,
		Ceph: &ganesha.Ceph{ConfigFile: frozenConfig, RecoveryUser: ceph.RecoveryUser(w.identity, ordinal), RecoveryPool: recoveryPool, RecoveryNamespace: node, NodeID: node},
		Exports: []ganesha.Export{{
			ID: 1, Path: w.path, Pseudo: "/" + frozenShare, Clients: []ganesha.Client{realtest.Client(ganesha.ReadWrite, ganesha.SquashNone, realtest.Address1)},
			CephFS: &ganesha.CephFS{FileSystem: "fs1", User: ceph.ShareUser(w.identity, frozenShare)},
		}},
	})
}

// fence is a pass of the steward for the frozen pod. It returns the clients that are blocked.
func (w *frozenWorld) fence() []string {
	w.t.Helper()
	connection, err := w.fencer.connector.connected(w.t.Context(), &w.request.steward.Spec.Ceph)
	w.must(err)
	w.fencer.fencePods(w.t.Context(), connection, w.request, nil)
	answer := w.fencer.podFences["frozen"]
	if answer.Fault != "" || answer.Time == nil || len(answer.Addresses) == 0 {
		w.t.Fatalf("the fence: %+v", answer)
	}
	return answer.Addresses
}

// records are all recovery records of the data server.
func (w *frozenWorld) records() map[string]string {
	w.t.Helper()
	place, all := cephclient.Place{Pool: recoveryPool, Namespace: ceph.Node(w.identity, 0)}, map[string]string{}
	names, err := w.admin.Objects(w.t.Context(), place)
	w.must(err)
	for _, name := range names {
		object, err := w.admin.Read(w.t.Context(), place, name)
		w.must(err)
		text := "version " + fmt.Sprint(object.Version) + ", data " + hex.EncodeToString(object.Data)
		for _, key := range slices.Sorted(maps.Keys(object.Keys)) {
			text += fmt.Sprintf(", %s %q", key, object.Keys[key])
		}
		all[name] = text
	}
	return all
}

// changed lists the recovery records that are others than before.
func (w *frozenWorld) changed(before map[string]string) (text string) {
	now := w.records()
	for name := range now {
		if _, known := before[name]; !known {
			before[name] = ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now[name] != before[name] {
			text += fmt.Sprintf("\n%s was %q and is %q", name, before[name], now[name])
		}
	}
	return text
}

// readAll reads all blocks through a file.
func readAll(f *file) [][]byte {
	f.t.Helper()
	var all [][]byte
	for block := range blocks {
		answer := f.run(f.reading(uint64(block*blockEvery), blockSize)...)
		if answer.status != nfsv4.NFS4_OK {
			f.t.Fatalf("read block %d: %s", block, nfs.StatusName(answer.status))
		}
		all = append(all, dataOf(answer))
	}
	return all
}

func mustRead(f *file, who string, want [][]byte) {
	f.t.Helper()
	for block, data := range readAll(f) {
		if !bytes.Equal(data, want[block]) {
			f.t.Errorf("%s reads %.40q in block %d, want %.40q", who, data, block, want[block])
		}
	}
}

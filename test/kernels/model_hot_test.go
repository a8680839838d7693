package kernels

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
	"github.com/howdah/howdah/test/model"
)

const (
	hotShare, hotDirectory = "hot", "flat"
	hotMount               = "/mnt/" + hotShare
	// hotBytes are in each file, hotSeconds is how long a link takes for all files, and hotProcesses of each client read them.
	hotBytes, hotSeconds, hotProcesses = 768 << 10, 4, 8
)

// hotServers is how many clients and data servers the hot directory has at most.
func hotServers(t *testing.T) int {
	t.Helper()
	most := setting(t, "HOWDAH_MODEL_HOT", modelServers)
	if most < 2 || most > modelServers {
		t.Fatalf("HOWDAH_MODEL_HOT=%d: want 2 to %d", most, modelServers)
	}
	return most
}

// hotFiles is how many files the directory has: 254 with links of 400 Mbit/s.
func (b *bench) hotFiles() int { return int(b.run.Link/8*hotSeconds) / hotBytes }

// prepareHot makes a share whose files all data servers have, because the same directory of the first one's disk is mounted in the place of each
// one's own. It stands for CephFS; the data servers know nothing of it, and take it for their volumes.
func (b *bench) prepareHot(t *testing.T) {
	t.Helper()
	first := filepath.Join(b.ownerFolder(0), "volume", hotShare)
	layFlat(t, filepath.Join(first, hotDirectory), b.hotFiles())
	for i := 1; i < len(b.owners); i++ {
		folder := b.ownerFolder(i)
		if err := os.Mkdir(filepath.Join(folder, "volume", hotShare), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, root := range []string{"root", filepath.Join("root", serverpod.GaneshaRoot)} {
			host(t, "nsenter --mount=/proc/%d/ns/mnt mount --bind %s %s", b.owners[i].Process.Pid, first, filepath.Join(folder, root, "volumes", "0", hotShare))
		}
	}
	b.shareStorage(t, true)
	b.share(hotShare, 1, nil)
	b.eventually("the directory that was there before has an owner", func() bool { return b.hotOwner(t) != "" })
	b.shareStorage(t, false)
}

// layFlat makes the files that flat.py reads.
func layFlat(t *testing.T, directory string, files int) {
	t.Helper()
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, hotBytes)
	_, _ = rand.Read(content) // It never fails.
	for i := range files {
		name := strconv.Itoa(i)
		if err := os.WriteFile(filepath.Join(directory, name), append([]byte(name+"\n"), content[len(name)+1:]...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	host(t, "sync --file-system %s", directory)
}

// shareStorage has namespace servers believe that the data servers share their storage, or no longer. As with the operator, they read it in the DataServers'
// spec.ceph. A data server's process chose its back end when it started, by what was there then, so it stays at its volume. Other sections
// are measured without: what is on one data server's disk is not on the others'.
func (b *bench) shareStorage(t *testing.T, shared bool) {
	t.Helper()
	in := internalv1.CephFileSystem{}
	if shared {
		in = internalv1.CephFileSystem{Monitors: []string{"192.0.2.1:3300"}, FSID: "model", FileSystem: "model", RecoveryPool: "model", RecoveryUser: "model", SecretName: "model"}
	}
	for i := range b.owners {
		server, name := &internalv1.DataServer{}, naming.DataServer(fileServer, int32(i))
		b.edit(t, server, name, func() { server.Spec.Ceph = in })
		b.eventually(name+" has seen it", func() bool {
			if err := b.api.Get(t.Context(), types.NamespacedName{Namespace: kubeNamespace, Name: name}, server); err != nil {
				t.Fatal(err)
			}
			return server.Status.ObservedGeneration != nil && *server.Status.ObservedGeneration == server.Generation
		})
	}
}

// hotOwner is the address of the data server that owns the directory; "" if none does yet.
func (b *bench) hotOwner(t *testing.T) string {
	t.Helper()
	var directories internalv1.ShareDirectoryList
	if err := b.api.List(t.Context(), &directories); err != nil {
		t.Fatal(err)
	}
	for _, d := range directories.Items {
		if d.Spec.FileShareRef.Name == hotShare && d.Spec.Path == hotDirectory && d.Status.State == internalv1.DirectoryReady {
			ordinal, _ := naming.DataServerOrdinal(fileServer, d.Spec.DataServerRef.Name) // They are all this FileServer's.
			return ownerAddress(int(ordinal))
		}
	}
	return ""
}

// measureHot has some clients read all of one directory: first its owner serves it, then as many data servers as there are clients.
func (b *bench) measureHot(t *testing.T) {
	if b.rawRound != b.round {
		b.rawTCP(t, 1)
	}
	b.links(t, true, 0)
	b.shareStorage(t, true)
	owner := b.hotOwner(t)
	for _, k := range model.HotServers(b.hot) {
		clients := b.clients[:k]
		b.measureRawOfClients(t, clients)
		for _, servers := range []int{1, k} {
			from := b.heat(t, owner, clients, servers)
			t.Logf("round %d, data servers of the directory: %d; its clients have it from %s", b.round, servers, strings.Join(from, ", "))
			b.readAhead(t, model.UsualReadAhead)
			way := usual(model.HotReads, servers)
			way.Clients = k
			b.readFlat(t, way, clients)
		}
	}
	b.fromAll(t, b.clients[:b.hot], func(int) string { return "umount -i -R " + hotMount })()
	b.shareStorage(t, false)
}

// readFlat has clients read all files of the directory, and begin at the same moment: who begins later ends later, if each has a link of its own.
func (b *bench) readFlat(t *testing.T, way model.Way, clients []*kernelClient) {
	t.Helper()
	signal := func(c *kernelClient, name string) string { return filepath.Join(c.folder, "flat."+name) }
	for _, c := range clients {
		for _, name := range []string{"ready", "go"} {
			if err := os.RemoveAll(signal(c, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	wait := b.fromAll(t, clients, func(int) string {
		return fmt.Sprintf("python3 /host/flat.py %d %d %d %s/%s /host/flat", b.hotFiles(), hotBytes, hotProcesses, hotMount, hotDirectory)
	})
	b.eventually("all clients are ready to read", func() bool {
		return !slices.ContainsFunc(clients, func(c *kernelClient) bool {
			_, err := os.Stat(signal(c, "ready"))
			return err != nil
		})
	})
	b.measured(t, way, func() (much, seconds float64) {
		for _, c := range clients {
			if err := os.WriteFile(signal(c, "go"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		lines := wait()
		return float64(b.hotFiles() * hotBytes * len(clients)), span(t, lines)
	})
}

// measureRawOfClients finds what as many links carry as there are clients, each client through one.
func (b *bench) measureRawOfClients(t *testing.T, clients []*kernelClient) {
	t.Helper()
	b.measured(t, model.Way{Kind: model.RawTCP, Servers: len(clients), Clients: len(clients)}, func() (much, seconds float64) {
		for _, line := range b.fromAll(t, clients, func(i int) string {
			return fmt.Sprintf("python3 /host/receive.py %d %d %s", rawSeconds, rawPort, ownerAddress(i))
		})() {
			rate, err := strconv.ParseFloat(line, 64)
			if err != nil {
				t.Fatal(err)
			}
			much += rate
		}
		return much, 1
	})
}

// heat has some data servers serve the directory, 1 is its owner, and some clients mount it again. It gives the addresses that they have it from.
// That these are all different is up to the namespace servers, and shows in what is measured.
func (b *bench) heat(t *testing.T, owner string, clients []*kernelClient, servers int) (from []string) {
	t.Helper()
	share := &v1alpha1.FileShare{}
	b.edit(t, share, hotShare, func() {
		share.Spec.HotDirectories = nil
		if servers > 1 {
			share.Spec.HotDirectories = []v1alpha1.HotDirectories{{Paths: []string{hotDirectory}, DataServers: int32(servers)}}
		}
	})
	elsewhere := func(address string) bool { return address != owner }
	b.eventually(fmt.Sprintf("namespace servers know that %d data servers serve the directory", servers), func() bool {
		from = b.enterHot(t, clients)
		return slices.ContainsFunc(from, elsewhere) == (servers > 1)
	})
	if servers > 1 {
		from = b.enterHot(t, clients) // Some may have been too early.
	}
	return from
}

// enterHot has clients mount the share again and enter the directory. It gives the address that each has the directory from.
func (b *bench) enterHot(t *testing.T, clients []*kernelClient) (from []string) {
	t.Helper()
	for _, line := range b.fromAll(t, clients, func(int) string {
		return fmt.Sprintf(`mkdir -p %[1]s; ! mountpoint -q %[1]s || umount -i -R %[1]s || exit 1
mount -t nfs4 -o vers=4.1,%[2]s,nconnect=%[3]d %[4]s:/%[5]s %[1]s && ls %[1]s/%[6]s > /dev/null && grep " %[1]s/%[6]s " /proc/mounts`,
			hotMount, recommended, model.UsualConnections, namespaceServers, hotShare, hotDirectory)
	})() {
		address, _, _ := strings.Cut(line, ":")
		from = append(from, address)
	}
	return from
}

package kernels

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/howdah/howdah/api/v1alpha1"
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

// prepareHot makes a share whose files all data servers have.
func (b *bench) prepareHot(t *testing.T) {
	t.Helper()
	layFlat(t, b.oneStorage(t, hotShare, hotDirectory), b.hotFiles(), hotBytes)
	b.shareStorage(t, true)
	b.share(hotShare, 1, nil)
	b.eventually("the directory that was there before has an owner", func() bool { return b.directoryOwner(t, hotShare, hotDirectory) != "" })
	b.shareStorage(t, false)
}

// measureHot has some clients read all of one directory: first its owner serves it, then as many data servers as there are clients.
func (b *bench) measureHot(t *testing.T) {
	if b.rawRound != b.round {
		b.rawTCP(t, 1)
	}
	b.links(t, true, 0)
	b.shareStorage(t, true)
	owner := b.directoryOwner(t, hotShare, hotDirectory)
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
			hotMount, recommended, model.UsualConnections, source(namespaceServers), hotShare, hotDirectory)
	})() {
		address, _, _ := strings.Cut(line, ":/")
		from = append(from, strings.Trim(address, "[]"))
	}
	return from
}

package dataserver

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/nodeaddress"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/nfs4/client"
)

// onANodesNetwork: all ports are those of the node that the operator chose, nothing is at the usual ones, and the records that ganesha has of its
// clients under another host name are found.
func onANodesNetwork(t *testing.T) {
	const name, first, address = "on-a-node", 20490, "10.99.0.1:20490"
	firstPortOf[name] = first
	defer delete(firstPortOf, name)
	addressesInOf[name] = []netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")}
	defer delete(addressesInOf, name)
	s := boot(t, name, 1)
	s.apply(shortTimes(4))
	s.settle()
	if status, _ := s.status.Get(); status.FirstPort != first {
		t.Errorf("it reports the first port %d", status.FirstPort)
	}
	losesItsAddress(t, s, "10.99.0.1")
	if err := client.Null(t.Context(), "10.99.0.1:2049"); err == nil {
		t.Error("something answers at port 2049")
	}
	if !strings.Contains(getText(t, s.options.ganesha().MetricsURL()), "# TYPE") || !strings.HasSuffix(s.options.ganesha().MetricsURL(), ":20494/metrics") {
		t.Errorf("ganesha's metrics at %s", s.options.ganesha().MetricsURL())
	}

	const owner = "stays while the host name changes"
	folder := "/volumes/" + name + "/0/alpha"
	mustWork(t, "make a file", os.WriteFile(folder+"/file", nil, 0o666))
	mustWork(t, "let all write", os.Chmod(folder+"/file", 0o666))
	before := dialWireAs(t, owner, address, 1)
	before.results(user, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})
	before.opens(openBy(owner, "file"))
	handle := before.handle(user, lookUp("alpha", "0", "file")...)
	if used, err := s.options.ganesha().ReadConnections(); err != nil || used == 0 {
		t.Errorf("%d connections are counted: %v", used, err)
	}
	// There is a link to the records when grace has ended once.
	records := filepath.Join(volumesOf(name), "0", volumes.MetaDir, volumes.RecoveryDir, "v4recov")
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Readlink(filepath.Join(records, "training-0")); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	s.stop()

	elsewhere(t, records, "training-0", "node-a.example.com")
	s = boot(t, name, 1)
	s.apply(shortTimes(4))
	s.settle()
	after := dialWireAs(t, owner, address, 1)
	if status := after.Run(user, &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}}, reclaimBy(owner)); status != nfsv4.NFS4_OK {
		t.Errorf("the client can't reclaim: %s", client.StatusName(status))
	}
	if _, err := os.Lstat(filepath.Join(records, "node-a.example.com")); !os.IsNotExist(err) {
		t.Errorf("the other host's name is still there: %v", err)
	}
}

// losesItsAddress: a data server that serves says that its node has lost the address at which clients reach it, and that it is back.
func losesItsAddress(t *testing.T, s *dataServer, address string) {
	t.Helper()
	if status, _ := s.status.Get(); !slices.Equal(status.NetworkAddresses, []string{address}) {
		t.Errorf("it reports the addresses %v", status.NetworkAddresses)
	}
	found := s.addresses.read
	s.addresses.read = func() ([]nodeaddress.Address, error) { return nil, nil }
	if !s.addresses.look() {
		t.Error("the lost address is no change")
	}
	s.exporter.Wake()
	s.await("the loss of the address", func(status dataservertest.Reported) bool {
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		return ready.Reason == internalv1.ReasonNodeAddressMissing && ready.Message == "node node1 has no address in 10.99.0.0/16" && len(status.NetworkAddresses) == 0
	})
	s.addresses.read = found
	if !s.addresses.look() {
		t.Error("the address is back, and that is no change")
	}
	s.exporter.Wake()
	if status := s.settle(); !slices.Equal(status.NetworkAddresses, []string{address}) {
		t.Errorf("it is back, and it reports the addresses %v", status.NetworkAddresses)
	}
}

// elsewhere gives the recovery records the names that they have on another host.
func elsewhere(t *testing.T, records, host, other string) {
	t.Helper()
	target, err := os.Readlink(filepath.Join(records, host))
	mustWork(t, "read the link of the records", err)
	suffix := filepath.Base(target)[len(host):]
	mustWork(t, "move the records", os.Rename(filepath.Join(records, host+suffix), filepath.Join(records, other+suffix)))
	mustWork(t, "remove the link", os.Remove(filepath.Join(records, host)))
	mustWork(t, "link", os.Symlink(strings.TrimSuffix(target, filepath.Base(target))+other+suffix, filepath.Join(records, other)))
	entries, err := os.ReadDir(records)
	mustWork(t, "list", err)
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == host }) {
		t.Fatalf("%v", entries)
	}
}

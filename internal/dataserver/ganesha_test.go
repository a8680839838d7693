package dataserver

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/serverpod"
)

// timeout is how long a test waits for what must happen.
const timeout = 2 * time.Minute

var quiet = slog.New(slog.DiscardHandler)

// dataServer is a running supervisor with the real ganesha.
type dataServer struct {
	t          *testing.T
	dataServer *internalv1.DataServer
	want       dataservertest.Wanted
	desired    chan kubeapi.Desired
	status     *dataservertest.Statuses
	*process
	// logged has what it has logged.
	logged dataservertest.Lines
	stop   func()
}

// boot starts a supervisor on the volumes of the directory; the same directory is the same data server.
func boot(t *testing.T, name string, count int32) *dataServer {
	t.Helper()
	return bootOn(t, name, count, nil)
}

// bootOn is boot on another storage than volumes, unless it is nil.
func bootOn(t *testing.T, name string, count int32, storage backend.Backend) *dataServer {
	t.Helper()
	root := volumesOf(name)
	for index := range count {
		if err := os.MkdirAll(filepath.Join(root, strconv.Itoa(int(index))), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dataServer := &dataServer{
		t: t, dataServer: dataservertest.DataServer(count), desired: make(chan kubeapi.Desired, 1), status: &dataservertest.Statuses{SharesUnknown: storage != nil},
	}
	dataServer.want.DataServerSpec = dataServer.dataServer.Spec
	keys := keysOf(name)
	if _, err := os.Stat(keys.Current); err != nil {
		mustWork(t, "write a key", os.WriteFile(keys.Current, []byte("the key of " + name + ", cut to size")[:supervisor.HandleKeyBytes], 0o400))
	}
	options, err := Options{
		DataServer: "training-0", Namespace: "default", NodeName: "node1", PodIP: "10.99.0.1", VolumesRoot: root, Gateways: gatewaysOf[name],
		HandleKey: keys.Current, PreviousHandleKey: keys.Previous, FirstPort: firstPortOf[name], AddressesIn: addressesInOf[name],
		Certificate: certificateOf(t, name, dataservertest.TestAuthority), PreviousCertificate: "/run/none",
		Log: slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &dataServer.logged), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	options.GaneshaBinary = cmp.Or(ganeshaOf[name], options.GaneshaBinary)
	if storage == nil && !withoutRoot[name] && !isEmulated() {
		options.GaneshaRoot = serverpod.GaneshaRoot
	}
	var through server.Prober
	if made := proberOf[name]; made != nil {
		through = made(options.ganesha())
	}
	dataServer.process, err = newProcess(options, parts{
		reporter: dataServer.status, desired: dataServer.desired, isDeleted: func() bool { return false }, prober: through,
		storage: func(dataServer *internalv1.DataServer) backend.Backend {
			if storage != nil {
				return storage
			}
			if before := beforeOf[name]; before != nil {
				here := volumes.New(root, options.Log)
				here.CallBefore(before)
				return here
			}
			return storageOf(dataServer, options, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	dataServer.proxy.LogRefusals(0)
	if dataServer.addresses != nil {
		dataServer.addresses.look()
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended, proxied := make(chan error, 1), make(chan error, 1)
	go supervisor.ReapOrphans(ctx)
	go func() {
		defer close(ended) // It may end without an answer.
		ended <- dataServer.exporter.Run(ctx)
	}()
	go func() { proxied <- dataServer.proxy.ListenAndServe(ctx, options.ports().NFSTLS) }()
	go dataServer.moves.Run(ctx)
	dataServer.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
		dataServer.supervisor.Release() // As the end of the process does.
		if err := <-proxied; err != nil {
			t.Errorf("the TLS port ended with: %v", err)
		}
	})
	t.Cleanup(dataServer.stop)
	return dataServer
}

// volumesOf is where the volumes of a data server are.
func volumesOf(name string) string {
	if name == "own" {
		return ownRoot
	}
	return filepath.Join("/volumes", name)
}

// ganeshaOf names the binaries of data servers that boot must not give the image's.
var ganeshaOf = map[string]string{}

// isEmulated tells that ganesha is for another processor. QEMU has a thread of its own in each process, and with another thread there ganesha
// refuses to enter a root directory of its own (patch 0431).
func isEmulated() bool { return os.Getenv("HOWDAH_GANESHA_EMULATED") != "" }

// withoutRoot are the data servers on volumes whose ganesha gets no root directory of its own.
var withoutRoot = map[string]bool{}

// gatewaysOf are the addresses from which a data server's own node comes to it.
var gatewaysOf = map[string][]netip.Addr{}

// firstPortOf are the first ports of data servers on the network of their node.
var firstPortOf = map[string]int32{}

// addressesInOf are the networks in which data servers are reached at addresses of their node.
var addressesInOf = map[string][]netip.Prefix{}

// proberOf are the probers of data servers that boot must not give one that speaks NFS.
var proberOf = map[string]func(ganesha server.Ganesha) server.Prober{}

// beforeOf are called before each change of a data server's volumes.
var beforeOf = map[string]func(change string){}

// keysOf are the files of the keys of file handles, of the data server that boot makes of the name.
func keysOf(name string) supervisor.HandleKeys {
	return supervisor.HandleKeys{Current: "/run/handle-key-" + name, Previous: "/run/previous-handle-key-" + name}
}

// apply changes what is asked for, as the operator does, and gives it to the manager.
func (s *dataServer) apply(change func(*dataservertest.Wanted)) {
	s.t.Helper()
	change(&s.want)
	s.status.Take(&s.want)
	s.dataServer.Spec = *s.want.DataServerSpec.DeepCopy()
	s.dataServer.Generation++
	s.Offer()
}

func (s *dataServer) Offer() {
	s.desired <- kubeapi.Desired{Server: s.dataServer.DeepCopy(), Exports: s.status.List()}
}

// settle waits until everything that is asked for is served, and lets go of what was removed.
func (s *dataServer) settle() dataservertest.Reported {
	s.t.Helper()
	return s.await("what is asked for to be served", func(status dataservertest.Reported) bool {
		return status.ObservedGeneration != nil && *status.ObservedGeneration == s.dataServer.Generation &&
			meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) && s.status.IsUpToDate()
	})
}

func (s *dataServer) await(what string, good func(dataservertest.Reported) bool) dataservertest.Reported {
	s.t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		status, _ := s.status.Get()
		if good(status) {
			return status
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain for %s; the status is %+v", what, status)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// awaitStart waits until ganesha, which had been started so often, was started again and takes calls, and returns how long that took.
func (s *dataServer) awaitStart(starts int) time.Duration {
	s.t.Helper()
	began := time.Now()
	for state := s.supervisor.State(); state.Starts == starts || !state.Initialized; state = s.supervisor.State() {
		if time.Since(began) > 2*timeout {
			s.t.Fatal("ganesha does not come back")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

// from is a client with that address.
func (s *dataServer) from(address string) *client.Client {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
	defer cancel()
	c, err := client.Dial(ctx, address+":2049", client.Options{ClientOwner: "test " + address + " " + s.t.Name()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx) // The server may be gone by now.
	})
	return c
}

// fromReservedPort is a client with that address, and a source port that is reserved.
func (s *dataServer) fromReservedPort(address string) *client.Client {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
	defer cancel()
	next := 1023
	c, err := client.Dial(ctx, address+":2049", client.Options{
		ClientOwner: "test reserved " + address + " " + s.t.Name(),
		Dial: func(ctx context.Context, to string) (net.Conn, error) {
			for ; ; next-- {
				dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address), Port: next}}
				conn, err := dialer.DialContext(ctx, "tcp", to)
				if !errors.Is(err, syscall.EADDRINUSE) || next < 900 {
					return conn, err
				}
			}
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

func (s *dataServer) pid() int { return s.supervisor.State().PID }

var (
	root = client.Credentials{}
	user = client.Credentials{UID: 1000, GID: 1000}
)

func mustWork(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func mustFailWith(t *testing.T, what string, err error, status nfsv4.Nfsstat4) {
	t.Helper()
	var answer *client.StatusError
	if !errors.As(err, &answer) || answer.Status != status {
		t.Errorf("%s: %v, not %s", what, err, client.StatusName(status))
	}
}

// mustNotReach fails if the answer is about something in the export: what is not served tells nothing about what is in it, and
// namespace servers tell one from the other by this.
func mustNotReach(t *testing.T, export string, err error) {
	t.Helper()
	var answer *client.StatusError
	if !errors.As(err, &answer) || !strings.HasPrefix(export, answer.Path) {
		t.Errorf("an export that is not served: %v, about %+v", err, answer)
	}
}

func runScenarios(t *testing.T) {
	scenarios := []struct {
		name string
		run  func(*testing.T)
	}{
		{"shares come and go while the process stays", sharesComeAndGo},
		{"the first client block counts", firstClientBlockCounts},
		{"nodes are let in, and other addresses are not", nodesAreLetIn},
		{"namespace servers are trusted by proof alone", trustByProof},
		{"a question for directories is no call", askedForDirectories},
		{"nothing is reloaded when namespace servers come and go", comingAndGoing},
		{"namespace servers are not waited for in grace", ownClientsAreForgotten},
		{"without a good certificate clients are served", servedWithoutCertificate},
		{"a killed ganesha comes back as itself", killedGaneshaComesBack},
		{"directories that move wait and are gone", directoriesThatMove},
		{"users race for names", usersRaceForNames},
		{"clients of a move whose ganesha is killed wait", clientsOfAKilledMoveWait},
		{"a directory is copied through the port for servers", copiedThroughTheTunnel},
		{"the ends of ganesha are reported", endsAreReported},
		{"a restart that is pending is reported", aRestartIsPending},
		{"a client reclaims from another address", clientsAreKnownByTheirOwner},
		{"a slow start leaves clients their grace", graceIsForClients},
		{"clients of a long outage reclaim", clientsOfALongOutage},
		{"lost clients make grace no longer", lostClients},
		{"idle clients are not waited for after a stop", idleClients},
		{"a rule may have an address twice", addressTwice},
		{"a data server on its node's network has other ports, and knows its clients by another host name", onANodesNetwork},
		{"a client that reclaims may finish", whoReclaimsMayFinish},
		{"clients wait for a share that is not there", clientsWaitForAShare},
		{"a reclaim waits for a share that is not there", aReclaimWaitsForAShare},
		{"a refused lock is named as clients can read it", refusedLocks},
		{"a client that is late is kept", lateClientsAreKept},
		{"unfinished requests delay no other client", unfinishedRequests},
		{"large requests wake ganesha seldom", largeRequests},
		{"the gate admits what an export admits", gateAdmits},
		{"one address does not fill the connection table", tableIsShared},
		{"another client's session stays", sessionsAreTheirClients},
		{"a client that moves or restarts comes back", clientsComeBack},
		{"the recorded address reclaims first", recordedAddressesReclaimFirst},
		{"sessions end in a race", sessionsEndInARace},
		{"client IDs and sessions are bounded", clientsAreBounded},
		{"the addresses of a network are one client, and nodes are not", networksAreOneClient},
		{"silent clients are kept", silentClientsAreKept},
		{"owners are seen whoever looks meanwhile", ownersAreSeen},
		{"a new pod finds its exports and its clients", newPodFindsItsState},
		{"removed data goes, and not a byte more", removedDataGoes},
		{"removals and new shares are cut at any step", removalsAreCut},
		{"handles of removed data lead nowhere", handlesOfRemovedData},
		{"nothing is written while nothing changes", nothingIsWritten},
		{"a hundred shares are reloaded quickly", hundredShares},
		{"200 clients with 16 connections each", manyConnections},
		{"ganesha's counters are reported by share", metricsOfGanesha},
		{"the exporter is not reached from outside", exporterIsNotReached},
		{"silent clients of the exporter harm nothing", silenceHarmsNothing},
		{"grace is reported", graceIsReported},
		{"a thousand shares stand beside each other", thousandShares},
		{"forged handles are refused", forgedHandlesAreRefused},
		{"handles outlive restarts and the exchange of keys", handlesStayValid},
		{"an Export_Id that is used again has other handles", reusedIDsHaveOtherHandles},
		{"without a key nothing is served", nothingIsServedUnsigned},
		{"a ganesha that takes forged handles is stopped", unsignedGaneshaIsStopped},
		{"referrals can't be planted", referralsCantBePlanted},
		{"volumes that are folders are refused", sharedVolumesAreRefused},
		{"volumes that are file systems of their own serve", ownVolumesServe},
		{"a replaced volume is refused until the lost one is given up", replacedVolumeIsRefused},
		{"a share's directory that is made again has another identity", rootsHaveIdentities},
		{"a forged handle ends at the volume", aForgedHandleEndsAtTheVolume},
		{"read-only clients change nothing", readersChangeNothing},
		{"operations without a handle are refused", withoutAHandle},
		{"operations that are off are refused", operationsThatAreOff},
		{"requests that are sent again are harmless", sentAgain},
		{"a busy slot holds no thread", busySlots},
		{"VERIFY compares what was sent", verifyIsBounded},
		{"state IDs of another type are refused", statesOfAnotherType},
		{"state IDs of another client are refused", statesOfAnotherClient},
		{"names with a NUL are refused", namesWithNUL},
		{"squash holds whatever changed the export", squashHolds},
		{"nothing leads out of a share", nothingLeadsOut},
		{"shares of others are not shown", sharesOfOthers},
		{"whatever lies on a volume holds no thread", nothingHoldsAThread},
		{"extended attributes need permissions", xattrsNeedPermissions},
		{"a socket leads to no other file", func(t *testing.T) { socketsLeadNowhere(t, "sockets") }},
		{"a socket leads to no other file on an older kernel", func(t *testing.T) {
			ganeshaOf["older-sockets"] = "/usr/lib/howdah/older"
			socketsLeadNowhere(t, "older-sockets")
		}},
		{"a ganesha that was taken over stays in its root", takenOverGaneshaStays},
		{"slow operations are named", slowOperationsAreNamed},
		{"truncating ends set-user-ID", truncatingEndsSetUserID},
		{"names are on disk before the answer", namesAreOnDisk},
		{"a full volume stays served", aFullVolumeStaysServed},
		{"a volume without inodes is full", aVolumeWithoutInodesIsFull},
		{"a volume without a byte is served", aVolumeWithoutAByteIsServed},
	}
	for _, scenario := range scenarios {
		t.Run(scenario.name, scenario.run)
	}
}

func sharesComeAndGo(t *testing.T) {
	s := boot(t, "come-and-go", 2)
	began := time.Now()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	first := s.settle()
	t.Logf("FIGURE from the first DataServer to a served share: %s", time.Since(began).Round(time.Millisecond))
	pid := s.pid()
	c := s.from("10.99.0.1")
	mustWork(t, "mkdir as the owner", c.Mkdir(t.Context(), user, "/alpha/1/kept", client.MkdirOptions{Mode: 0o750}))
	kept, err := c.Stat(t.Context(), user, "/alpha/1/kept")
	mustWork(t, "stat", err)
	if kept.Owner != 1000 || kept.Mode != 0o750 || kept.FSIDMinor != uint64(first.Exports[0].ExportIDs[1]) {
		t.Errorf("attributes %+v", kept)
	}

	began = time.Now()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("beta"))
	})
	second := s.settle()
	t.Logf("FIGURE from a DataServer with one share more to its service: %s", time.Since(began).Round(time.Millisecond))
	_, err = c.Stat(t.Context(), user, "/beta/0")
	mustWork(t, "stat of the new share", err)
	_, err = c.Stat(t.Context(), user, "/alpha/1/kept")
	mustWork(t, "the old share beside the new one", err)

	s.apply(func(spec *dataservertest.Wanted) { spec.Exports = spec.Exports[1:] })
	s.settle()
	_, err = c.Stat(t.Context(), user, "/alpha/1/kept")
	mustFailWith(t, "stat in the share that left", err, nfsv4.NFS4ERR_NOENT)
	mustNotReach(t, "/alpha/1", err)
	_, err = c.Stat(t.Context(), user, "/beta/1")
	mustWork(t, "the other share", err)

	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("gamma"), dataservertest.ShareSpec("alpha"))
	})
	last := s.settle()
	again, err := c.Stat(t.Context(), user, "/alpha/1/kept")
	mustWork(t, "the data of the share that came back", err)
	if again.FileID != kept.FileID || again.FSIDMinor != kept.FSIDMinor {
		t.Errorf("the directory was %+v and is %+v", kept, again)
	}
	if !slices.Equal(idsOf(last, "alpha"), idsOf(first, "alpha")) || !slices.Equal(idsOf(last, "beta"), idsOf(second, "beta")) {
		t.Errorf("ids changed: %v, %v, %v", first.Exports, second.Exports, last.Exports)
	}
	for _, id := range idsOf(last, "gamma") {
		if slices.Contains(idsOf(last, "alpha"), id) || slices.Contains(idsOf(last, "beta"), id) {
			t.Errorf("id %d has two owners", id)
		}
	}
	if s.pid() != pid {
		t.Errorf("ganesha was process %d and is %d", pid, s.pid())
	}
}

func idsOf(status dataservertest.Reported, share string) []int32 {
	for _, export := range status.Exports {
		if export.ShareName == share {
			return export.ExportIDs
		}
	}
	return nil
}

func firstClientBlockCounts(t *testing.T) {
	rule := func(clients string, mode v1alpha1.AccessType, squash v1alpha1.Squash) v1alpha1.AccessRule {
		return v1alpha1.AccessRule{Clients: []string{clients}, AccessType: mode, Squash: squash}
	}
	s := boot(t, "first", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{
			dataservertest.ShareSpec("narrow", rule("10.99.0.1", v1alpha1.AccessReadWrite, v1alpha1.SquashRoot), rule("10.99.0.0/24", v1alpha1.AccessReadOnly, "")),
			dataservertest.ShareSpec("wide", rule("10.99.0.0/24", v1alpha1.AccessReadOnly, ""), rule("10.99.0.1", v1alpha1.AccessReadWrite, "")),
			dataservertest.ShareSpec("all", rule("0.0.0.0/0", "", v1alpha1.SquashAll)),
			dataservertest.ShareSpec("six", rule("::/0", "", "")),
			dataservertest.ShareSpec("reserved", v1alpha1.AccessRule{Clients: []string{"10.99.0.1"}, SourcePorts: v1alpha1.SourcePortsReserved}, rule("0.0.0.0/0", "", "")),
		}
	})
	s.settle()
	one, two, trusted := s.from("10.99.0.1"), s.from("10.99.0.2"), s.throughTLS("127.0.0.1", dataservertest.TestAuthority)
	mkdir := func(c *client.Client, as client.Credentials, path string) error {
		return c.Mkdir(t.Context(), as, path, client.MkdirOptions{Mode: 0o755})
	}
	mustWork(t, "the owner where its own rule comes first", mkdir(one, user, "/narrow/0/owner"))
	mustFailWith(t, "root where it is squashed", mkdir(one, root, "/narrow/0/root"), nfsv4.NFS4ERR_ACCESS)
	mustFailWith(t, "an address of the second, read-only rule", mkdir(two, user, "/narrow/0/two"), nfsv4.NFS4ERR_ROFS)
	mustFailWith(t, "an address whose own rule comes second", mkdir(one, user, "/wide/0/owner"), nfsv4.NFS4ERR_ROFS)
	mustFailWith(t, "the owner where all are squashed", mkdir(one, user, "/all/0/owner"), nfsv4.NFS4ERR_ACCESS)
	mustWork(t, "a namespace server's root", mkdir(trusted, root, "/narrow/0/namespace"))
	mustWork(t, "a namespace server's root where others only read", mkdir(trusted, root, "/wide/0/namespace"))
	mustWork(t, "a namespace server's root where all are squashed", mkdir(trusted, root, "/all/0/namespace"))
	mustWork(t, "a client from a reserved port, where others are refused", mkdir(s.fromReservedPort("10.99.0.1"), user, "/reserved/0/owner"))
	mustFailWith(t, "a client from another port, which a wider rule would let in", mkdir(one, user, "/reserved/0/no"), nfsv4.NFS4ERR_NOENT)
	mustWork(t, "an address of the next rule, from any port", mkdir(two, user, "/reserved/0/two"))
	mustWork(t, "a namespace server, from any port", mkdir(trusted, root, "/reserved/0/namespace"))
	var answer *client.StatusError
	_, err := one.Stat(t.Context(), root, "/six/0")
	mustFailWith(t, "an IPv4 client where only IPv6 ones are let in", err, nfsv4.NFS4ERR_NOENT)

	// The rules of a share that is being served.
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = slices.Clone(spec.Exports)
		spec.Exports[0].Access = []v1alpha1.AccessRule{rule("10.99.0.2", v1alpha1.AccessReadWrite, "")}
	})
	s.settle()
	mustWork(t, "an address that may write now", mkdir(two, user, "/narrow/0/two"))
	_, err = one.Stat(t.Context(), user, "/narrow/0/owner")
	mustFailWith(t, "an address that is let in no more", err, nfsv4.NFS4ERR_NOENT)
	mustNotReach(t, "/narrow/0", err)
	_, err = two.Stat(t.Context(), user, "/narrow/0/never-there")
	mustFailWith(t, "a name that is missing", err, nfsv4.NFS4ERR_NOENT)
	if errors.As(err, &answer); answer.Path != "/narrow/0/never-there" {
		t.Errorf("the server answered about %s", answer.Path)
	}
}

func killedGaneshaComesBack(t *testing.T) {
	s := boot(t, "killed", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	before := s.settle()
	pid := s.pid()
	identity, err := client.Identify(t.Context(), "10.99.0.1:2049")
	mustWork(t, "identify", err)
	began := time.Now()
	mustWork(t, "kill", syscall.Kill(pid, syscall.SIGKILL))
	refused := 0
	// A client of Linux that is refused waits for 3 s, then for 6, then for 12.
	notRefused := func() {
		connection, err := net.Dial("tcp", "10.99.0.1:2049")
		if err == nil {
			_ = connection.Close() // It is open.
		} else {
			refused++
		}
	}
	s.await("another process", func(dataservertest.Reported) bool { notRefused(); return s.pid() != 0 && s.pid() != pid })
	s.await("its service", func(dataservertest.Reported) bool { notRefused(); return s.probes.Fit(t.Context()) == nil })
	if refused > 0 {
		t.Errorf("clients were refused %d times", refused)
	}
	after := s.settle()
	t.Logf("FIGURE from kill -9 to Ready again: %s", time.Since(began).Round(time.Millisecond))
	if s.pid() == pid || s.pid() == 0 {
		t.Errorf("process %d after %d", s.pid(), pid)
	}
	again, err := client.Identify(t.Context(), "10.99.0.1:2049")
	mustWork(t, "identify", err)
	if again != identity || identity.Owner != "8c5b9a0e-2c57-4d6e-9c0e-0d6f7f0a1b2c-0" {
		t.Errorf("was %v and is %v", identity, again)
	}
	if !slices.Equal(idsOf(before, "alpha"), idsOf(after, "alpha")) {
		t.Errorf("ids %v became %v", before.Exports, after.Exports)
	}
	for _, path := range []string{serverpod.HealthPath, serverpod.ReadyPath, serverpod.MetricsPath} {
		answer := httptest.NewRecorder()
		s.handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if answer.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}

func newPodFindsItsState(t *testing.T) {
	s := boot(t, "pod", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha"), dataservertest.ShareSpec("beta")}
	})
	first := s.settle()
	mustWork(t, "chmod as a user would", os.Chmod("/volumes/pod/0/alpha", 0o700))
	for range 3 { // Unclean stops leave recovery directories behind.
		pid := s.pid()
		mustWork(t, "kill", syscall.Kill(pid, syscall.SIGKILL))
		s.await("the restart", func(dataservertest.Reported) bool { return s.pid() != 0 && s.pid() != pid })
		s.settle()
	}
	began := time.Now()
	s.stop()
	t.Logf("FIGURE graceful stop: %s", time.Since(began).Round(time.Millisecond))
	if status, _ := s.status.Get(); meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Reason != internalv1.ReasonStopping {
		t.Errorf("the stop is not in the status: %+v", status)
	}
	again := boot(t, "pod", 1)
	again.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("beta"), dataservertest.ShareSpec("alpha")}
	})
	second := again.settle()
	if !equality.Semantic.DeepEqual(first.Exports, second.Exports) {
		t.Errorf("exports %v became %v", first.Exports, second.Exports)
	}
	info, err := os.Stat("/volumes/pod/0/alpha")
	mustWork(t, "stat", err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the user's mode became %v", info.Mode())
	}
	entries, err := filepath.Glob("/volumes/pod/0/.howdah/ganesha/v4recov/training-0*")
	mustWork(t, "listing recovery directories", err)
	if len(entries) > 3 { // The link, its target and the new one while grace lasts.
		t.Errorf("leaked: %v", entries)
	}
}

func removedDataGoes(t *testing.T) {
	s := boot(t, "removed", 2)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("going"), dataservertest.ShareSpec("staying"), dataservertest.ShareSpec("wanted")}
	})
	s.settle()
	for _, name := range []string{"going", "staying", "wanted"} {
		mustWork(t, "write", os.WriteFile("/volumes/removed/1/"+name+"/file", []byte("data"), 0o644))
	}
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = spec.Exports[2:]
		spec.Removals = []string{"going", "never-there"}
	})
	status := s.settle()
	if !slices.Equal(status.Removed, []string{"going", "never-there", "staying"}) {
		t.Errorf("removed: %v", status.Removed)
	}
	for path, there := range map[string]bool{
		"/volumes/removed/0/going": false, "/volumes/removed/1/going": false,
		"/volumes/removed/1/staying/file": true, "/volumes/removed/1/wanted/file": true,
	} {
		if _, err := os.Lstat(path); (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
	}
	deadline := time.Now().Add(timeout)
	for {
		left, err := filepath.Glob("/volumes/removed/*/.howdah/trash/*")
		mustWork(t, "listing the trash", err)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("left in the trash: %v", left)
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Removals = nil
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("going"))
	})
	if status := s.settle(); len(status.Removed) != 0 {
		t.Errorf("still removed: %v", status.Removed)
	}
	entries, err := os.ReadDir("/volumes/removed/1/going")
	if err != nil || len(entries) != 0 {
		t.Errorf("a share that is made again has %v, %v", entries, err)
	}

	// The last ones: what is left is a configuration without exports.
	s.apply(func(spec *dataservertest.Wanted) { spec.Exports, spec.Removals = nil, []string{"going", "wanted"} })
	if status := s.settle(); !slices.Equal(status.Removed, []string{"going", "wanted"}) {
		t.Errorf("removed of the last shares: %v", status.Removed)
	}
	if _, err := os.Lstat("/volumes/removed/1/wanted"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the last share's data: %v", err)
	}
}

func nothingIsWritten(t *testing.T) {
	s := boot(t, "quiet", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	_, before := s.status.Get()
	file, err := os.Stat(s.options.configFile())
	mustWork(t, "stat", err)
	for range 50 {
		s.exporter.Wake()
		time.Sleep(10 * time.Millisecond)
	}
	s.Offer()
	time.Sleep(100 * time.Millisecond)
	if _, after := s.status.Get(); after != before {
		t.Errorf("%d writes of the status became %d: %s", before, after, s.status.ChangesSince(before))
	}
	if again, err := os.Stat(s.options.configFile()); err != nil || !again.ModTime().Equal(file.ModTime()) {
		t.Errorf("the configuration was written again: %v", err)
	}
}

func hundredShares(t *testing.T) {
	s := boot(t, "hundred", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		for i := range 100 {
			spec.Exports = append(spec.Exports, dataservertest.ShareSpec("share-"+strconv.Itoa(i)))
		}
	})
	began := time.Now()
	s.settle()
	t.Logf("FIGURE start with 100 shares to Ready: %s", time.Since(began).Round(time.Millisecond))
	pid := s.pid()
	began = time.Now()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("one-more"))
	})
	s.settle()
	t.Logf("FIGURE one share more to 100, until it was seen to serve: %s", time.Since(began).Round(time.Millisecond))
	if s.pid() != pid {
		t.Errorf("ganesha was restarted")
	}
}

package dataserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	diff "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/serverpod"
)

const patience = 2 * time.Minute

// memorySource stands in for the API: it keeps the statuses and counts their changes. That the API itself
// takes them is shown in TestTheDataServerInTheAPI.
type memorySource struct {
	mutex   sync.Mutex
	status  internalv1.DataServerStatus
	exports map[string]*internalv1.ShareExport // By share.
	writes  int
	// history has what each write changed, for a test that wants none.
	history []string
	// sharesUnknown: the storage can't tell which shares it has.
	sharesUnknown bool
	// downs counts how often an export that served ceased to.
	downs int
}

func (r *memorySource) report(_ context.Context, build func(internalv1.DataServerStatus) internalv1.DataServerStatus) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if next := build(*r.status.DeepCopy()); !equality.Semantic.DeepEqual(r.status, next) {
		r.history = append(r.history, diff.Diff(r.status, next))
		r.status = next
		r.writes++
	}
	return nil
}

func (r *memorySource) reportExports(_ context.Context, build func(*internalv1.ShareExport) internalv1.ShareExportStatus) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for share, export := range r.exports {
		next := build(export)
		if equality.Semantic.DeepEqual(export.Status, next) {
			continue
		}
		if serves(export) && !meta.IsStatusConditionTrue(next.Conditions, internalv1.ExportServing) && export.DeletionTimestamp == nil {
			r.downs++
		}
		r.history = append(r.history, diff.Diff(export.Status, next))
		if now := meta.IsStatusConditionTrue(next.Conditions, internalv1.ExportServing); now && !r.sharesUnknown && (r.status.Shares == nil ||
			!naming.DigestMayHave(*r.status.Shares, naming.ShareDirectoryName(share))) {
			return fmt.Errorf("share %s serves before the DataServer says that its volumes have it", share)
		}
		r.exports[share] = export.DeepCopy()
		r.exports[share].Status = next
		r.writes++
	}
	return nil
}

func serves(export *internalv1.ShareExport) bool {
	return meta.IsStatusConditionTrue(export.Status.Conditions, internalv1.ExportServing)
}

// wanted is what a test asks of a data server.
type wanted struct {
	internalv1.DataServerSpec
	// Exports are the shares to serve. One that leaves is deleted, its data stays.
	Exports []internalv1.ShareExportSpec
	// Removals are shares to delete with their data.
	Removals []string
}

// told is what the instance manager has reported.
type told struct {
	internalv1.DataServerStatus
	Exports []servedExport
	Removed []string
}

type servedExport struct {
	ShareName string
	ExportIDs []int32
}

// take makes the exports what is wanted, as the operator does.
func (r *memorySource) take(want *wanted) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	before := r.exports
	r.exports = map[string]*internalv1.ShareExport{}
	for _, spec := range want.Exports {
		share := spec.FileShareRef.Name
		export := before[share]
		if export == nil || export.DeletionTimestamp != nil {
			export = newExport(spec)
		}
		if !equality.Semantic.DeepEqual(export.Spec, spec) {
			export = export.DeepCopy()
			export.Spec = spec
			export.Generation++
		}
		r.exports[share] = export
	}
	remove := func(export *internalv1.ShareExport, policy internalv1.DataPolicy) {
		gone := export.DeepCopy()
		now := metav1.Now()
		gone.DeletionTimestamp, gone.Spec.DataPolicy = &now, policy
		gone.Generation++
		r.exports[export.Spec.FileShareRef.Name] = gone
	}
	for share, export := range before {
		if r.exports[share] == nil && export.DeletionTimestamp == nil {
			remove(export, internalv1.DataRetain)
		}
	}
	for _, share := range want.Removals {
		export := before[share]
		if export == nil {
			export = newExport(shareSpec(share))
		}
		remove(export, internalv1.DataDelete)
	}
}

var newestUID atomic.Int64

func newExport(spec internalv1.ShareExportSpec) *internalv1.ShareExport {
	uid := newestUID.Add(1)
	return &internalv1.ShareExport{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.ShareExport(spec.FileShareRef.Name, "training-0"), Namespace: "default", Generation: 1,
			UID: types.UID(strconv.FormatInt(uid, 10)), CreationTimestamp: metav1.Unix(1_700_000_000+uid, 0),
		},
		Spec: spec,
	}
}

// list are the exports as the watch has them, the oldest first.
func (r *memorySource) list() []*internalv1.ShareExport {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.SortedFunc(maps.Values(r.exports), func(a, b *internalv1.ShareExport) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
}

func (r *memorySource) get() (told, int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	all := told{DataServerStatus: *r.status.DeepCopy()}
	for _, share := range slices.Sorted(maps.Keys(r.exports)) {
		export := r.exports[share]
		if serves(export) {
			all.Exports = append(all.Exports, servedExport{share, export.Status.ExportIDs})
		}
		if meta.IsStatusConditionTrue(export.Status.Conditions, internalv1.ExportRemoved) {
			all.Removed = append(all.Removed, share)
		}
	}
	return all, r.writes
}

// changesSince is what writes have changed after the first of them.
func (r *memorySource) changesSince(write int) string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return strings.Join(r.history[write:], "\n")
}

// settled tells whether every export is as its newest generation asks for.
func (r *memorySource) settled() bool {
	for _, export := range r.list() {
		done := internalv1.ExportServing
		if export.DeletionTimestamp != nil {
			done = internalv1.ExportRemoved
		}
		if export.Status.ObservedGeneration == nil || *export.Status.ObservedGeneration != export.Generation ||
			!meta.IsStatusConditionTrue(export.Status.Conditions, done) {
			return false
		}
	}
	return true
}

// dataServer is a running instance manager with the real ganesha.
type dataServer struct {
	t          *testing.T
	dataServer *internalv1.DataServer
	want       wanted
	wishes     chan wish
	status     *memorySource
	manager    *manager
	stop       func()
}

// boot starts an instance manager on the volumes of the directory; the same directory is the same data server.
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
	server := &dataServer{
		t: t, dataServer: sampleServer(count), wishes: make(chan wish, 1), status: &memorySource{sharesUnknown: storage != nil},
	}
	server.want.DataServerSpec = server.dataServer.Spec
	keys := keysOf(name)
	if _, err := os.Stat(keys.current); err != nil {
		mustWork(t, "write a key", os.WriteFile(keys.current, []byte("the key of " + name + ", cut to size")[:handleKeyBytes], 0o400))
	}
	options, err := Options{
		DataServer: "training-0", Namespace: "default", NodeName: "node1", PodIP: "10.99.0.1", VolumesRoot: root,
		HandleKey: keys.current, PreviousHandleKey: keys.previous,
		Certificate: certificateOf(t, name, testAuthority), PreviousCertificate: "/run/none",
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	options.GaneshaBinary = cmp.Or(ganeshaOf[name], options.GaneshaBinary)
	server.manager, err = newManager(options, server.wishes, server.status, newNFSProber("training-0", options.own))
	if err != nil {
		t.Fatal(err)
	}
	server.manager.storage = storage
	ctx, cancel := context.WithCancel(context.Background())
	ended, proxied := make(chan error, 1), make(chan error, 1)
	go reapOrphans(ctx, func() int { return server.manager.ganesha.state().PID })
	if before := beforeOf[name]; before != nil && server.manager.storage == nil {
		here := volumes.New(root, options.Log)
		here.CallBefore(before)
		server.manager.storage = here
	}
	go func() {
		defer close(ended) // It may end without an answer.
		ended <- server.manager.run(ctx)
	}()
	go func() { proxied <- server.manager.proxy.listenAndServe(ctx, options.NFSTLSPort) }()
	server.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
		server.supervisor().port.release() // As the end of the process does.
		if err := <-proxied; err != nil {
			t.Errorf("the TLS port ended with: %v", err)
		}
	})
	t.Cleanup(server.stop)
	return server
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

// beforeOf are called before each change of a data server's volumes.
var beforeOf = map[string]func(change string){}

// keysOf are the files of the keys of file handles, of the data server that boot makes of the name.
func keysOf(name string) handleKeys {
	return handleKeys{current: "/run/handle-key-" + name, previous: "/run/previous-handle-key-" + name}
}

func sampleServer(volumes int32) *internalv1.DataServer {
	return &internalv1.DataServer{
		ObjectMeta: metav1.ObjectMeta{Name: "training-0", Namespace: "default", Generation: 1},
		Spec: internalv1.DataServerSpec{
			FileServerRef: internalv1.FileServerReference{Name: "training"}, ServerScope: "8c5b9a0e-2c57-4d6e-9c0e-0d6f7f0a1b2c",
			LeaseSeconds: 10, GraceSeconds: 20, Volumes: volumes,
			// The volumes of most tests are folders.
			SharedFileSystemPolicy: v1alpha1.SharedFileSystemAllow,
		},
	}
}

// shareSpec is an export of training-0.
func shareSpec(name string, rules ...v1alpha1.AccessRule) internalv1.ShareExportSpec {
	owner, group := int64(1000), int64(1000)
	if len(rules) == 0 {
		rules = []v1alpha1.AccessRule{{Clients: []string{"10.99.0.0/16"}}}
	}
	return internalv1.ShareExportSpec{
		FileServerRef: internalv1.FileServerReference{Name: "training"}, DataServerRef: internalv1.DataServerReference{Name: "training-0"},
		FileShareRef: internalv1.FileShareReference{Name: name}, UID: &owner, GID: &group, Mode: "0755", Access: rules, DataPolicy: internalv1.DataRetain,
	}
}

// apply changes what is asked for, as the operator does, and gives it to the manager.
func (s *dataServer) apply(change func(*wanted)) {
	s.t.Helper()
	change(&s.want)
	s.status.take(&s.want)
	s.dataServer.Spec = *s.want.DataServerSpec.DeepCopy()
	s.dataServer.Generation++
	s.offer()
}

func (s *dataServer) offer() {
	s.wishes <- wish{server: s.dataServer.DeepCopy(), exports: s.status.list()}
}

// settle waits until everything that is asked for is served, and lets go of what was removed.
func (s *dataServer) settle() told {
	s.t.Helper()
	return s.await("what is asked for to be served", func(status told) bool {
		return status.ObservedGeneration != nil && *status.ObservedGeneration == s.dataServer.Generation &&
			meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) && s.status.settled()
	})
}

func (s *dataServer) await(what string, good func(told) bool) told {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		status, _ := s.status.get()
		if good(status) {
			return status
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain for %s; the status is %+v", what, status)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// from is a client with that address.
func (s *dataServer) from(address string) *client.Client {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
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
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
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

func (s *dataServer) supervisor() *supervisor { return s.manager.ganesha.(*supervisor) }

func (s *dataServer) pid() int { return s.manager.ganesha.state().PID }

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
		{"a client reclaims from another address", clientsAreKnownByTheirOwner},
		{"a slow start leaves clients their grace", graceIsForClients},
		{"a client that is late is kept", lateClientsAreKept},
		{"unfinished requests delay no other client", unfinishedRequests},
		{"the gate admits what an export admits", gateAdmits},
		{"one address does not fill the connection table", tableIsShared},
		{"another client's session stays", sessionsAreTheirClients},
		{"a client that moves or restarts comes back", clientsComeBack},
		{"the recorded address reclaims first", recordedAddressesReclaimFirst},
		{"sessions end in a race", sessionsEndInARace},
		{"client IDs and sessions are bounded", clientsAreBounded},
		{"silent clients are kept", silentClientsAreKept},
		{"owners are seen whoever looks meanwhile", ownersAreSeen},
		{"a new pod finds its exports and its clients", newPodFindsItsState},
		{"removed data goes, and not a byte more", removedDataGoes},
		{"removals and new shares are cut at any step", removalsAreCut},
		{"handles of removed data lead nowhere", handlesOfRemovedData},
		{"nothing is written while nothing changes", nothingIsWritten},
		{"a hundred shares are reloaded quickly", hundredShares},
		{"200 clients with 16 connections each", manyConnections},
		{"what ganesha counts is told by share", metricsOfGanesha},
		{"the exporter is not reached from outside", exporterIsNotReached},
		{"silent clients of the exporter harm nothing", silenceHarmsNothing},
		{"grace is told", graceIsTold},
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
		{"a socket leads to no other file", socketsLeadNowhere},
		{"slow operations are named", slowOperationsAreNamed},
	}
	for _, scenario := range scenarios {
		t.Run(scenario.name, scenario.run)
	}
}

func sharesComeAndGo(t *testing.T) {
	s := boot(t, "come-and-go", 2)
	began := time.Now()
	s.apply(func(spec *wanted) { spec.Exports = []internalv1.ShareExportSpec{shareSpec("alpha")} })
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
	s.apply(func(spec *wanted) { spec.Exports = append(spec.Exports, shareSpec("beta")) })
	second := s.settle()
	t.Logf("FIGURE from a DataServer with one share more to its service: %s", time.Since(began).Round(time.Millisecond))
	_, err = c.Stat(t.Context(), user, "/beta/0")
	mustWork(t, "stat of the new share", err)
	_, err = c.Stat(t.Context(), user, "/alpha/1/kept")
	mustWork(t, "the old share beside the new one", err)

	s.apply(func(spec *wanted) { spec.Exports = spec.Exports[1:] })
	s.settle()
	_, err = c.Stat(t.Context(), user, "/alpha/1/kept")
	mustFailWith(t, "stat in the share that left", err, nfsv4.NFS4ERR_NOENT)
	mustNotReach(t, "/alpha/1", err)
	_, err = c.Stat(t.Context(), user, "/beta/1")
	mustWork(t, "the other share", err)

	s.apply(func(spec *wanted) {
		spec.Exports = append(spec.Exports, shareSpec("gamma"), shareSpec("alpha"))
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

func idsOf(status told, share string) []int32 {
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
	s.apply(func(spec *wanted) {
		spec.Exports = []internalv1.ShareExportSpec{
			shareSpec("narrow", rule("10.99.0.1", v1alpha1.AccessReadWrite, v1alpha1.SquashRoot), rule("10.99.0.0/24", v1alpha1.AccessReadOnly, "")),
			shareSpec("wide", rule("10.99.0.0/24", v1alpha1.AccessReadOnly, ""), rule("10.99.0.1", v1alpha1.AccessReadWrite, "")),
			shareSpec("all", rule("0.0.0.0/0", "", v1alpha1.SquashAll)),
			shareSpec("six", rule("::/0", "", "")),
			shareSpec("reserved", v1alpha1.AccessRule{Clients: []string{"10.99.0.1"}, SourcePorts: v1alpha1.SourcePortsReserved}, rule("0.0.0.0/0", "", "")),
		}
	})
	s.settle()
	one, two, trusted := s.from("10.99.0.1"), s.from("10.99.0.2"), s.throughTLS("127.0.0.1", testAuthority)
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
	mustFailWith(t, "a client from another port, whom a wider rule would let in", mkdir(one, user, "/reserved/0/no"), nfsv4.NFS4ERR_NOENT)
	mustWork(t, "an address of the next rule, from any port", mkdir(two, user, "/reserved/0/two"))
	mustWork(t, "a namespace server, from any port", mkdir(trusted, root, "/reserved/0/namespace"))
	var answer *client.StatusError
	_, err := one.Stat(t.Context(), root, "/six/0")
	mustFailWith(t, "an IPv4 client where only IPv6 ones are let in", err, nfsv4.NFS4ERR_NOENT)

	// The rules of a share that is being served.
	s.apply(func(spec *wanted) {
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
	s.apply(func(spec *wanted) { spec.Exports = []internalv1.ShareExportSpec{shareSpec("alpha")} })
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
	s.await("another process", func(told) bool { notRefused(); return s.pid() != 0 && s.pid() != pid })
	s.await("its service", func(told) bool { notRefused(); return s.manager.fit(t.Context()) == nil })
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
		s.manager.handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if answer.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}

func newPodFindsItsState(t *testing.T) {
	s := boot(t, "pod", 1)
	s.apply(func(spec *wanted) {
		spec.Exports = []internalv1.ShareExportSpec{shareSpec("alpha"), shareSpec("beta")}
	})
	first := s.settle()
	mustWork(t, "chmod as a user would", os.Chmod("/volumes/pod/0/alpha", 0o700))
	for range 3 { // Unclean stops leave recovery directories behind.
		pid := s.pid()
		mustWork(t, "kill", syscall.Kill(pid, syscall.SIGKILL))
		s.await("the restart", func(told) bool { return s.pid() != 0 && s.pid() != pid })
		s.settle()
	}
	began := time.Now()
	s.stop()
	t.Logf("FIGURE graceful stop: %s", time.Since(began).Round(time.Millisecond))
	if status, _ := s.status.get(); meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Reason != internalv1.ReasonStopping {
		t.Errorf("the stop is not in the status: %+v", status)
	}
	again := boot(t, "pod", 1)
	again.apply(func(spec *wanted) {
		spec.Exports = []internalv1.ShareExportSpec{shareSpec("beta"), shareSpec("alpha")}
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
	s.apply(func(spec *wanted) {
		spec.Exports = []internalv1.ShareExportSpec{shareSpec("going"), shareSpec("staying"), shareSpec("wanted")}
	})
	s.settle()
	for _, name := range []string{"going", "staying", "wanted"} {
		mustWork(t, "write", os.WriteFile("/volumes/removed/1/"+name+"/file", []byte("data"), 0o644))
	}
	s.apply(func(spec *wanted) {
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
	deadline := time.Now().Add(patience)
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
	s.apply(func(spec *wanted) {
		spec.Removals = nil
		spec.Exports = append(spec.Exports, shareSpec("going"))
	})
	if status := s.settle(); len(status.Removed) != 0 {
		t.Errorf("still removed: %v", status.Removed)
	}
	entries, err := os.ReadDir("/volumes/removed/1/going")
	if err != nil || len(entries) != 0 {
		t.Errorf("a share that is made anew has %v, %v", entries, err)
	}

	// The last ones: what is left is a configuration without exports.
	s.apply(func(spec *wanted) { spec.Exports, spec.Removals = nil, []string{"going", "wanted"} })
	if status := s.settle(); !slices.Equal(status.Removed, []string{"going", "wanted"}) {
		t.Errorf("removed of the last shares: %v", status.Removed)
	}
	if _, err := os.Lstat("/volumes/removed/1/wanted"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the last share's data: %v", err)
	}
}

func nothingIsWritten(t *testing.T) {
	s := boot(t, "quiet", 1)
	s.apply(func(spec *wanted) { spec.Exports = []internalv1.ShareExportSpec{shareSpec("alpha")} })
	s.settle()
	_, before := s.status.get()
	file, err := os.Stat(s.manager.configFile)
	mustWork(t, "stat", err)
	for range 50 {
		s.supervisor().changed() // Wakes the manager for a pass.
		time.Sleep(10 * time.Millisecond)
	}
	s.offer()
	time.Sleep(100 * time.Millisecond)
	if _, after := s.status.get(); after != before {
		t.Errorf("%d writes of the status became %d: %s", before, after, s.status.changesSince(before))
	}
	if again, err := os.Stat(s.manager.configFile); err != nil || !again.ModTime().Equal(file.ModTime()) {
		t.Errorf("the configuration was written again: %v", err)
	}
}

func hundredShares(t *testing.T) {
	s := boot(t, "hundred", 1)
	s.apply(func(spec *wanted) {
		for i := range 100 {
			spec.Exports = append(spec.Exports, shareSpec("share-"+strconv.Itoa(i)))
		}
	})
	began := time.Now()
	s.settle()
	t.Logf("FIGURE start with 100 shares to Ready: %s", time.Since(began).Round(time.Millisecond))
	pid := s.pid()
	began = time.Now()
	s.apply(func(spec *wanted) { spec.Exports = append(spec.Exports, shareSpec("one-more")) })
	s.settle()
	t.Logf("FIGURE one share more to 100, until it was seen to serve: %s", time.Since(began).Round(time.Millisecond))
	if s.pid() != pid {
		t.Errorf("ganesha was restarted")
	}
}

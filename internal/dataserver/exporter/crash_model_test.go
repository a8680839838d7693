package exporter

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/fileshare"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/directories"
	"github.com/howdah/howdah/internal/namespace/operations"
	nstree "github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

const (
	modelServers = 2
	modelVolumes = 2
)

// model is a FileServer with two data servers of two volumes each, two namespace servers and an operator: the real decisions of
// all of them and real directories, an API and ganeshas in memory, fake time.
type model struct {
	t        *testing.T
	root     string
	api      *modelAPI
	departed chan *modelProcess
	// telling: the trail is kept.
	telling bool

	mu     sync.Mutex
	random *rand.Rand
	// alive are the processes, by what they are: "operator", "ns-0", "ns-1", "fs-0", "fs-1".
	alive   map[string]*modelProcess
	trail   []string
	wrong   []string
	cutting func(p *modelProcess, what string) mishap
	calls   int
	// out are supervisors that stay away until then.
	out map[string]time.Time
	// laggy: now and then a watch lags far behind.
	laggy bool
}

func newModel(t *testing.T, seed uint64, telling bool) *model {
	m := &model{
		t: t, root: memoryDir(t), api: newModelAPI(), departed: make(chan *modelProcess, 100), telling: telling,
		random: rand.New(rand.NewPCG(seed, 11)), alive: map[string]*modelProcess{}, out: map[string]time.Time{},
		cutting: func(*modelProcess, string) mishap { return noMishap },
	}
	mustWork(t, "write a key", os.WriteFile(filepath.Join(m.root, "key"), make([]byte, supervisor.HandleKeyBytes), 0o400))
	fileServer := builders.FileServer("ns", "fs").Replicas(modelServers).Build()
	m.mustCreate(fileServer)
	fileServer.Status.Replicas = ptr.To[int32](modelServers)
	for i := range int32(modelServers) {
		dataServer := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: naming.DataServer("fs", i)}}
		dataServer.Labels = map[string]string{v1alpha1.FileServerLabel: "fs"}
		dataServer.Spec = internalv1.DataServerSpec{
			FileServerRef: internalv1.FileServerReference{Name: "fs"}, Address: fmt.Sprintf("10.9.0.%d", i), ServerScope: string(fileServer.UID),
			Volumes: modelVolumes, LeaseSeconds: 10, GraceSeconds: 20, SharedFileSystemPolicy: v1alpha1.SharedFileSystemAllow,
		}
		m.mustCreate(dataServer)
		fileServer.Status.Servers = append(fileServer.Status.Servers, v1alpha1.FileServerServerStatus{Name: dataServer.Name, State: v1alpha1.ServerStarting})
		for volume := range modelVolumes {
			mustWork(t, "make a volume", os.MkdirAll(filepath.Join(m.volumes(dataServer.Name), strconv.Itoa(volume)), 0o755))
		}
	}
	mustWork(t, "write the FileServer's status", m.api.update(fileServer, true))
	return m
}

// memoryDir is a directory that costs nothing to make durable, if there is one.
func memoryDir(t *testing.T) string {
	directory, err := os.MkdirTemp("/dev/shm", "howdah-crash-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	return directory
}

func (m *model) mustCreate(o client.Object) { mustWork(m.t, "create "+keyOf(o), m.api.create(o)) }

func (m *model) volumes(dataServer string) string {
	return filepath.Join(m.root, dataServer, "volumes")
}

func (m *model) note(format string, args ...any) {
	if !m.telling {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trail = append(m.trail, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// fault notes what must not be.
func (m *model) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	m.note("FAULT: %s", text)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.wrong, text) {
		m.wrong = append(m.wrong, text)
	}
}

func (m *model) latency() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Duration(1+m.random.IntN(3000)) * time.Microsecond
}

// lag is how far behind a watch is.
func (m *model) lag() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.laggy && m.random.IntN(12) == 0 {
		return time.Duration(m.random.IntN(3000)) * time.Millisecond
	}
	return time.Duration(1+m.random.IntN(5000)) * time.Microsecond
}

func (m *model) oneIn(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.IntN(n) == 0
}

func (m *model) between(least, most time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return least + time.Duration(m.random.Int64N(int64(most-least)))
}

func (m *model) cut(p *modelProcess, what string) mishap {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return m.cutting(p, what)
}

// cutWith has calls go wrong from now on, and counts them.
func (m *model) cutWith(cutting func(p *modelProcess, what string) mishap) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls, m.cutting = 0, cutting
}

func (m *model) ganeshaAt(address string) *modelGanesha {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range int32(modelServers) {
		if p := m.alive[naming.DataServer("fs", i)]; p != nil && address == fmt.Sprintf("10.9.0.%d", i) {
			return p.ganesha
		}
	}
	return nil
}

// begin starts everything. What ends is started again.
func (m *model) begin() (end func()) {
	var stopping, nursing sync.WaitGroup
	stop := make(chan struct{})
	launch := func(what string, start func() *modelProcess) {
		p := start()
		m.mu.Lock()
		m.alive[what] = p
		m.mu.Unlock()
	}
	for i := range int32(modelServers) {
		name := naming.DataServer("fs", i)
		launch(name, func() *modelProcess { return m.startManager(name) })
	}
	launch("ns-0", func() *modelProcess { return m.startNamespaceServer("ns-0") })
	launch("ns-1", func() *modelProcess { return m.startNamespaceServer("ns-1") })
	launch("operator", m.startOperator)
	m.elect()
	nursing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case p := <-m.departed:
				stopping.Go(func() { m.replace(p, stop) })
			}
		}
	})
	nursing.Go(func() { m.watchPods(stop) })
	nursing.Go(func() { m.collectGarbage(stop) })
	return func() {
		close(stop)
		nursing.Wait()
		stopping.Wait()
		for _, p := range m.alive {
			p.end()
		}
	}
}

// elect makes the first namespace server that lives the leader.
func (m *model) elect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range []string{"ns-0", "ns-1"} {
		if p := m.alive[name]; p != nil {
			dataServer := p.inner.(*namespaceServer)
			if !dataServer.keeping {
				dataServer.keeping = true
				p.running.Go(func() { dataServer.leader.Run(dataServer.ctx) })
			}
			return
		}
	}
}

// replace takes a process away that ended, and starts another.
func (m *model) replace(p *modelProcess, stop chan struct{}) {
	m.note("%s ends", p.name)
	m.mu.Lock()
	delete(m.alive, p.name)
	m.mu.Unlock()
	p.end()
	wait := m.between(time.Second, 6*time.Second)
	m.mu.Lock()
	if until, away := m.out[p.name]; away {
		wait = max(wait, time.Until(until))
	}
	m.mu.Unlock()
	select {
	case <-stop:
		return
	case <-time.After(wait):
	}
	m.note("%s starts", p.name)
	fresh := p.again()
	m.mu.Lock()
	m.alive[p.name] = fresh
	m.mu.Unlock()
	m.elect()
}

// watchPods is the FileServer's controller, as far as shares read what it writes.
func (m *model) watchPods(stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(m.between(time.Second, 4*time.Second)):
		}
		fileServer := &v1alpha1.FileServer{}
		if m.api.Get("fs", fileServer) != nil {
			continue
		}
		m.mu.Lock()
		for i := range fileServer.Status.Servers {
			state := &fileServer.Status.Servers[i]
			if p := m.alive[state.Name]; p == nil {
				state.State = v1alpha1.ServerUnavailable
			} else if p.inner.(*Exporter).Expected.ServedGeneration() != 0 {
				state.State = v1alpha1.ServerServing
			}
		}
		m.mu.Unlock()
		_ = m.api.update(fileServer, true)
	}
}

// collectGarbage deletes objects whose owner is gone, as Kubernetes does.
func (m *model) collectGarbage(stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(m.between(100*time.Millisecond, 3*time.Second)):
		}
		owners := map[types.UID]bool{}
		for _, share := range m.api.all("FileShare") {
			owners[share.GetUID()] = true
		}
		for _, o := range m.api.all("ShareExport") {
			owner := metav1.GetControllerOf(o)
			if owner != nil && !owners[owner.UID] && o.GetDeletionTimestamp() == nil {
				uid, version := o.GetUID(), o.GetResourceVersion()
				m.note("garbage collector: delete %s", keyOf(o))
				_ = m.api.remove(o, metav1.Preconditions{UID: &uid, ResourceVersion: &version})
			}
		}
	}
}

// startManager starts a supervisor with its ganesha.
func (m *model) startManager(name string) *modelProcess {
	p, ctx := m.newProcess(name, func() *modelProcess { return m.startManager(name) })
	run := filepath.Join(m.root, name, "run")
	mustWork(m.t, "make a directory", os.MkdirAll(run, 0o755))
	source := p.source(ctx, name)
	p.ganesha = &modelGanesha{p: p, configFile: filepath.Join(run, "ganesha.conf"), exports: map[string]*modelExport{}, odd: map[string]bool{}}
	storage := volumes.New(m.volumes(name), slog.New(&modelLog{p}))
	storage.CallBefore(p.before)
	metrics := server.NewMetrics("ns", name)
	working := New(Config{
		Storage:  func(*internalv1.DataServer) backend.Backend { return storage },
		NodeName: "node", PodIP: "10.9.1.1", ConfigFile: p.ganesha.configFile, Own: server.OwnAddress(),
		Keys:         supervisor.HandleKeys{Current: filepath.Join(m.root, "key"), Previous: filepath.Join(m.root, "none")},
		Certificates: Certificates{Current: filepath.Join(m.root, "none")},
		Prober:       p.ganesha, Ganesha: p.ganesha, Reporter: source, Desired: source.Desired(), IsDeleted: func() bool { return false },
		Connections: func() (int32, error) { return 0, nil }, Expected: &server.Expectation{}, Nodes: server.NewNodes(nil),
		Metrics: metrics, Proxy: server.NewProxy(nil, metrics, quiet), Log: slog.New(&modelLog{p}),
	})
	p.ganesha.changed = working.Wake
	p.inner = working
	p.running.Go(func() { _ = working.Run(ctx) })
	p.running.Go(func() {
		<-ctx.Done()
		<-time.After(time.Second) // A pass that hung on to something is over then.
	})
	return p
}

// namespaceServer is what runs in a process of that kind.
type namespaceServer struct {
	ctx     context.Context
	tree    *nstree.Tree
	leader  *directories.Leader
	handler *operations.Handler
	keeping bool
}

func (m *model) startNamespaceServer(name string) *modelProcess {
	p, ctx := m.newProcess(name, func() *modelProcess { return m.startNamespaceServer(name) })
	tree := nstree.New("fs")
	service := directories.NewService(directories.Config{
		Tree: tree, Client: &modelClient{p: p}, Owners: &modelNFS{p}, KubeNamespace: "ns", FileServer: "fs", Replica: name,
		Clock: clock.RealClock{}, Log: slog.New(&modelLog{p}), Concurrent: 64, Timeout: 10 * time.Second,
	})
	dataServer := &namespaceServer{ctx: ctx, tree: tree, leader: directories.NewLeader(service)}
	dataServer.handler = operations.New(operations.Config{
		Tree: tree, Mutator: service, Reachable: func(string) bool { return true }, Now: time.Now, LeaseSeconds: 60,
	})
	p.inner = dataServer
	p.follow(ctx, dataServer.Take)
	p.running.Go(func() { service.CheckUnconfirmed(ctx) })
	p.running.Go(func() { <-ctx.Done(); service.EndBehind(ctx) })
	return p
}

// Take is what internal/namespace does with what it watches.
func (s *namespaceServer) Take(e modelEvent) {
	switch o := e.object.(type) {
	case *internalv1.DataServer:
		s.tree.SetServer(o)
		s.leader.ServerChanged(o.Name)
	case *internalv1.ShareExport:
		if e.gone && s.tree.DeleteExport(o.Spec.DataServerRef.Name, o.Spec.FileShareRef.Name) || !e.gone && s.tree.SetExport(o) {
			s.leader.ShareChanged(o.Spec.FileShareRef.Name)
		}
	case *v1alpha1.FileShare:
		if e.gone {
			s.tree.DeleteShare(o.Name)
			for _, other := range s.tree.Shares() {
				s.leader.ShareChanged(other.Name)
			}
			return
		}
		s.tree.SetShare(fleet.ShareOf(o))
		s.leader.ShareChanged(o.Name)
	case *internalv1.ShareDirectory:
		if e.gone {
			s.leader.DirectoryDeleted(o)
			return
		}
		s.tree.SetDirectory(o)
		s.leader.Confirm(o)
		s.leader.DirectoryChanged(o.Spec.FileShareRef.Name, o.Spec.Path)
	}
}

// startOperator starts the controller of FileShares.
func (m *model) startOperator() *modelProcess {
	p, ctx := m.newProcess("operator", m.startOperator)
	p.cache = &modelCache{objects: map[string]client.Object{}}
	wakes := map[string]chan struct{}{"s": make(chan struct{}, 1), "other": make(chan struct{}, 1)}
	slim := map[string]toolscache.TransformFunc{}
	for o, kind := range controllers.CacheOptions(nil).ByObject {
		slim[kindOf(o)] = kind.Transform
	}
	p.follow(ctx, func(e modelEvent) {
		if transform := slim[kindOf(e.object)]; transform != nil {
			_, _ = transform(e.object)
		}
		p.cache.Set(e)
		for _, wake := range wakes {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	})
	c := &modelClient{p: p}
	live := &modelClient{p: p, live: true}
	reconciler := &fileshare.Reconciler{
		Client: c, Live: live, Applier: apply.New(c, live, fileshare.FieldManager), Clock: clock.RealClock{}, Events: &events.FakeRecorder{},
	}
	for share, wake := range wakes {
		p.running.Go(func() { p.reconcile(ctx, reconciler, share, wake) })
	}
	return p
}

// reconcile has a share looked at when anything changes, and when the controller wants to look again. That every change
// that counts brings a share back is not what is tried here.
func (p *modelProcess) reconcile(ctx context.Context, reconciler *fileshare.Reconciler, share string, wake chan struct{}) {
	again := time.NewTimer(time.Millisecond)
	backoff := 50 * time.Millisecond
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-again.C:
		}
		if !pauseFor(ctx, p.model.between(time.Millisecond, 100*time.Millisecond)) {
			return
		}
		result, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: share}})
		switch {
		case err != nil || result.Requeue: //nolint:staticcheck // Whoever sets it means it.
			again.Reset(backoff)
			backoff = min(2*backoff, 10*time.Second)
		case result.RequeueAfter > 0:
			again.Reset(result.RequeueAfter)
			backoff = 50 * time.Millisecond
		default:
			backoff = 50 * time.Millisecond
		}
	}
}

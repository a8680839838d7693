package namespace

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/test/builders"
	"github.com/howdah/howdah/test/freeport"
	"github.com/howdah/howdah/test/tokens"
)

const fileServer = "fs"

// config is that of the API server of all tests; nil without KUBEBUILDER_ASSETS.
var config *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	switch {
	case os.Getenv(hostileServer) != "":
		os.Exit(serveHostile())
	case os.Getenv(hostileAttack) != "":
		os.Exit(runAttack())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run()
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths:        []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 3 * time.Minute, // machines that do other things, too
		ControlPlaneStopTimeout:  time.Minute,
	}
	started, err := environment.Start()
	if err != nil {
		panic(err)
	}
	config = rest.CopyConfig(started)
	config.QPS = -1
	admin, err := client.New(config, client.Options{})
	if err != nil {
		panic(err)
	}
	if err := tokens.Install(context.Background(), admin, filepath.Join("..", "..")); err != nil {
		panic(err)
	}
	defer func() {
		if err := environment.Stop(); err != nil {
			panic(err)
		}
	}()
	return m.Run()
}

// world is a Kubernetes namespace with data servers, and namespace servers for them.
type world struct {
	t         *testing.T
	api       client.Client
	namespace string
	owners    []*ownertest.Owner
}

// newWorld makes a world with a number of data servers that serve no share.
func newWorld(t *testing.T, servers int) *world {
	t.Helper()
	if config == nil {
		t.Skip("KUBEBUILDER_ASSETS is not set: there is no API server to test with")
	}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := api.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, api: api, namespace: ns.Name}
	w.grant(int32(servers))
	for i := range servers {
		owner := ownertest.Start(t, naming.DataServerOwner(ownertest.FileServerUID, int32(i)), naming.DataServer(fileServer, int32(i)))
		w.owners = append(w.owners, owner)
		server := &internalv1.DataServer{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, Name: naming.DataServer(fileServer, int32(i)), Labels: naming.SelectDataServers(fileServer),
			},
			Spec: internalv1.DataServerSpec{
				FileServerRef: internalv1.FileServerReference{Name: fileServer}, Address: owner.Address, ServerScope: ownertest.FileServerUID, LeaseSeconds: 10, GraceSeconds: 20, Volumes: 1,
				NodeNetworks: []string{"127.0.0.0/8"},
			},
		}
		w.create(server)
		server.Status.Conditions = builders.ReadyConditions()
		if err := api.Status().Update(t.Context(), server); err != nil {
			t.Fatal(err)
		}

	}
	return w
}

// grant makes the account of namespace servers with the role that the operator gives it.
func (w *world) grant(servers int32) {
	w.t.Helper()
	for _, child := range desired.FileServer(desired.FileServerInput{
		FileServer: builders.FileServer(w.namespace, fileServer).Build(), Replicas: servers,
	}) {
		switch child := child.(type) {
		case *corev1ac.ServiceAccountApplyConfiguration, *rbacv1ac.RoleApplyConfiguration, *rbacv1ac.RoleBindingApplyConfiguration:
			if err := w.api.Apply(w.t.Context(), child, client.FieldOwner("test")); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := w.api.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// share makes a share that everybody may write to, on all data servers.
func (w *world) share(name string, depth int32) *v1alpha1.FileShare {
	w.t.Helper()
	s := &v1alpha1.FileShare{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       v1alpha1.FileShareSpec{FileServerRef: v1alpha1.FileServerReference{Name: fileServer}, Path: "/" + name, Depth: depth, Mode: "0777"},
	}
	w.create(s)
	w.inventoried(s)
	for i := range w.owners {
		w.owners[i].Put(naming.ExportPseudo(name, 0), ownertest.Directory{Mode: 0o777})
		w.serves(i, name)
	}
	return s
}

// inventoried has the operator say that all directories of a share are known.
func (w *world) inventoried(s *v1alpha1.FileShare) {
	w.t.Helper()
	s.Status.Conditions = builders.InventoriedConditions()
	if err := w.api.Status().Update(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

// serves has a data server report that it serves a share.
func (w *world) serves(i int, share string) {
	w.t.Helper()
	export := builders.ShareExport(w.namespace, fileServer, share, naming.DataServer(fileServer, int32(i)))
	status := export.Status
	w.create(export)
	export.Status = status
	if err := w.api.Status().Update(w.t.Context(), export); err != nil {
		w.t.Fatal(err)
	}
}

// setReady has a data server report whether it is ready; one that is not serves nothing.
func (w *world) setReady(i int, ready metav1.ConditionStatus) {
	w.t.Helper()
	o := &internalv1.DataServer{}
	key := client.ObjectKey{Namespace: w.namespace, Name: naming.DataServer(fileServer, int32(i))}
	if err := w.api.Get(w.t.Context(), key, o); err != nil {
		w.t.Fatal(err)
	}
	o.Status.Conditions[0].Status = ready
	if err := w.api.Status().Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// server is a namespace server under test.
type serverUnderTest struct {
	address string
	// manager is the address of its probes and metrics.
	manager string
	// waitingRoom is where clients of data servers without a pod wait.
	waitingRoom string
	// outside is the door for clients outside the cluster.
	outside string
	stop    func()
}

// serve starts a namespace server and waits until it is ready.
func (w *world) serve(replica string) *serverUnderTest {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &serverUnderTest{address: freeAddress(w.t), manager: freeAddress(w.t), waitingRoom: freeAddress(w.t), outside: freeAddress(w.t)}
	// A server that is started again has a pod's name and token again.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: replica}}
	if err := w.api.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	own, err := tokens.Pod(ctx, w.api, config, w.namespace, naming.NamespaceServers(fileServer), replica)
	if err != nil {
		w.t.Fatal(err)
	}
	var log *slog.Logger
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	certificate := ownertest.Certificate(w.t)
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, own, Options{
			FileServer: fileServer, KubeNamespace: w.namespace, Replica: replica, Listen: s.address, Manager: s.manager, WaitingRoom: s.waitingRoom, Log: log,
			ListenOutside: s.outside, Certificate: certificate,
		})
	}()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the namespace server ended with %v", err)
		}
	}
	w.t.Cleanup(s.stop)
	w.eventually("the namespace server is ready", func() bool {
		res, err := http.Get("http://" + s.manager + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return s
}

// mount makes a session with a namespace server.
func (w *world) mount(s *serverUnderTest) *nfs.Client {
	w.t.Helper()
	c, err := nfs.Dial(w.t.Context(), s.address, nfs.Options{ClientOwner: w.t.Name() + s.address})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// directory is the ShareDirectory of a path, or nil.
func (w *world) directory(share, path string) *internalv1.ShareDirectory {
	w.t.Helper()
	o := &internalv1.ShareDirectory{}
	err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: naming.Directory(fileServer, share, path)}, o)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return o
}

// declare makes the ShareDirectory of a declared directory.
func (w *world) declare(share *v1alpha1.FileShare, path string, server int) *internalv1.ShareDirectory {
	w.t.Helper()
	volume, uid, gid := int32(0), int64(7), int64(8)
	o := &internalv1.ShareDirectory{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: naming.Directory(fileServer, share.Name, path),
			Labels: map[string]string{
				v1alpha1.FileServerLabel: fileServer, v1alpha1.FileShareLabel: share.Name, v1alpha1.DataServerLabel: naming.DataServer(fileServer, int32(server)),
			},
		},
		Spec: internalv1.ShareDirectorySpec{
			FileServerRef: internalv1.FileServerReference{Name: fileServer}, FileShareRef: internalv1.FileShareReference{Name: share.Name}, Path: path, DataServerRef: internalv1.DataServerReference{Name: naming.DataServer(fileServer, int32(server))},
			Volume: &volume, UID: &uid, GID: &gid, Mode: "0750",
		},
	}
	w.create(o)
	return o
}

// ownersOf are the data servers that have a directory.
func (w *world) ownersOf(share, path string) (out []int) {
	for i, o := range w.owners {
		if _, ok := o.Get(tree.ExportPath(share, 0, path)); ok {
			out = append(out, i)
		}
	}
	return out
}

// testTimeout is for what takes milliseconds unless the machine is very busy.
const testTimeout = 3 * time.Minute

func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(testTimeout)
	for !is() {
		if time.Now().After(deadline) {
			w.t.Fatalf("it did not come to pass in %s that %s", testTimeout, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

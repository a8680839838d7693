package kernels

import (
	"crypto/rand"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

const (
	fronts        = 2 // namespace servers
	fileServer    = "fs"
	kubeNamespace = "default"
	// scope stands for the FileServer's UID.
	scope = "kernels"
	// comeUp is how long an owner or a namespace server may take.
	comeUp = 2 * time.Minute
)

// size is how large a world is.
type size struct {
	owners int // data servers
	// clientMemory is that of each client machine, in MiB.
	clientMemory int
}

// small is the world of most tests.
var small = size{owners: 2, clientMemory: 512}

// world is a FileServer without an operator: the test itself writes what the operator would.
type world struct {
	t       *testing.T
	api     client.Client
	clients []*kernelClient
	scratch string
	// binary is howdah, ganesha a Debian root with nfs-ganesha, root the clients' root with the kernels.
	binary, ganesha, root string
	kubeconfig            string
	authority             *mtls.Authority
	// owners are the data servers.
	owners []*exec.Cmd
}

// needed is an environment variable that hack/test-kernels.sh sets.
func needed(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run hack/test-kernels.sh", name)
	}
	return value
}

// newWorld starts all that there is, of a size, with a client for each of the kernels that choose leaves of those that start here.
func newWorld(t *testing.T, size size, choose func(kernels []string) []string) *world {
	t.Helper()
	w := &world{
		t: t, owners: make([]*exec.Cmd, size.owners),
		binary: needed(t, "HOWDAH_BINARY"), ganesha: needed(t, "HOWDAH_GANESHA_ROOT"), root: needed(t, "HOWDAH_CLIENTS_ROOT"),
	}
	// Not t.TempDir: ganesha does not export file systems of type tmpfs, which /tmp may be.
	scratch, err := os.MkdirTemp(needed(t, "HOWDAH_KERNELS_SCRATCH"), "")
	if err != nil {
		t.Fatal(err)
	}
	w.scratch = scratch
	if w.authority, err = mtls.NewAuthority(scope); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(scratch); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	versions := choose(kernels(t, w.root))
	layNetwork(t, size.owners, len(versions))
	w.startAPI()
	w.declareFileServer()
	for i := range size.owners {
		w.declareOwner(i)
		w.makeFolder(i)
		w.startOwner(i)
	}
	w.startNamespaceServers()
	for i, version := range versions {
		w.clients = append(w.clients, bootClient(t, w.root, version, i, scratch, size.clientMemory))
	}
	return w
}

func (w *world) startAPI() {
	w.t.Helper()
	environment := &envtest.Environment{
		CRDDirectoryPaths:        []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	server := environment.ControlPlane.GetAPIServer()
	server.SecureServing.Address, server.SecureServing.Port = testAddress, "6443"
	server.Configure().Set("service-cluster-ip-range", addresses.apiServices) // The API server wants it of its own family.
	config, err := environment.Start()
	w.t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			w.t.Errorf("stopping the API server: %v", err)
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.kubeconfig = filepath.Join(w.scratch, "kubeconfig")
	if err := os.WriteFile(w.kubeconfig, environment.KubeConfig, 0o600); err != nil {
		w.t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, internalv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			w.t.Fatal(err)
		}
	}
	if w.api, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		w.t.Fatal(err)
	}
}

// program starts a program of the test, with a log that is shown if the test fails. It ends with the test.
func (w *world) program(log string, attributes *syscall.SysProcAttr, env []string, args ...string) *exec.Cmd {
	w.t.Helper()
	path := filepath.Join(w.scratch, log+".log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	command := exec.Command(args[0], args[1:]...)
	command.Env = append(os.Environ(), env...)
	command.Stdout, command.Stderr, command.SysProcAttr = file, file, attributes
	if err := command.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if text, err := os.ReadFile(path); w.t.Failed() && err == nil {
			w.t.Logf("the end of %s's log:\n%s", log, text[max(0, len(text)-4000):])
		}
	})
	return command
}

// ownerFolder has what a data server keeps when it is started again.
func (w *world) ownerFolder(i int) string {
	return filepath.Join(w.scratch, naming.DataServer(fileServer, int32(i)))
}

func (w *world) makeFolder(i int) {
	w.t.Helper()
	if err := os.MkdirAll(w.ownerFolder(i), 0o755); err != nil {
		w.t.Fatal(err)
	}
	host(w.t, "cp %s %s/kubeconfig", w.kubeconfig, w.ownerFolder(i))
	key := make([]byte, 16)
	_, _ = rand.Read(key) // It never fails.
	if err := os.WriteFile(filepath.Join(w.ownerFolder(i), "handle-key"), key, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.certify(filepath.Join(w.ownerFolder(i), "certificate.pem"), func() ([]byte, error) {
		return w.authority.DataServer(naming.DataServer(fileServer, int32(i)))
	})
}

// certify writes a certificate by which servers know each other.
func (w *world) certify(path string, issue func() ([]byte, error)) {
	w.t.Helper()
	bundle, err := issue()
	if err == nil {
		err = os.WriteFile(path, bundle, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// startOwner starts a data server's supervisor in its network namespace.
func (w *world) startOwner(i int) {
	w.t.Helper()
	name, folder := naming.DataServer(fileServer, int32(i)), w.ownerFolder(i)
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	w.owners[i] = w.program(name, &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL,
	}, []string{envStage + "=" + stageOwner, "POD_IP=" + ownerAddress(i), "POD_UID=" + string(uuid.NewUUID())},
		"ip", "netns", "exec", ownerNetwork(i), self, name, w.ganesha, folder)
}

func (w *world) startNamespaceServers() {
	w.t.Helper()
	certificate := filepath.Join(w.scratch, "namespace.pem")
	w.certify(certificate, w.authority.NamespaceServers)
	for i := range fronts {
		name, address := namespaceNetwork(i), namespaceAddress(i)
		w.program(name, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, []string{"KUBECONFIG=" + w.kubeconfig},
			"ip", "netns", "exec", name,
			w.binary, "namespace", "--file-server", fileServer, "--namespace", kubeNamespace, "--replica", name,
			"--listen", net.JoinHostPort(address, "2049"), "--manager", net.JoinHostPort(address, "9588"), "--certificate", certificate)
		w.eventually(name+" is ready", func() bool {
			res, err := http.Get("http://" + net.JoinHostPort(address, "9588") + "/readyz")
			if err != nil {
				return false
			}
			_ = res.Body.Close()
			return res.StatusCode == http.StatusOK
		})
	}
	lead(w.t, 0)
}

// declareFileServer has namespace servers know the address that clients mount.
func (w *world) declareFileServer() {
	w.t.Helper()
	fs := builders.FileServer(kubeNamespace, fileServer).Build()
	w.create(fs)
	fs.Status.Address = namespaceServers
	if err := w.api.Status().Update(w.t.Context(), fs); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) declareOwner(i int) {
	w.t.Helper()
	w.create(&internalv1.DataServer{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: kubeNamespace, Name: naming.DataServer(fileServer, int32(i)), Labels: naming.SelectDataServers(fileServer),
		},
		Spec: internalv1.DataServerSpec{
			FileServerRef: internalv1.FileServerReference{Name: fileServer}, Address: ownerAddress(i), ServerScope: scope,
			LeaseSeconds: 10, GraceSeconds: 20, Volumes: 1,
			SharedFileSystemPolicy: v1alpha1.SharedFileSystemAllow, NodeNetworks: []string{clientsRange},
		},
	})
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := w.api.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// everybody is the access rule of shares that say nothing else: all clients are nodes.
var everybody = []v1alpha1.AccessRule{{Clients: []string{v1alpha1.ClientNodes}}}

// share makes a share on all owners, and waits until they serve it.
func (w *world) share(name string, depth int32, edit func(*v1alpha1.FileShareSpec)) {
	w.t.Helper()
	s := &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Namespace: kubeNamespace, Name: name}}
	s.Spec = v1alpha1.FileShareSpec{
		FileServerRef: v1alpha1.FileServerReference{Name: fileServer}, Path: "/" + name, Depth: depth, Mode: "0777",
	}
	if edit != nil {
		edit(&s.Spec)
	}
	w.create(s)
	s.Status.Conditions = builders.InventoriedConditions()
	if err := w.api.Status().Update(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
	for i := range w.owners {
		export := builders.ShareExport(kubeNamespace, fileServer, name, naming.DataServer(fileServer, int32(i)))
		export.Spec.Mode, export.Spec.Access = "0777", everybody
		w.create(export)
	}
	w.eventually("the owners serve "+name, func() bool {
		for i := range w.owners {
			if !w.serves(i, name) {
				return false
			}
		}
		return true
	})
}

func (w *world) serves(i int, share string) bool {
	w.t.Helper()
	return conditions.IsTrue(w.export(i, share).Status.Conditions, internalv1.ExportServing)
}

func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(comeUp)
	for !is() {
		if time.Now().After(deadline) {
			w.t.Fatalf("it did not come to pass in %v that %s", comeUp, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

package failover

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/controllers"
	"github.com/howdah/howdah/test/tokens"
)

const (
	// nodes is one more than there are data servers: one is left empty, as a lost node is once it is back.
	nodes       = 4
	dataServers = 3

	kubeNamespace = "ml"
	fileServer    = "training"
	operatorUser  = "howdah-operator"

	// serverImage and howdahImage stand for the images: no program is pulled.
	serverImage, howdahImage = "registry.invalid/server:run", "registry.invalid/howdah:run"

	// comeUp bounds what is to happen before anything is lost.
	comeUp = 5 * time.Minute
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(envContainer); folder != "" {
		fmt.Fprintln(os.Stderr, "container:", become(folder))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// world is a cluster without kubelets.
type world struct {
	t       *testing.T
	config  *rest.Config
	api     client.WithWatch
	kube    *kubernetes.Clientset
	scratch string
	// image is the root directory of the server image, binary the program in it, assets a folder with Kubernetes' programs.
	image, binary, assets string
	environment           *envtest.Environment
	nodes                 []*node
}

// needed is an environment variable that hack/bench-failover.sh sets.
func needed(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run hack/bench-failover.sh", name)
	}
	return value
}

// newWorld starts all but the data servers.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, scratch: filepath.Join(needed(t, "HOWDAH_FAILOVER_SCRATCH"), "failover"), image: needed(t, "HOWDAH_GANESHA_ROOT"),
		binary: needed(t, "HOWDAH_BINARY"), assets: needed(t, "KUBEBUILDER_ASSETS"),
	}
	if err := os.Mkdir(w.scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	layNetwork(t, nodes)
	w.startAPI()
	w.startKubernetes()
	w.startOperator()
	for i := range nodes {
		w.nodes = append(w.nodes, w.newNode(i))
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) startAPI() {
	w.t.Helper()
	w.environment = &envtest.Environment{
		CRDDirectoryPaths:        []string{filepath.Join(w.repository(), "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	server := w.environment.ControlPlane.GetAPIServer()
	server.SecureServing.Address, server.SecureServing.Port = machineAddress, "6443"
	server.Configure().Set("service-cluster-ip-range", allServices).Set("advertise-address", machineAddress)
	config, err := w.environment.Start()
	w.t.Cleanup(func() {
		if err := w.environment.Stop(); err != nil {
			w.t.Errorf("stopping the API server: %v", err)
		}
	})
	w.must(err)
	w.config = rest.CopyConfig(config)
	w.config.QPS = -1
	scheme, err := controllers.Scheme()
	w.must(err)
	w.api, err = client.NewWithWatch(w.config, client.Options{Scheme: scheme})
	w.must(err)
	w.kube, err = kubernetes.NewForConfig(w.config)
	w.must(err)
	w.must(os.WriteFile(w.file("kubeconfig"), w.environment.KubeConfig, 0o600))
	w.must(tokens.Install(w.t.Context(), w.api, w.repository()))
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kubeNamespace}})
}

// repository is the root of this repository: the test runs in the folder of its package.
func (w *world) repository() string { return filepath.Join("..", "..") }

func (w *world) file(name string) string { return filepath.Join(w.scratch, name) }

// startKubernetes starts what Kubernetes runs beside the API server and the kubelets. Its settings are those of the lab, which are the defaults.
func (w *world) startKubernetes() {
	w.t.Helper()
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		w.program(name, nil, filepath.Join(w.assets, name), "--kubeconfig="+w.file("kubeconfig"), "--leader-elect=false", "--secure-port=0", "--v=1")
	}
}

// startOperator runs the operator as a user that has its roles and nothing else.
func (w *world) startOperator() {
	w.t.Helper()
	for _, file := range []string{"rbac/role.yaml", "components/failover/role.yaml"} {
		text, err := os.ReadFile(filepath.Join(w.repository(), "config", file))
		w.must(err)
		var role rbacv1.ClusterRole
		w.must(yaml.UnmarshalStrict(text, &role))
		w.create(&role)
		w.create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
		})
	}
	user, err := w.environment.AddUser(envtest.User{Name: operatorUser}, nil)
	w.must(err)
	access, err := user.KubeConfig()
	w.must(err)
	w.must(os.WriteFile(w.file("operator.kubeconfig"), access, 0o600))
	w.program("operator", []string{"KUBECONFIG=" + w.file("operator.kubeconfig")},
		w.binary, "operator", "--failover", "--server-image", serverImage, "--howdah-image", howdahImage,
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
}

// program starts a program on no node. Its log is shown if the test fails; it ends with the test.
func (w *world) program(log string, env []string, args ...string) *exec.Cmd {
	w.t.Helper()
	path := w.file(log + ".log")
	file, err := os.Create(path)
	w.must(err)
	defer func() { _ = file.Close() }()
	started := exec.Command(args[0], args[1:]...)
	started.Env = append(os.Environ(), env...)
	started.Stdout, started.Stderr = file, file
	started.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.must(started.Start())
	w.t.Cleanup(func() {
		_ = started.Process.Kill()
		_ = started.Wait()
		w.showLog(path)
	})
	return started
}

// showLog shows the end of a log if the test has failed.
func (w *world) showLog(path string) {
	if text, err := os.ReadFile(path); w.t.Failed() && err == nil {
		w.t.Logf("the end of %s:\n%s", strings.TrimPrefix(path, w.scratch), text[max(0, len(text)-6000):])
	}
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	w.must(w.api.Create(w.t.Context(), o))
}

func (w *world) get(o client.Object, name string) {
	w.t.Helper()
	w.must(w.api.Get(w.t.Context(), client.ObjectKey{Namespace: kubeNamespace, Name: name}, o))
}

// eventually waits until there is no reason to wait any more.
func (w *world) eventually(what string, within time.Duration, missing func(context.Context) string) {
	w.t.Helper()
	reason := ""
	for began := time.Now(); time.Since(began) < within; time.Sleep(200 * time.Millisecond) {
		if reason = missing(w.t.Context()); reason == "" {
			return
		}
	}
	w.t.Fatalf("it did not come to pass in %s that %s: %s", within, what, reason)
}

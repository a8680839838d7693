package integration

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/controllers"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/metricsaccess"
	"github.com/howdah/howdah/controllers/namespaceprobe"
	"github.com/howdah/howdah/controllers/servertime"
	"github.com/howdah/howdah/internal/metrics"
	"github.com/howdah/howdah/test/builders"
	"github.com/howdah/howdah/test/tokens"
)

const (
	operatorUser = "howdah-operator"
	serverImage  = "registry.invalid/howdah-server:test"
	howdahImage  = "registry.invalid/howdah:test"
	// standardClass is the default StorageClass of the test cluster; its volumes can grow.
	standardClass = "standard"
	// fixedClass is one whose volumes can't grow.
	fixedClass = "fixed"
)

var (
	ctx    context.Context
	admin  client.Client
	config *rest.Config
	// metricsAddress is where the operator gives its metrics.
	metricsAddress string
	// operatorWrites counts the requests of the operator that are not reads, by Kubernetes namespace; "" is for what is in none.
	operatorWrites sync.Map
	// lastWrites are the newest of them, for the message of a failing test.
	lastWrites atomic.Pointer[[]string]
)

func TestIntegration(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS must name a directory with etcd and kube-apiserver; make test-integration sets it")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "User stories on an API server")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(GinkgoWriter, nil)))
	var cancel context.CancelFunc
	ctx, cancel = context.WithCancel(context.Background())
	DeferCleanup(cancel)

	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		// The default of 20 s is not enough on a machine that does other things as well.
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	// The default has 254 addresses for Services, and the suite makes more: nothing here deletes what a FileServer owns.
	environment.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16")
	// Before the start: if the CRDs are refused the API server runs all the same.
	DeferCleanup(environment.Stop)
	var err error
	config, err = environment.Start()
	Expect(err).NotTo(HaveOccurred())

	scheme, err := controllers.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	Expect(tokens.Install(ctx, admin, filepath.Join("..", ".."))).To(Succeed())
	policiesWork()
	for _, object := range []client.Object{
		builders.StorageClass(standardClass).Default().Expandable().Build(),
		builders.StorageClass(fixedClass).Build(),
	} {
		Expect(admin.Create(ctx, object)).To(Succeed())
	}
	for _, name := range []string{"node-a", "node-b", "node-c"} {
		createNode(builders.Node(name).Build())
	}
	judgeEverything()
	startOperator(environment)
})

// startOperator runs the controllers as a user that has the generated ClusterRole
// and nothing else, so that a missing marker fails a story.
func startOperator(environment *envtest.Environment) {
	GinkgoHelper()
	for _, file := range []string{filepath.Join("rbac", "role.yaml"), filepath.Join("components", "provisioning", "role.yaml"), filepath.Join("components", "rook", "role.yaml"), filepath.Join("components", "failover", "role.yaml"), filepath.Join("components", "failover-volumes", "role.yaml")} {
		text, err := os.ReadFile(filepath.Join("..", "..", "config", file))
		Expect(err).NotTo(HaveOccurred(), "make manifests writes the operator's role")
		var role rbacv1.ClusterRole
		Expect(yaml.UnmarshalStrict(text, &role)).To(Succeed())
		Expect(admin.Create(ctx, &role)).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
		})).To(Succeed())
	}
	user, err := environment.AddUser(envtest.User{Name: operatorUser}, nil)
	Expect(err).NotTo(HaveOccurred())
	operatorConfig := user.Config()
	operatorConfig.QPS, operatorConfig.Burst = 200, 400
	clock := servertime.New()
	operatorConfig.Wrap(clock.Observe)
	operatorConfig.Wrap(func(next http.RoundTripper) http.RoundTripper { return countWrites{next} })

	metricsAddress = freeAddress()
	mgr, err := ctrl.NewManager(operatorConfig, ctrl.Options{
		Scheme:  admin.Scheme(),
		Cache:   controllers.CacheOptions(nil),
		Metrics: metricsserver.Options{BindAddress: metricsAddress, SecureServing: true, FilterProvider: metricsaccess.WithReviews},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(controllers.SetupWithManager(ctx, mgr, controllers.Options{
		Images: desired.Images{Server: serverImage, Howdah: howdahImage},
		Clock:  clock,

		ProvisionClaims: true,
		// Most stories give their pods addresses that are not on this machine.
		Probe: func(ctx context.Context, pod *corev1.Pod) bool {
			return !net.ParseIP(pod.Status.PodIP).IsLoopback() || namespaceprobe.Answers(ctx, pod)
		},
		Failover:        true,
		FailoverVolumes: true,
		Metrics:         runtimemetrics.Registry,
		NetworkPolicies: &desired.NetworkPolicies{OperatorNamespace: "howdah-system", MetricsFrom: []string{"monitoring"}},
	})).To(Succeed())
	metrics.RegisterProcess(runtimemetrics.Registry, false)
	done := make(chan error, 1)
	managerContext, stop := context.WithCancel(ctx)
	go func() { done <- mgr.Start(managerContext) }()
	DeferCleanup(func() {
		stop()
		Expect(<-done).To(Succeed())
	})
}

// namespaceOf is the Kubernetes namespace in the path of a request, "" if there is none.
func namespaceOf(path string) string {
	_, rest, _ := strings.Cut(path, "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")
	return namespace
}

// countWrites counts what the operator sends beside reads and events.
type countWrites struct{ next http.RoundTripper }

func (c countWrites) RoundTrip(request *http.Request) (*http.Response, error) {
	isEvent := strings.Contains(request.URL.Path, "/events")
	isReview := strings.Contains(request.URL.Path, "authorization.k8s.io/v1/self")
	isQuestion := request.URL.Query().Has("dryRun")
	if request.Method != http.MethodGet && !isEvent && !isReview && !isQuestion {
		count, _ := operatorWrites.LoadOrStore(namespaceOf(request.URL.Path), new(atomic.Int64))
		count.(*atomic.Int64).Add(1)
		recent := []string{request.Method + " " + request.URL.Path}
		if before := lastWrites.Load(); before != nil {
			recent = append(recent, *before...)
		}
		recent = recent[:min(len(recent), 20)]
		lastWrites.Store(&recent)
	}
	return c.next.RoundTrip(request)
}

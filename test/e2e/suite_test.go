package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/cluster"
	"github.com/howdah/howdah/test/spare"
)

const (
	serverCount = 3
	fileServer  = "training"
	share       = "unet3d"

	clientA = "client-a"
	clientB = "client-b"
	// Where the client pods have the share, and the whole tree.
	shareMount = "/share"
	treeMount  = "/tree"
	treeClaim  = "tree"
)

// options are the mount options of a share's ready-made volume; mounts that a
// test makes itself use the same.
var options = []string{"vers=4.1", "nconnect=16", "hard", "nosuid", "nodev", "acdirmin=1", "acdirmax=2", "noresvport"}

var c *cluster.Cluster

// sharedFileSystems is for clusters whose volumes are directories of the nodes' disks, as kind's are.
var sharedFileSystems = os.Getenv("HOWDAH_E2E_SHARED_FILE_SYSTEMS") == "yes"

// total is how many directories two clients make at once. HOWDAH_E2E_DIRECTORIES sets it: a lab on two cores makes some fifteen a second.
var total = 2000

// firstByte is the time from apply to the first byte read in a pod.
var firstByte time.Duration

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(bound(time.Minute))
	SetDefaultEventuallyPollingInterval(cluster.PollInterval)
	var err error
	if timeoutFactor, err = spare.TimeoutFactor(1); err != nil {
		t.Fatal(err)
	}
	if text := os.Getenv("HOWDAH_E2E_DIRECTORIES"); text != "" {
		if total, err = strconv.Atoi(text); err != nil || total < 60 || total%10 != 0 {
			t.Fatalf("HOWDAH_E2E_DIRECTORIES=%q: want a multiple of 10 of at least 60", text)
		}
	}
	if soakFor, err = soakLength(); err != nil {
		t.Fatal(err)
	}
	if kills, err = killCount(); err != nil {
		t.Fatal(err)
	}
	if rounds, err = roundCount(); err != nil {
		t.Fatal(err)
	}
	if err := checkBackend(); err != nil {
		t.Fatal(err)
	}
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = bound(20*time.Minute) + soakFor
	reporter.Succinct = false
	RunSpecs(t, "Howdah end to end", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	c, err = cluster.Connect(ctx, "howdah-e2e")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { removeAll(ctx) }, NodeTimeout(bound(8*time.Minute)))

	prepareStorage(ctx, c.Namespace)
	start := time.Now()
	Expect(c.Create(ctx, newFileServer(ctx, fileServer, serverCount))).To(Succeed())
	// Its data goes with it: thousands of ShareDirectories of retained directories would stay otherwise.
	whole := newShare(share, "/unet3d", 2, "train/{0..5}")
	whole.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
	Expect(c.Create(ctx, whole)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) error { return shareClaimBound(ctx, share) }).Should(Succeed())
	Expect(c.RunClient(ctx, cluster.ClientPod{Name: "first-byte", Claims: map[string]string{shareMount: share}})).To(Succeed())
	Expect(c.WaitPodReady(ctx, "first-byte")).To(Succeed())
	// The pod may be up before the last declared directory; reading is what counts.
	Eventually(ctx, func(ctx context.Context) (string, error) {
		return c.Shell(ctx, "first-byte", "echo seed > /share/train/0/first && cat /share/train/0/first")
	}).Should(Equal("seed\n"))
	firstByte = time.Since(start)
	Expect(c.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "first-byte", Namespace: c.Namespace}})).To(Succeed())

	Eventually(ctx, func(ctx context.Context) error { return shareReady(ctx, share) }).Should(Succeed())
	Expect(c.NFSClaim(ctx, treeClaim, namespaceServers(ctx), "/", options...)).To(Succeed())
	Expect(c.WaitGone(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "first-byte", Namespace: c.Namespace}})).To(Succeed())
	runClients(ctx)
}, NodeTimeout(bound(5*time.Minute)))

// runClients starts the suite's client pods.
func runClients(ctx context.Context) {
	GinkgoHelper()
	for _, name := range []string{clientA, clientB} {
		Expect(c.RunClient(ctx, cluster.ClientPod{Name: name, Claims: map[string]string{shareMount: share, treeMount: treeClaim}})).To(Succeed())
	}
	for _, name := range []string{clientA, clientB} {
		Expect(c.WaitPodReady(ctx, name)).To(Succeed())
	}
}

// removeAll removes what the suite made, in the order that needs no waiting
// for finalizers in vain: pods, shares, FileServers, then the namespace.
func removeAll(ctx context.Context) {
	GinkgoHelper()
	grace := "--grace-period=1"
	timeout := func(d time.Duration) string { return "--timeout=" + bound(d).String() }
	for _, args := range [][]string{
		{"delete", "mlperfstoragejobs", "--all", timeout(time.Minute)},
		{"delete", "pods", "-l", cluster.ClientLabel, grace, timeout(time.Minute)},
		{"delete", "fileshares", "--all", timeout(90 * time.Second)},
		{"delete", "fileservers", "--all", timeout(time.Minute)},
		{"delete", "pvc", "--all", timeout(time.Minute)},
		{"delete", "pv", c.Namespace + "-" + treeClaim, "--ignore-not-found"},
		{"delete", "namespace", c.Namespace, "--wait=false"},
	} {
		output, err := c.Kubectl(ctx, args...)
		Expect(err).NotTo(HaveOccurred(), output)
	}
}

var _ = ReportAfterEach(func(report SpecReport) {
	if !report.Failed() || c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound(30*time.Second))
	defer cancel()
	dump(ctx)
})

// dump shows what a maintainer asks for first.
func dump(ctx context.Context) {
	for _, args := range [][]string{
		{"get", "fileservers,fileshares,dataservers,mlperfstoragejobs,pods,pvc", "-o", "wide"},
		{"get", "fileservers,fileshares,dataservers,mlperfstoragejobs", "-o", "yaml"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"describe", "pods", "-l", v1alpha1.FileServerLabel},
		{"logs", "-l", v1alpha1.FileServerLabel, "--all-containers", "--prefix", "--tail=40"},
		{"logs", "-n", "howdah-system", "-l", "app.kubernetes.io/name=howdah", "--prefix", "--tail=60"},
	} {
		output, err := c.Kubectl(ctx, args...)
		fmt.Fprintf(GinkgoWriter, "--- kubectl %v (%v)\n%s\n", args, err, output)
	}
	for _, client := range []string{clientA, clientB} {
		output, err := c.Shell(ctx, client, failedOperations)
		fmt.Fprintf(GinkgoWriter, "--- what NFS servers refused the client %s, by the kernel's count (%v)\n%s\n", client, err, output)
	}
}

// failedOperations prints the operations of the client's mounts that ended with an error: of what is mounted, their names, how many there
// were, and how many of them failed (the ninth number of a line of /proc/self/mountstats, since Linux 5.3).
const failedOperations = `awk '/^device / {device = $2 " " $5} NF == 10 && $1 ~ /^[A-Z_]+:$/ && $NF > 0 {print device, $1, $2, $NF}' /proc/self/mountstats`

func newFileServer(ctx context.Context, name string, replicas int32) *v1alpha1.FileServer {
	return &v1alpha1.FileServer{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace},
		Spec:       v1alpha1.FileServerSpec{Replicas: replicas, Storage: storage(ctx)},
	}
}

// newShare makes a share that everybody may write to.
func newShare(name, path string, depth int32, directories ...string) *v1alpha1.FileShare {
	return &v1alpha1.FileShare{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace},
		Spec: v1alpha1.FileShareSpec{
			FileServerRef: v1alpha1.FileServerReference{Name: fileServer},
			Path:          path,
			Depth:         depth,
			Directories:   directories,
			Mode:          "0777",
		},
	}
}

func shareReady(ctx context.Context, name string) error { return c.ShareReady(ctx, name) }

func shareClaimBound(ctx context.Context, name string) error {
	claim := &corev1.PersistentVolumeClaim{}
	if err := c.Get(ctx, name, claim); err != nil {
		return err
	}
	if claim.Status.Phase != corev1.ClaimBound {
		return fmt.Errorf("claim %s is %s", name, claim.Status.Phase)
	}
	return nil
}

func namespaceServers(ctx context.Context) string {
	GinkgoHelper()
	object := &v1alpha1.FileServer{}
	Expect(c.Get(ctx, fileServer, object)).To(Succeed())
	Expect(object.Status.Address).NotTo(BeEmpty())
	return object.Status.Address
}

// shell runs a script in a pod and gives its output; a script that fails fails the spec.
func shell(ctx context.Context, pod, script string, args ...any) string {
	GinkgoHelper()
	output, err := c.Shell(ctx, pod, fmt.Sprintf(script, args...))
	Expect(err).NotTo(HaveOccurred())
	return output
}

package plugin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/cluster"
	"github.com/howdah/howdah/test/spare"
)

const (
	namespace = "plugin"
	viewer    = "--as system:serviceaccount:" + namespace + ":viewer"
)

var (
	c             *cluster.Cluster
	outputFolder  string
	timeoutFactor float64
)

func TestPlugin(t *testing.T) {
	RegisterFailHandler(Fail)
	outputFolder = os.Getenv("HOWDAH_PLUGIN_OUTPUT")
	if outputFolder == "" {
		t.Fatal("HOWDAH_PLUGIN_OUTPUT is not set; run make test-plugin, which makes a lab, or name a folder for the output")
	}
	var err error
	if timeoutFactor, err = spare.TimeoutFactor(1); err != nil {
		t.Fatal(err)
	}
	SetDefaultEventuallyTimeout(scaled(time.Minute))
	SetDefaultEventuallyPollingInterval(2 * time.Second)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = scaled(30 * time.Minute)
	RunSpecs(t, "kubectl howdah", suite, reporter)
}

// scaled is a timeout on this machine.
func scaled(d time.Duration) time.Duration { return time.Duration(float64(d) * timeoutFactor) }

var _ = BeforeSuite(func(ctx SpecContext) {
	Expect(os.MkdirAll(outputFolder, 0o755)).To(Succeed())
	var err error
	c, err = cluster.ConnectTo(ctx, namespace)
	Expect(err).NotTo(HaveOccurred())
	// So that the commands are as short as in the docs.
	_, err = c.Kubectl(ctx, "config", "set-context", "--current", "--namespace="+namespace)
	Expect(err).NotTo(HaveOccurred())

	server := &v1alpha1.FileServer{ObjectMeta: meta("training")}
	server.Spec.Replicas = 3
	server.Spec.Storage.Volumes.Size = new(resource.MustParse("1Gi"))
	Expect(c.Create(ctx, server)).To(Succeed())
	whole := newShare("unet3d", "/unet3d")
	whole.Spec.Depth, whole.Spec.Directories = 2, []string{"train/{0..5}"}
	Expect(c.Create(ctx, whole)).To(Succeed())
	home := newShare("home", "/home")
	home.Spec.Layout = v1alpha1.LayoutSingle
	Expect(c.Create(ctx, home)).To(Succeed())
	eventuallyCode(ctx, 5*time.Minute, codeWell, "status")

	Expect(c.RunClient(ctx, cluster.ClientPod{
		Name: "trainer", Claims: map[string]string{"/data": "unet3d"},
		Command: []string{"sh", "-c", "ls /data/train/*; while :; do cat /data/train/*/x >/dev/null 2>&1; sleep 5; done"},
	})).To(Succeed())
	timeout, cancel := context.WithTimeout(ctx, scaled(3*time.Minute))
	defer cancel()
	Expect(c.WaitPodReady(timeout, "trainer")).To(Succeed())
})

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

func newShare(name, path string) *v1alpha1.FileShare {
	return &v1alpha1.FileShare{ObjectMeta: meta(name), Spec: v1alpha1.FileShareSpec{FileServerRef: v1alpha1.FileServerReference{Name: "training"}, Path: path}}
}

func eventuallyCode(ctx context.Context, timeout time.Duration, want int, args ...string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) int { return code(ctx, args...) }).WithTimeout(scaled(timeout)).
		Should(Equal(want), "exit code of kubectl howdah %s", strings.Join(args, " "))
}

var _ = Describe("kubectl howdah", Ordered, func() {
	It("shows what is there", func(ctx SpecContext) {
		expectShot(ctx, "status", "kubectl howdah status", codeWell, "unet3d  2 directories")
		expectShot(ctx, "tree", "kubectl howdah tree unet3d", codeWell, "train/")
		expectShot(ctx, "mount", "kubectl howdah mount unet3d", codeWell, "nconnect=16")
	})

	It("lists clients with their pods", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) (string, error) { return output(ctx, "clients") }).
			Should(SatisfyAll(ContainSubstring("unet3d: plugin/trainer"), Not(ContainSubstring("Could not ask"))))
		expectShot(ctx, "clients", "kubectl howdah clients", codeWell, "unet3d: plugin/trainer")
	})

	It("shows what data servers do now", func(ctx SpecContext) {
		expectShot(ctx, "top", "kubectl howdah top", codeWell, "training-0", "OPERATIONS/s")
		Expect(output(ctx, "top", "training", "-o", "json")).To(ContainSubstring(`"cpu":`))
	})

	It("plans", func(ctx SpecContext) {
		expectShot(ctx, "plan-mkdir", "kubectl howdah plan mkdir unet3d train/6 train/7 train/8/deep", codeWell, "train/6", "new")
		expectShot(ctx, "plan-scale", "kubectl howdah plan scale training --replicas 1", codeNotWell, "Refused")
	})

	It("runs a benchmark to its verdict", func(ctx SpecContext) {
		if os.Getenv("HOWDAH_PLUGIN_BENCH") == "no" {
			Skip("HOWDAH_PLUGIN_BENCH=no")
		}
		s := take(ctx, "bench", "kubectl howdah bench run unet3d --accelerators 2 --clients 2 --samples 168 --sample-size 400k --epochs 1 --name quick")
		Expect(s.text).To(MatchRegexp("PASSED|FAILED|INVALID"))
	})

	It("explains a share whose path is taken", func(ctx SpecContext) {
		taken := newShare("scratch", "/home/scratch")
		Expect(c.Create(ctx, taken)).To(Succeed())
		eventuallyCode(ctx, time.Minute, codeNotWell, "explain", "fileshare/scratch")
		Eventually(ctx, func(ctx context.Context) string {
			text, _ := output(ctx, "explain", "scratch")
			return text
		}).Should(ContainSubstring("PathConflict"))
		expectShot(ctx, "explain-path", "kubectl howdah explain scratch", codeNotWell, "PathConflict")
		Expect(c.Delete(ctx, taken)).To(Succeed())
		timeout, cancel := context.WithTimeout(ctx, scaled(time.Minute))
		defer cancel()
		Expect(c.WaitGone(timeout, taken)).To(Succeed())
	})

	It("explains a data server that no node can run, also to a user with few rights", func(ctx SpecContext) {
		pod := &corev1.Pod{}
		Expect(c.Get(ctx, "training-1", pod)).To(Succeed())
		node := pod.Spec.NodeName
		_, err := c.Kubectl(ctx, "cordon", node)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := c.Kubectl(ctx, "uncordon", node)
			Expect(err).NotTo(HaveOccurred())
			eventuallyCode(ctx, 5*time.Minute, codeWell, "status")
		})
		Expect(c.Delete(ctx, pod)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) string {
			text, _ := output(ctx, "status")
			return text
		}).WithTimeout(scaled(2 * time.Minute)).Should(ContainSubstring("training-1  Unavailable"))
		eventuallyCode(ctx, 2*time.Minute, codeNotWell, "explain", "unet3d")
		expectShot(ctx, "explain-lost", "kubectl howdah explain unet3d", codeNotWell, "Pod training-1")
		expectShot(ctx, "status-lost", "kubectl howdah status", codeNotWell, "training-1  Unavailable")

		Expect(c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta("viewer")})).To(Succeed())
		Expect(c.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta("viewer"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "viewer"}},
		})).To(Succeed())
		expectShot(ctx, "status-viewer", "kubectl howdah status "+viewer, codeNotWell, "Hidden: ")
		expectShot(ctx, "clients-viewer", "kubectl howdah clients "+viewer, codeWell, "pods/proxy")
	})

	It("writes a support bundle without keys", func(ctx SpecContext) {
		bundle := filepath.Join(outputFolder, "bundle.tar.gz")
		Expect(os.RemoveAll(bundle)).To(Succeed())
		expectShot(ctx, "support-bundle", "kubectl howdah support-bundle --file "+bundle, codeWell, "objects")
		unpacked, err := exec.CommandContext(ctx, "tar", "--to-stdout", "-xzf", bundle).Output()
		Expect(err).NotTo(HaveOccurred())
		secrets := &corev1.SecretList{}
		Expect(c.List(ctx, secrets, client.InNamespace(namespace))).To(Succeed())
		Expect(secrets.Items).NotTo(BeEmpty(), "the FileServer has keys")
		Expect(leaks(string(unpacked), secrets.Items)).To(BeEmpty())
	})
})

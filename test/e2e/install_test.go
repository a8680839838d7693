package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

const (
	releaseName = "howdah"
	chartFolder = "../../charts/howdah"
	// pulled is the pull secret of the release that is upgraded to: with it every pod is another.
	pulled = "howdah-e2e"
	// installs is the directory of this file's load.
	installs = "/share/installs"
)

func helm(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, os.Getenv("HELM"), append(args, "--namespace", operator)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return string(output), err
}

func mustHelm(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := helm(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// installedRelease is the revision of the release, and its values as a file.
func installedRelease(ctx context.Context) (revision int, values string) {
	GinkgoHelper()
	var status struct {
		Version int            `json:"version"`
		Config  map[string]any `json:"config"`
	}
	Expect(yaml.Unmarshal([]byte(mustHelm(ctx, "status", releaseName, "--output", "json")), &status)).To(Succeed())
	text, err := yaml.Marshal(status.Config)
	Expect(err).NotTo(HaveOccurred())
	values = filepath.Join(GinkgoT().TempDir(), "values.yaml")
	Expect(os.WriteFile(values, text, 0o600)).To(Succeed())
	return status.Version, values
}

// servers are the pods of the FileServer that are there and Ready.
func servers(ctx context.Context) (all map[types.UID]corev1.Pod, err error) {
	all = map[types.UID]corev1.Pod{}
	for _, selector := range []map[string]string{naming.SelectDataServers(fileServer), naming.SelectNamespaceServers(fileServer)} {
		list := &corev1.PodList{}
		if err := c.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels(selector)); err != nil {
			return nil, err
		}
		for _, pod := range list.Items {
			ready := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
				return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
			})
			if pod.DeletionTimestamp == nil && ready {
				all[pod.UID] = pod
			}
		}
	}
	return all, nil
}

// serversPull waits until all pods of the FileServer are those that have the pull secret, or have it not.
func serversPull(ctx context.Context, with bool) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		all, err := servers(ctx)
		if err != nil {
			return err
		}
		for _, pod := range all {
			if has := slices.Contains(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: pulled}); has != with {
				return fmt.Errorf("pod %s pulls with %v", pod.Name, pod.Spec.ImagePullSecrets)
			}
		}
		if len(all) < serverCount+2 {
			return fmt.Errorf("%d pods of servers are ready", len(all))
		}
		return shareReady(ctx, share)
	}).WithTimeout(bound(5 * time.Minute)).Should(Succeed())
}

func operators(ctx context.Context) int32 {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(c.Client.Get(ctx, types.NamespacedName{Namespace: operator, Name: releaseName}, deployment)).To(Succeed())
	return deployment.Status.ReadyReplicas
}

// loadGoesOn waits until the load has done more than it has now.
func loadGoesOn(ctx context.Context, running *cluster.Load) {
	GinkgoHelper()
	before, err := running.Entries(ctx)
	Expect(err).NotTo(HaveOccurred())
	// A data server that was just replaced has its grace period first.
	Eventually(ctx, running.Entries).WithTimeout(bound(3 * time.Minute)).Should(BeNumerically(">", before+30))
}

// The release is taken away under other specs: this one is only run when it is asked for (make test-install).
var _ = Describe("A release that is upgraded, rolled back, uninstalled and installed again under load", Label("install"), Ordered, Serial, func() {
	var (
		values string
		load   *cluster.Load
		server types.UID
	)

	BeforeAll(func(ctx SpecContext) {
		Expect(os.Getenv("HELM")).NotTo(BeEmpty(), "HELM must name helm; make test-install sets it")
		_, values = installedRelease(ctx)
		for _, namespace := range []string{operator, c.Namespace} {
			_, err := c.Kubectl(ctx, "create", "secret", "docker-registry", pulled, "-n", namespace,
				"--docker-server=registry.invalid", "--docker-username=none", "--docker-password=none")
			Expect(err).NotTo(HaveOccurred())
		}
		DeferCleanup(func(ctx SpecContext) {
			mustHelm(ctx, "upgrade", "--install", releaseName, chartFolder, "--values", values, "--reset-values", "--wait", "--timeout", bound(3*time.Minute).String())
			for _, args := range [][]string{
				{"delete", "secret", pulled, "-n", operator},
				{"delete", "secret", pulled, "-n", c.Namespace},
				{"delete", "pod", releaseName + "-test-names-no-share", "-n", operator, "--ignore-not-found"},
			} {
				_, err := c.Kubectl(ctx, args...)
				Expect(err).NotTo(HaveOccurred())
			}
		}, NodeTimeout(bound(4*time.Minute)))

		object := &v1alpha1.FileServer{}
		Expect(c.Get(ctx, fileServer, object)).To(Succeed())
		server = object.UID
		shell(ctx, clientA, "mkdir -m 0777 %s", installs)
		var err error
		load, err = c.StartLoad(ctx, clientA, clientA, []string{installs}, "--do", "tree", "--contest", "both", "--pause", "0")
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(bound(time.Minute)))

	It("replaces operator and servers by an upgrade, with two operators and other pods", func(ctx SpecContext) {
		next := filepath.Join(GinkgoT().TempDir(), "next")
		mustHelm(ctx, "package", chartFolder, "--version", "99.0.0", "--destination", next)
		mustHelm(ctx, "upgrade", releaseName, filepath.Join(next, "howdah-99.0.0.tgz"), "--values", values,
			"--set", "replicas=2,podDisruptionBudget.enabled=true,imagePullSecrets={"+pulled+"}", "--wait", "--timeout", bound(4*time.Minute).String())
		Expect(operators(ctx)).To(BeEquivalentTo(2))
		serversPull(ctx, true)
		chart, err := c.Kubectl(ctx, "get", "crd", "fileshares.howdah.io", "-o", `jsonpath={.metadata.labels.helm\.sh/chart}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(chart).To(Equal("howdah-99.0.0"), "CRDs are upgraded with the chart")
		loadGoesOn(ctx, load)
	}, SpecTimeout(bound(8*time.Minute)))

	It("is as before after a rollback", func(ctx SpecContext) {
		revision, _ := installedRelease(ctx)
		mustHelm(ctx, "rollback", releaseName, strconv.Itoa(revision-1), "--wait", "--timeout", bound(4*time.Minute).String())
		Expect(operators(ctx)).To(BeEquivalentTo(1))
		serversPull(ctx, false)
		loadGoesOn(ctx, load)
	}, SpecTimeout(bound(8*time.Minute)))

	It("keeps CRDs, objects, servers and clients when it is uninstalled, and takes all back when it is installed again", func(ctx SpecContext) {
		before, err := servers(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(before)).To(BeNumerically(">=", serverCount+2))
		mustHelm(ctx, "uninstall", releaseName, "--wait", "--timeout", bound(2*time.Minute).String())
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return c.Kubectl(ctx, "get", "deployments,pods", "-n", operator, "-l", "app.kubernetes.io/component=operator", "-o", "name")
		}).Should(BeEmpty(), "the operator is gone")
		loadGoesOn(ctx, load)
		Expect(shareReady(ctx, share)).To(Succeed(), "the last that was known")

		mustHelm(ctx, "install", releaseName, chartFolder, "--values", values, "--wait", "--timeout", bound(4*time.Minute).String())
		Expect(operators(ctx)).To(BeEquivalentTo(1))
		By("doing new work")
		object := newShare("again", "/again", 1, "one")
		object.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, object)).To(Succeed())
		Eventually(ctx, func() error { return shareReady(ctx, "again") }).WithTimeout(bound(2 * time.Minute)).Should(Succeed())
		deleted(ctx, object)
		By("and leaving alone what runs")
		after, err := servers(ctx)
		Expect(err).NotTo(HaveOccurred())
		for uid, pod := range before {
			Expect(after).To(HaveKey(uid), "pod %s was replaced", pod.Name)
		}
		found := &v1alpha1.FileServer{}
		Expect(c.Get(ctx, fileServer, found)).To(Succeed())
		Expect(found.UID).To(Equal(server))
		loadGoesOn(ctx, load)
	}, SpecTimeout(bound(6*time.Minute)))

	It("passes helm test with a share that is named, and fails it without one", func(ctx SpecContext) {
		output, err := helm(ctx, "test", releaseName, "--timeout", bound(time.Minute).String())
		Expect(err).To(HaveOccurred())
		Expect(output).To(And(ContainSubstring("names-no-share"), ContainSubstring("name a FileShare that is Ready")))
		mustHelm(ctx, "upgrade", releaseName, chartFolder, "--values", values, "--wait", "--timeout", bound(3*time.Minute).String(),
			"--set", "test.share.name="+share+",test.share.namespace="+c.Namespace)
		output = mustHelm(ctx, "test", releaseName, "--timeout", bound(2*time.Minute).String())
		// unet3d has files two directories deep and below.
		Expect(output).To(ContainSubstring("a file was written, read and removed, 2 directories deep in the share"))
		Expect(shell(ctx, clientA, "ls /share")).NotTo(ContainSubstring("howdah-test"))
	}, SpecTimeout(bound(5*time.Minute)))

	It("has lost nothing that the client got confirmed", func(ctx SpecContext) {
		stopped(ctx, load)
		ledger, err := load.Ledger(ctx)
		Expect(err).NotTo(HaveOccurred())
		audited(ctx, clientB, []string{installs}, []string{ledger}, "--nothing-else")
	}, SpecTimeout(bound(3*time.Minute)))
})

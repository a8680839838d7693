package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

const (
	locked   = "locked"
	veteran  = "veteran"
	newcomer = "newcomer"
)

// steady is a client that has a file open and a directory as its working directory, uses both, and runs commands besides, until it gets the order to stop
// to stop. It writes the longest time of a loop, the number of errors, and the loops.
const steady = `rm -f /tmp/stop /tmp/errors; cd /locked/a || exit 1
	exec 3>>open || exit 1
	max=0; errors=0; loops=0
	while [ ! -e /tmp/stop ]; do
		start=$(date +%%s%%N)
		{ echo $loops >&3 && sync open && ls . > /dev/null && cat first /locked/b/first > /dev/null && %s; } 2>>/tmp/errors || errors=$((errors+1))
		took=$(( ($(date +%%s%%N)-start)/1000000 )); [ $took -gt $max ] && max=$took
		loops=$((loops+1)); sleep 0.5
	done
	echo $max $errors $loops $(wc -l < open)`

// makes is a mkdir for each loop. A namespace server that is replaced after it made the directory, or was still waiting for its data server, can't
// answer; the client asks another one then, which finds the name (docs/design/2026-11-22-cut-changes.md). Nothing else may go wrong.
const makes = `{ mkdir /locked/made-$loops 2>/tmp/output || { cat /tmp/output >&2; grep -q "'/locked/made-$loops': File exists$" /tmp/output; }; }`

// watched runs steady in a client while something is done, and reports the longest stall.
func watched(ctx context.Context, what, besides string, do func()) {
	GinkgoHelper()
	type outcome struct {
		output string
		err    error
	}
	done := make(chan outcome, 1)
	shell(ctx, veteran, "rm -f /locked/a/open")
	go func() {
		output, err := c.Shell(ctx, veteran, fmt.Sprintf(steady, besides))
		done <- outcome{output, err}
	}()
	Eventually(ctx, func() error {
		_, err := c.Shell(ctx, veteran, "test -s /locked/a/open")
		return err
	}).Should(Succeed())
	do()
	shell(ctx, veteran, "touch /tmp/stop")
	var result outcome
	Eventually(ctx, done).WithTimeout(bound(2 * time.Minute)).Should(Receive(&result))
	Expect(result.err).NotTo(HaveOccurred())
	var longest, failed, loops, lines int
	_, err := fmt.Sscan(strings.TrimSpace(result.output), &longest, &failed, &loops, &lines)
	Expect(err).NotTo(HaveOccurred(), result.output)
	AddReportEntry(what, fmt.Sprintf("longest stall of a mounted client %.1f s, %d errors in %d loops", float64(longest)/1000, failed, loops), ReportEntryVisibilityAlways)
	Expect(failed).To(BeZero(), func() string { return shell(ctx, veteran, "cat /tmp/errors") })
	Expect(lines).To(Equal(loops), "what was written through the open file is there")
}

// replaced waits until all servers have pods of a template that holds, and are ready.
func replaced(ctx context.Context, holds func(*corev1.PodTemplateSpec) bool) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		set, deployment := &appsv1.StatefulSet{}, &appsv1.Deployment{}
		if err := c.Get(ctx, naming.DataServers(locked), set); err != nil {
			return err
		}
		if err := c.Get(ctx, naming.NamespaceServers(locked), deployment); err != nil {
			return err
		}
		if !holds(&set.Spec.Template) || !holds(&deployment.Spec.Template) {
			return fmt.Errorf("the templates of the pods are the old ones")
		}
		return nil
	}).WithTimeout(bound(3 * time.Minute)).Should(Succeed())
	serversUpdated(ctx, locked)
	_, err := c.Kubectl(ctx, "rollout", "status", "deployment/"+naming.NamespaceServers(locked), "--timeout="+bound(4*time.Minute).String())
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func() error { return lockedReady(ctx) }).WithTimeout(bound(2 * time.Minute)).Should(Succeed())
}

func lockedReady(ctx context.Context) error {
	object := &v1alpha1.FileServer{}
	if err := c.Get(ctx, locked, object); err != nil {
		return err
	}
	if err := cluster.Expect(object.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue); err != nil {
		return err
	}
	return shareReady(ctx, locked)
}

// raiseKeys asks for keys of a generation and waits until all servers have them.
func raiseKeys(ctx context.Context, generation int32) {
	GinkgoHelper()
	before := &v1alpha1.FileServer{}
	Expect(c.Get(ctx, locked, before)).To(Succeed())
	after := before.DeepCopy()
	after.Spec.KeyGeneration = generation
	Expect(c.Patch(ctx, after, client.MergeFrom(before))).To(Succeed())
	replaced(ctx, mounts(naming.Certificates(locked, string(before.UID), generation, 0)))
}

// mounts tells whether pods of a template mount a Secret.
func mounts(secret string) func(*corev1.PodTemplateSpec) bool {
	return func(template *corev1.PodTemplateSpec) bool {
		return slices.ContainsFunc(template.Spec.Volumes, func(volume corev1.Volume) bool {
			return volume.Secret != nil && volume.Secret.SecretName == secret
		})
	}
}

// runOn runs a client pod on a node, which may have other clients of the suite.
func runOn(ctx context.Context, name, node string) {
	GinkgoHelper()
	pod := clientPod(name)
	pod.Spec = corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelHostname: node}, TerminationGracePeriodSeconds: ptr.To(int64(1)), AutomountServiceAccountToken: ptr.To(false),
		Containers: []corev1.Container{{
			Name: "client", Image: c.ClientImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "infinity"},
			VolumeMounts: []corev1.VolumeMount{{Name: locked, MountPath: "/" + locked}},
		}},
		Volumes: []corev1.Volume{{Name: locked, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: locked},
		}}},
	}
	Expect(c.Create(ctx, pod)).To(Succeed())
	Expect(c.WaitPodReady(ctx, name)).To(Succeed())
}

func deleted(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(c.Delete(ctx, object))).To(Succeed())
	Expect(c.WaitGone(ctx, object)).To(Succeed())
}

func clientPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}}
}

var _ = Describe("Keys of servers", Label("keys"), Ordered, func() {
	var nodes []string
	BeforeAll(func(ctx SpecContext) {
		list := &corev1.NodeList{}
		Expect(c.List(ctx, list)).To(Succeed())
		for _, node := range list.Items {
			nodes = append(nodes, node.Labels[corev1.LabelHostname])
		}
		if len(nodes) < 2 {
			Skip("clients on two nodes are needed: those on one share what they know of a server")
		}
		server := newFileServer(ctx, locked, 2)
		Expect(c.Create(ctx, server)).To(Succeed())
		object := newShare(locked, "/locked", 1, "a", "b")
		object.Spec.FileServerRef.Name, object.Spec.ReclaimPolicy = locked, v1alpha1.ReclaimDelete
		Expect(c.Create(ctx, object)).To(Succeed())
		Eventually(ctx, func() error { return lockedReady(ctx) }).WithTimeout(bound(2 * time.Minute)).Should(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			for _, object := range []client.Object{clientPod(veteran), clientPod(newcomer), object.DeepCopy(), server.DeepCopy()} {
				deleted(ctx, object)
			}
		}, NodeTimeout(bound(3*time.Minute)))
		runOn(ctx, veteran, nodes[0])
		shell(ctx, veteran, "for d in a b; do echo $d > /locked/$d/first; done")
	}, NodeTimeout(bound(4*time.Minute)))

	It("are replaced under a client with an open file and a working directory, which only waits", func(ctx SpecContext) {
		watched(ctx, "keyGeneration 2", "true", func() { raiseKeys(ctx, 2) })
	}, SpecTimeout(bound(8*time.Minute)))

	It("are worthless when raised once more: what has handles of the first is refused, what has those of the second goes on", func(ctx SpecContext) {
		runOn(ctx, newcomer, nodes[1])
		Expect(shell(ctx, newcomer, "cat /locked/a/first /locked/b/first")).To(Equal("a\nb\n"))
		shell(ctx, veteran, "cat /locked/a/first")
		raiseKeys(ctx, 3)
		Expect(shell(ctx, newcomer, "cat /locked/a/first /locked/b/first && echo more > /locked/a/more && cat /locked/a/more")).To(Equal("a\nb\nmore\n"))
		output, err := c.Shell(ctx, veteran, "sleep 3; timeout 60 ls /locked/a/")
		Expect(err).To(HaveOccurred(), "handles that were signed with a key of two generations ago were taken: %s", output)
		AddReportEntry("a client with handles of two generations ago", strings.TrimSpace(err.Error()), ReportEntryVisibilityAlways)

		By("mounting again")
		deleted(ctx, clientPod(veteran))
		runOn(ctx, veteran, nodes[0])
		Expect(shell(ctx, veteran, "cat /locked/a/first /locked/b/first")).To(Equal("a\nb\n"))
	}, SpecTimeout(bound(8*time.Minute)))

	It("are made again when their Secret is deleted, and all servers accept each other then; mkdir only waits", func(ctx SpecContext) {
		object := &v1alpha1.FileServer{}
		Expect(c.Get(ctx, locked, object)).To(Succeed())
		name := func(lost int32) string {
			return naming.Certificates(locked, string(object.UID), object.Spec.KeyGeneration, lost)
		}
		watched(ctx, "certificates lost", makes, func() {
			// The operator notices by itself; running servers keep what they started with.
			_, err := c.Kubectl(ctx, "delete", "secret", name(0))
			Expect(err).NotTo(HaveOccurred())
			replaced(ctx, mounts(name(1)))
		})
		AddReportEntry("directories that were there when they were asked for again", shell(ctx, veteran, "grep -c 'File exists' /tmp/errors; true"), ReportEntryVisibilityAlways)
		Expect(shell(ctx, veteran, "cd /locked && mkdir after && echo more > after/more && cat after/more && rmdir made-* && ls")).To(Equal("more\na\nafter\nb\n"))
	}, SpecTimeout(bound(8*time.Minute)))
})

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// syncPeriod is how often the attach/detach controller looks at what is attached; 60 s by default.
const syncPeriod = 5 * time.Second

// runAttachDetach starts Kubernetes' own attach/detach controller until the end of the story.
func runAttachDetach() {
	GinkgoHelper()
	program := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager")
	if _, err := os.Stat(program); err != nil {
		Fail("KUBEBUILDER_ASSETS has no kube-controller-manager: hack/lab/lab assets builds one")
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	kubeconfig.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	kubeconfig.CurrentContext = "x"
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*kubeconfig, path)).To(Succeed())
	manager := exec.CommandContext(ctx, program, "--kubeconfig="+path, "--leader-elect=false", "--secure-port=0",
		"--controllers=persistentvolume-attach-detach-controller", "--attach-detach-reconcile-sync-period="+syncPeriod.String())
	manager.Stdout, manager.Stderr = GinkgoWriter, GinkgoWriter
	Expect(manager.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = manager.Process.Kill() // It is this test's own.
		_ = manager.Wait()
	})
}

// attacher plays external-attacher with a driver that never fails, and watches that no volume is attached twice. It has its own volumes
// only: other stories leave theirs.
type attacher struct {
	volumes map[string]bool

	mu     sync.Mutex
	faults []string
}

func runAttacher(volumes map[string]bool) *attacher {
	GinkgoHelper()
	a := &attacher{volumes: volumes}
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for running.Err() == nil {
			a.pass(running)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	DeferCleanup(func() {
		stop()
		<-done
	})
	return a
}

func (a *attacher) pass(ctx context.Context) {
	list := &storagev1.VolumeAttachmentList{}
	if admin.List(ctx, list) != nil {
		return // The next pass is soon.
	}
	attached := map[string]string{}
	for i := range list.Items {
		item := &list.Items[i]
		before := item.DeepCopy()
		volume := *item.Spec.Source.PersistentVolumeName
		if !a.volumes[volume] {
			continue
		}
		if item.DeletionTimestamp != nil {
			item.Finalizers = nil
			_ = admin.Patch(ctx, item, client.MergeFrom(before))
			continue
		}
		if other := attached[volume]; other != "" {
			a.mu.Lock()
			a.faults = append(a.faults, fmt.Sprintf("%s is attached to %s and %s", volume, other, item.Spec.NodeName))
			a.mu.Unlock()
		}
		attached[volume] = item.Spec.NodeName
		if item.Status.Attached {
			continue
		}
		item.Finalizers = []string{attacherFinalizer}
		if admin.Patch(ctx, item, client.MergeFrom(before)) == nil {
			before = item.DeepCopy()
			item.Status.Attached = true
			_ = admin.Status().Patch(ctx, item, client.MergeFrom(before))
		}
	}
}

// twice are the volumes that were attached to two nodes at once.
func (a *attacher) twice() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.faults
}

// What Kubernetes does is no part of Howdah, and half of each failover with volumes.
var _ = Describe("A machine that loses its power, with Kubernetes' own attach/detach controller", func() {
	BeforeEach(func() {
		for _, name := range []string{"node-a", "node-b", "node-c"} {
			changeNode(name, boot("boot-1-"+name))
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			change(node, func(n *corev1.Node) {
				metav1.SetMetaDataAnnotation(&n.ObjectMeta, "volumes.kubernetes.io/controller-managed-attach-detach", "true")
			})
		}
	})

	DescribeTable("has its volume attached to another node, and never to two", func(taint string, evidence v1alpha1.FailoverEvidence) {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 3)
		volume, volumes := "", map[string]bool{}
		for i, node := range []string{"node-a", "node-b", "node-c"} {
			volume = bindNetworkVolume(namespace, naming.VolumeClaim("training", int32(i), 0), node, nil)
			volumes[volume] = true
		}
		attacher := runAttacher(volumes)
		runAttachDetach()
		nodesOf := func() (nodes []string) {
			list := &storagev1.VolumeAttachmentList{}
			Expect(admin.List(ctx, list)).To(Succeed())
			for i := range list.Items {
				if *list.Items[i].Spec.Source.PersistentVolumeName == volume && list.Items[i].Status.Attached {
					nodes = append(nodes, list.Items[i].Spec.NodeName)
				}
			}
			return nodes
		}
		Eventually(nodesOf, timeout, "100ms").Should(Equal([]string{"node-c"}))
		failingOverByPower(namespace)
		lost := exists(&corev1.Pod{}, namespace, "training-2")

		By("the machine losing its power, with the volume mounted")
		changeNode("node-c", func(status *corev1.NodeStatus) {
			unknown(status)
			status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName("kubernetes.io/csi/example.com^" + volume[len("pv-"):])}
		})
		reportUnreachable(namespace, "training-2", time.Now().Add(-time.Minute))
		taintNode("node-c", corev1.TaintNodeUnreachable)
		Eventually(refusal(namespace), timeout, "50ms").Should(Equal("PowerUnknown"))

		By("evidence that it is off")
		began := time.Now()
		taintNode("node-c", corev1.TaintNodeUnreachable, taint)
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(lost), &corev1.Pod{}))
		}, timeout, "50ms").Should(BeTrue())
		runDataServer(namespace, "training-2", "node-a")
		Eventually(nodesOf, timeout, "100ms").Should(Equal([]string{"node-a"}))
		AddReportEntry("from the evidence "+string(evidence)+" to attached elsewhere", time.Since(began).Round(100*time.Millisecond).String())
		Eventually(func() *metav1.Time { return serverStatus(namespace, "training-2").LastFailover.VolumesDetachedTime }, timeout, "50ms").ShouldNot(BeNil())
		Expect(serverStatus(namespace, "training-2").LastFailover.Evidence).To(Equal(evidence))
		Expect(attacher.twice()).To(BeEmpty())
	},
		Entry("by the cloud's taint", taintShutdown, v1alpha1.FailoverEvidenceShutdownTaint),
		Entry("out of service", corev1.TaintNodeOutOfService, v1alpha1.FailoverEvidenceOutOfServiceTaint),
	)
})

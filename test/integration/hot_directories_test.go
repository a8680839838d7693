package integration

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/directories"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// hasHotCondition tells whether a share has the condition HotDirectoriesServed.
func hasHotCondition(namespace, name string) func() bool {
	return func() bool {
		share := exists(&v1alpha1.FileShare{}, namespace, name)
		return meta.FindStatusCondition(share.Status.Conditions, v1alpha1.FileShareHotDirectoriesServed) != nil
	}
}

var _ = Describe("A FileShare with hot directories", func() {
	It("is served without them on volumes, says so, and is well without the field", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 2)
		share := builders.FileShare(namespace, "data", "training").Directories("d0").Hot(2, "d0").Build()
		create(share)
		Expect(expectShare(namespace, "data", v1alpha1.FileShareHotDirectoriesServed, metav1.ConditionFalse, v1alpha1.ReasonHotDirectoriesUnsupported)).
			To(And(ContainSubstring("FileServer training has volumes of its own"), ContainSubstring("spec.hotDirectories: "), ContainSubstring("remove the field and distribute the files"), ContainSubstring("spec.storage.ceph")))
		Eventually(func() metav1.ConditionStatus {
			loadConfigurations(namespace, "training")
			keepDirectories(namespace)
			takeOnVolume(namespace, "data")
			return shareCondition(namespace, "data", v1alpha1.FileShareJunctionsResolved).Status
		}, timeout, "100ms").Should(Equal(metav1.ConditionTrue))
		expectShare(namespace, "data", v1alpha1.FileShareExported, metav1.ConditionTrue, v1alpha1.ReasonReady)
		expectShare(namespace, "data", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonHotDirectoriesUnsupported)

		change(share, func(s *v1alpha1.FileShare) { s.Spec.HotDirectories = nil })
		readyShare(namespace, "data")
		Eventually(hasHotCondition(namespace, "data"), timeout, "100ms").Should(BeFalse())
	})

	It("says what is hot in Ceph, and which entry can't be used", func() {
		namespace := newNamespace()
		inCeph(namespace, "training", 2)
		runEverything(namespace, "training")
		share := builders.FileShare(namespace, "data", "training").Directories("d0").Hot(4, "d{0,1}").Build()
		create(share)
		readyShare(namespace, "data")
		Expect(expectShare(namespace, "data", v1alpha1.FileShareHotDirectoriesServed, metav1.ConditionTrue, v1alpha1.ReasonReady)).To(Equal(
			`2 directories are hot; spec.hotDirectories asks for up to 4 data servers, and FileServer training has 2 that take new directories; not there yet: "d1"`))

		By("a typing error")
		change(share, func(s *v1alpha1.FileShare) { s.Spec.HotDirectories[0].Paths = []string{"d{0-1}"} })
		Expect(expectShare(namespace, "data", v1alpha1.FileShareHotDirectoriesServed, metav1.ConditionFalse, v1alpha1.ReasonInvalidHotDirectories)).
			To(And(ContainSubstring("spec.hotDirectories[0]"), ContainSubstring("the entry is not used")))
		expectShare(namespace, "data", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidHotDirectories)

		By("all directories")
		change(share, func(s *v1alpha1.FileShare) {
			s.Spec.HotDirectories = []v1alpha1.HotDirectories{{DataServers: 2}}
		})
		readyShare(namespace, "data")
		Expect(expectShare(namespace, "data", v1alpha1.FileShareHotDirectoriesServed, metav1.ConditionTrue, v1alpha1.ReasonReady)).
			To(Equal("all directories of the share are hot"))
	})

	It("has those found hot that many clients use, until they cool down", func() {
		namespace, tenant := newNamespace(), newNamespace()
		fs := inCeph(namespace, "training", 2)
		change(fs, func(fs *v1alpha1.FileServer) {
			fs.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
		})
		runEverything(namespace, "training")
		share := builders.FileShare(tenant, "data", "training").OnNamespace(namespace).Directories("d{0,1}").FindHot(0, 2).Build()
		create(share)
		key := naming.KeyOf(share)
		says := func() string {
			return conditions.Message(exists(&v1alpha1.FileShare{}, tenant, "data").Status.Conditions, v1alpha1.FileShareHotDirectoriesServed)
		}
		Eventually(says, timeout, "100ms").Should(Equal("no directory is hot because 8 clients use it"))
		attachment := exists(&internalv1.ShareAttachment{}, namespace, key)
		Expect(attachment.Spec.FindHotDirectories).To(Equal(&v1alpha1.HotDirectorySearch{Clients: 8, DataServers: 2}))

		By("a namespace server that has enough clients")
		directory := &internalv1.ShareDirectory{}
		Eventually(func() internalv1.DirectoryState {
			keepDirectories(namespace)
			directory = exists(&internalv1.ShareDirectory{}, namespace, naming.Directory("training", key, "d1"))
			return directory.State()
		}, timeout, "100ms").Should(Equal(internalv1.DirectoryReady))
		known := tree.New("training")
		known.SetShare(fleet.ShareOfAttachment(attachment))
		known.SetDirectory(directory)
		began := time.Now()
		clock := clocktesting.NewFakeClock(began)
		server := directories.NewService(directories.Config{
			Tree: known, Client: admin, KubeNamespace: namespace, FileServer: "training", Replica: "r", Clock: clock,
			Log: slog.New(slog.DiscardHandler), Concurrent: 1, Timeout: time.Minute,
		})
		hotTime := func() *metav1.Time {
			directory := exists(&internalv1.ShareDirectory{}, namespace, directory.Name)
			Expect(directory.State()).To(Equal(internalv1.DirectoryReady))
			return directory.Status.HotTime
		}
		other := *tree.NewDirectory(directory)
		other.UID = "another"
		server.FoundHot(tree.Entry{Directory: &other})
		Consistently(hotTime, "500ms", "50ms").Should(BeNil(), "another object of the name")
		server.FoundHot(tree.Entry{Directory: tree.NewDirectory(directory)})
		Eventually(hotTime, timeout, "50ms").ShouldNot(BeNil())
		Eventually(says, timeout, "100ms").Should(Equal(`found hot: "d1"`))

		By("a leader, an hour later")
		leading, stop := context.WithCancel(ctx)
		defer stop()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			directories.NewLeader(server).Run(leading)
		}()
		Eventually(func() *metav1.Time {
			clock.Step(10 * time.Minute)
			return hotTime()
		}, timeout, "50ms").Should(BeNil())
		Expect(clock.Since(began)).To(BeNumerically(">=", time.Hour))
		Eventually(says, timeout, "100ms").Should(Equal("no directory is hot because 8 clients use it"))
		stop()
		Eventually(ended, timeout).Should(BeClosed())
	})

	It("are refused on volumes, too, if they are to be found", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 2)
		create(builders.FileShare(namespace, "data", "training").Directories("d0").FindHot(8, 2).Build())
		Expect(expectShare(namespace, "data", v1alpha1.FileShareHotDirectoriesServed, metav1.ConditionFalse, v1alpha1.ReasonHotDirectoriesUnsupported)).
			To(And(HavePrefix("spec.findHotDirectories: each data server of FileServer training has volumes of its own"), ContainSubstring("spec.storage.ceph")))
	})

	It("of another Kubernetes namespace has its ShareAttachment carry them", func() {
		namespace, tenant := newNamespace(), newNamespace()
		fs := inCeph(namespace, "training", 2)
		change(fs, func(fs *v1alpha1.FileServer) {
			fs.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
		})
		runEverything(namespace, "training")
		share := builders.FileShare(tenant, "data", "training").OnNamespace(namespace).Hot(2, "d0").Build()
		create(share)
		key := naming.KeyOf(share)
		Eventually(func() []v1alpha1.HotDirectories {
			return exists(&internalv1.ShareAttachment{}, namespace, key).Spec.HotDirectories
		}, timeout).
			Should(Equal(share.Spec.HotDirectories))
		change(share, func(s *v1alpha1.FileShare) { s.Spec.HotDirectories = nil })
		Eventually(func() []v1alpha1.HotDirectories {
			return exists(&internalv1.ShareAttachment{}, namespace, key).Spec.HotDirectories
		}, timeout).
			Should(BeEmpty())
	})

	It("has the operator write which clients are near a data server, and only then", func() {
		// Each has an address, and a zone.
		for _, node := range []struct{ name, zone, address string }{
			{"near-a0", "a", "192.168.77.2"}, {"near-a1", "a", "192.168.77.3"}, {"near-b0", "b", "192.168.77.8"}, {"near-c0", "c", "192.168.77.9"},
		} {
			made := createNode(builders.Node(node.name).Label(corev1.LabelTopologyZone, node.zone).Build())
			DeferCleanup(func() { Expect(client.IgnoreNotFound(admin.Delete(ctx, made))).To(Succeed()) })
			before := made.DeepCopy()
			made.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: node.address}}
			Expect(admin.Status().Patch(ctx, made, client.MergeFrom(before))).To(Succeed())
		}
		namespace := newNamespace()
		create(builders.FileServer(namespace, "training").Replicas(2).Ceph().Build())
		set := exists(&appsv1.StatefulSet{}, namespace, naming.DataServers("training"))
		for ordinal, node := range []string{"near-a0", "near-b0"} {
			name := naming.DataServer("training", int32(ordinal))
			runPod(namespace, name, set.Spec.Template, map[string]string{appsv1.StatefulSetPodNameLabel: name}, node, fmt.Sprint("10.1.77.", ordinal+1))
		}
		near := func(server string) func() []string {
			return func() []string {
				spec := exists(&internalv1.DataServer{}, namespace, server).Spec
				return []string{strings.Join(spec.NodeAddresses, " "), strings.Join(spec.ZoneNetworks, " ")}
			}
		}
		nothing := Equal([]string{"", ""})
		share := builders.FileShare(namespace, "data", "training").Directories("d0").Build()
		create(share)
		exists(&internalv1.ShareExport{}, namespace, naming.ShareExport("data", "training-1"))
		Expect(near("training-0")()).To(nothing, "nothing is hot")

		By("a hot directory")
		change(share, func(s *v1alpha1.FileShare) {
			s.Spec.HotDirectories = []v1alpha1.HotDirectories{{Paths: []string{"d0"}, DataServers: 2}}
		})
		Eventually(near("training-0"), timeout, "50ms").Should(Equal([]string{"192.168.77.2", "192.168.77.2/31"}))
		Eventually(near("training-1"), timeout, "50ms").Should(Equal([]string{"192.168.77.8", "192.168.77.8/32"}))

		By("a node that gets into another zone")
		change(exists(&corev1.Node{}, "", "near-c0"), func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "b" })
		Eventually(near("training-1"), timeout, "50ms").Should(Equal([]string{"192.168.77.8", "192.168.77.8/31"}))

		By("a data server that gets to another node")
		pod := exists(&corev1.Pod{}, namespace, "training-1")
		Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(pod), pod)) }, timeout, "50ms").Should(BeTrue())
		runPod(namespace, "training-1", set.Spec.Template, map[string]string{appsv1.StatefulSetPodNameLabel: "training-1"}, "near-a1", "10.1.77.9")
		Eventually(near("training-1"), timeout, "50ms").Should(Equal([]string{"192.168.77.3", ""}), "all are in one zone")
		Eventually(near("training-0"), timeout, "50ms").Should(Equal([]string{"192.168.77.2", ""}), "all are in one zone")

		By("nothing that is hot")
		change(share, func(s *v1alpha1.FileShare) { s.Spec.HotDirectories = nil })
		Eventually(near("training-0"), timeout, "50ms").Should(nothing)

		By("what may be found hot")
		change(share, func(s *v1alpha1.FileShare) {
			s.Spec.FindHotDirectories = v1alpha1.HotDirectorySearch{DataServers: 2}
		})
		Eventually(near("training-0"), timeout, "50ms").Should(Equal([]string{"192.168.77.2", ""}))
		change(share, func(s *v1alpha1.FileShare) { s.Spec.FindHotDirectories = v1alpha1.HotDirectorySearch{} })
		Eventually(near("training-0"), timeout, "50ms").Should(nothing)
		Eventually(near("training-1"), timeout, "50ms").Should(nothing)
	})
})

package integration

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// inCeph makes a FileServer with its data in Ceph, and runs its pods.
func inCeph(namespace, name string, replicas int32) *v1alpha1.FileServer {
	GinkgoHelper()
	fs := builders.FileServer(namespace, name).Replicas(replicas).Ceph().Build()
	create(fs)
	runNamespaceServers(namespace, name)
	startDataServers(namespace, name)
	return fs
}

// cephAtFault plays the supervisors of data servers that can't use Ceph, and waits until all of them were heard.
func cephAtFault(namespace, fileServer, message string) {
	GinkgoHelper()
	Eventually(func() string {
		for _, server := range dataServersOf(namespace, fileServer) {
			before := server.DeepCopy()
			if conditions.Set(&server.Status.Conditions, server.Generation, time.Now(), conditions.False(v1alpha1.ConditionReady, internalv1.ReasonCephUnusable, message)) {
				Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
			}
		}
		return fileServerCondition(namespace, fileServer, v1alpha1.ConditionReady).Message
	}, timeout, "100ms").Should(And(ContainSubstring("2 of 2 data servers can't use"), ContainSubstring(message)))
}

// refuseExports plays the supervisors of data servers that can't export a share, and waits until all of them were heard.
func refuseExports(namespace, fileServer, share, reason, message string) {
	GinkgoHelper()
	servers := dataServersOf(namespace, fileServer)
	Eventually(func() int {
		for _, server := range servers {
			export := exportsOf(namespace, server.Name)[share]
			if export == nil {
				continue
			}
			before := export.DeepCopy()
			if conditions.Set(&export.Status.Conditions, export.Generation, time.Now(), conditions.False(internalv1.ExportServing, reason, message)) {
				Expect(admin.Status().Patch(ctx, export, client.MergeFrom(before))).To(Succeed())
			}
		}
		return strings.Count(shareCondition(namespace, share, v1alpha1.ConditionReady).Message, message)
	}, timeout, "100ms").Should(Equal(len(servers)))
}

func dataServersOf(namespace, fileServer string) (servers []*internalv1.DataServer) {
	GinkgoHelper()
	var list internalv1.DataServerList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(naming.SelectDataServers(fileServer)))).To(Succeed())
	for i := range list.Items {
		servers = append(servers, &list.Items[i])
	}
	return servers
}

var _ = Describe("A FileServer with its data in Ceph", func() {
	It("has no claims, mounts the Secret whether it is there or not, and gets ready", func() {
		namespace := newNamespace()
		fs := inCeph(namespace, "training", 2)
		set := exists(&appsv1.StatefulSet{}, namespace, naming.DataServers("training"))
		Expect(set.Spec.VolumeClaimTemplates).To(BeEmpty())
		var mounted *corev1.SecretVolumeSource
		for _, volume := range set.Spec.Template.Spec.Volumes {
			if volume.Name == "ceph-secrets" {
				mounted = volume.Secret
			}
		}
		Expect(mounted).NotTo(BeNil())
		Expect(mounted.SecretName).To(Equal("ceph-shares"))
		Expect(*mounted.Optional).To(BeTrue())
		runEverything(namespace, "training")
		message := fileServerCondition(namespace, "training", v1alpha1.FileServerStorageAvailable).Message
		Expect(message).To(Equal("2 of 2 data servers use Ceph file system fs1"))
		for _, server := range dataServersOf(namespace, "training") {
			Expect(server.Spec.LeaseSeconds).To(Equal(int32(8)))
			Expect(server.Spec.GraceSeconds).To(Equal(int32(12)))
			Expect(server.Spec.Ceph.SecretName).To(Equal("ceph-shares"))
			Expect(server.Spec.Ceph.Monitors).To(Equal(fs.Spec.Storage.Ceph.External.Monitors))
		}

		By("following the monitors, without another pod")
		generation := set.Generation
		change(fs, func(fs *v1alpha1.FileServer) {
			fs.Spec.Storage.Ceph.External.Monitors = []string{"10.0.0.7:3300"}
		})
		Eventually(func() (found [][]string) {
			for _, server := range dataServersOf(namespace, "training") {
				found = append(found, server.Spec.Ceph.Monitors)
			}
			return found
		}, timeout, "100ms").Should(HaveEach(Equal([]string{"10.0.0.7:3300"})))
		Expect(exists(&appsv1.StatefulSet{}, namespace, naming.DataServers("training")).Generation).To(Equal(generation))

		By("taking another Secret by new pods")
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Storage.Ceph.External.SharesSecretRef.Name = "others" })
		Eventually(func() int64 {
			return exists(&appsv1.StatefulSet{}, namespace, naming.DataServers("training")).Generation
		}, timeout, "100ms").Should(BeNumerically(">", generation))
	})

	It("says what data servers say of Ceph, and mends with it", func() {
		namespace := newNamespace()
		inCeph(namespace, "training", 2)
		const wrong = "the Ceph cluster at 10.0.0.1:3300 has the fsid a, not b"
		cephAtFault(namespace, "training", wrong)
		// Objects come in any order: the FileServer waits for a Secret that does not exist yet.
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonCephUnusable)
		expectCondition(namespace, "training", v1alpha1.FileServerStorageAvailable, metav1.ConditionFalse, v1alpha1.ReasonCephUnusable)
		Expect(fileServerCondition(namespace, "training", v1alpha1.FileServerServersAvailable).Message).To(ContainSubstring("it can't use its storage: see StorageAvailable"))
		runEverything(namespace, "training")
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	})

	It("repeats what Ceph says of its health, also at the shares if it lasts, and mends with it", func() {
		namespace := newNamespace()
		inCeph(namespace, "training", 2)
		runEverything(namespace, "training")
		create(builders.FileShare(namespace, "data", "training").Path("/data").Directories("d{0..1}").Build())
		readyShare(namespace, "data")
		say := func(c metav1.Condition) {
			GinkgoHelper()
			for _, server := range dataServersOf(namespace, "training") {
				before := server.DeepCopy()
				conditions.Set(&server.Status.Conditions, 0, time.Now(), c)
				Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
			}
		}
		say(conditions.True(internalv1.StorageHealthy, v1alpha1.ReasonStorageDegraded, "OSDs that are down: osd.1"))
		Eventually(func() string {
			return fileServerCondition(namespace, "training", v1alpha1.FileServerStorageAvailable).Message
		}, timeout, "100ms").
			Should(Equal("2 of 2 data servers use Ceph file system fs1; Ceph reports: OSDs that are down: osd.1"))
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonStorageDegraded)

		say(conditions.False(internalv1.StorageHealthy, v1alpha1.ReasonStorageFailing, "no metadata server is active"))
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonStorageFailing)
		Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.ConditionReady).Message }, timeout, "100ms").
			Should(ContainSubstring("as the storage of FileServer training reports: Ceph file system fs1 is failing: no metadata server is active"))
		Expect(shareCondition(namespace, "data", v1alpha1.FileShareExported).Reason).To(Equal(v1alpha1.ReasonStorageFailing))

		say(conditions.True(internalv1.StorageHealthy, v1alpha1.ReasonReady, "the storage is well"))
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		readyShare(namespace, "data")
	})

	It("has its directories on any data server, once one of them was looked at", func() {
		namespace := newNamespace()
		inCeph(namespace, "training", 2)
		runEverything(namespace, "training")
		create(builders.FileShare(namespace, "data", "training").Path("/data").Directories("d{0..3}").Build())
		readyShare(namespace, "data")
		owners := map[string]int{}
		for _, directory := range directoriesOf(namespace, "data") {
			owners[directory.Spec.DataServerRef.Name]++
		}
		Expect(owners).To(Equal(map[string]int{"training-0": 2, "training-1": 2}))
	})
})

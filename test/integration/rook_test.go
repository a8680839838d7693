package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/test/builders"
)

// identityOf is the storage identity of a FileServer, which its first pass writes.
func identityOf(fs *v1alpha1.FileServer) (identity string) {
	GinkgoHelper()
	Eventually(func() string {
		identity = exists(&v1alpha1.FileServer{}, fs.Namespace, fs.Name).Status.StorageIdentity
		return identity
	}, timeout, "100ms").ShouldNot(BeEmpty())
	return identity
}

// onRook makes a FileServer on Rook's cluster, and plays everybody until it serves.
func onRook(namespace string) *v1alpha1.FileServer {
	GinkgoHelper()
	fs := builders.FileServer(namespace, "training").Replicas(2).Rook().Build()
	create(fs)
	exists(rookObject("CephClient", "", "", nil), namespace, ceph.Account(identityOf(fs)))
	exists(rookObject("CephFilesystemSubVolumeGroup", "", "", nil), namespace, ceph.Group(identityOf(fs)))
	rookWorks(namespace, false)
	runNamespaceServers(namespace, "training")
	startDataServers(namespace, "training")
	stewardWorks(namespace, "training", "a")
	runEverything(namespace, "training")
	Eventually(storageSays(namespace), timeout, "100ms").Should(Equal("True Ready 2 of 2 data servers use Ceph file system fs1"))
	return fs
}

// monitorsOf are the monitors in the specifications of the servers.
func monitorsOf(namespace string) func() [][]string {
	return func() (all [][]string) {
		all = append(all, exists(&internalv1.Steward{}, namespace, "training").Spec.Ceph.Monitors)
		for _, server := range dataServersOf(namespace, "training") {
			all = append(all, server.Spec.Ceph.Monitors)
		}
		return all
	}
}

var _ = Describe("A FileServer on a Ceph that Rook runs", Ordered, func() {
	It("says that Rook is not installed, makes nothing, and finds it when it comes", func() {
		namespace := newNamespace()
		create(builders.FileServer(namespace, "training").Replicas(2).Rook().Build())
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("False RookNotReady Rook is not installed: the API server knows no CephCluster.ceph.rook.io"))
		awaitQuiet(namespace)
		Expect(dataServersOf(namespace, "training")).To(BeEmpty())
		for _, none := range []client.Object{&appsv1.StatefulSet{}, &internalv1.Steward{}} {
			Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "training"}, none))).To(BeTrue(), "%T", none)
		}
		installRook()
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("False RookNotReady there is no CephCluster rook-ceph in Kubernetes namespace " + namespace))
	})

	It("waits for what it needs, one after the other, and asks Rook for an account and a group", func() {
		namespace := newNamespace()
		fs := builders.FileServer(namespace, "training").Replicas(2).Rook().Build()
		create(fs)
		create(rookObject("CephCluster", namespace, "rook-ceph", map[string]any{}))
		setStatus("CephCluster", namespace, "rook-ceph", map[string]any{"phase": "Progressing", "message": "Configuring Ceph Mons"})
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("False Progressing waiting for Rook to bring up CephCluster rook-ceph, which is Progressing: Configuring Ceph Mons"))
		cephIs(namespace, healthError, rookFSID)
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("False RookNotReady CephCluster rook-ceph is HEALTH_ERR (OSD_FULL: 1 full osd(s))"))
		cephIs(namespace, healthWarn, rookFSID)
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("False Progressing waiting for Rook to write ConfigMap rook-ceph-mon-endpoints"))
		monitorsAre(namespace, "a=10.0.0.1:6789,b=10.0.0.2:6789")
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("False RookNotReady there is no CephFilesystem fs1"))
		awaitQuiet(namespace)
		Expect(dataServersOf(namespace, "training")).To(BeEmpty(), "pods could only wait")
		rookFileSystem(namespace)
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("False Progressing waiting for Rook to make CephFilesystemSubVolumeGroup howdah-" + identityOf(fs)))

		account := exists(rookObject("CephClient", "", "", nil), namespace, ceph.Account(identityOf(fs)))
		Expect(metav1.GetControllerOf(account).UID).To(Equal(fs.UID), "the account goes with the FileServer")
		caps, _, _ := unstructured.NestedStringMap(account.Object, "spec", "caps")
		Expect(caps).To(Equal(ceph.AccountCaps(identityOf(fs), "fs1", "howdah")))
		group := exists(rookObject("CephFilesystemSubVolumeGroup", "", "", nil), namespace, ceph.Group(identityOf(fs)))
		Expect(group.GetOwnerReferences()).To(BeEmpty(), "directories that are retained are in it")
		spec, _, _ := unstructured.NestedMap(group.Object, "spec")
		Expect(spec).To(Equal(map[string]any{"name": ceph.Group(identityOf(fs)), "filesystemName": "fs1", "pinning": map[string]any{"distributed": int64(0)}}))

		rookWorks(namespace, false)
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("False Progressing waiting for the steward"))
		steward := exists(&appsv1.Deployment{}, namespace, "training-steward")
		var mounted []string
		for _, volume := range steward.Spec.Template.Spec.Volumes {
			if volume.Secret != nil {
				mounted = append(mounted, volume.Secret.SecretName)
			}
		}
		Expect(mounted).To(Equal([]string{"rook-ceph-client-" + account.GetName()}))
		exists(&corev1.Secret{}, namespace, mounted[0])
		Expect(monitorsOf(namespace)()).To(HaveEach([]string{"10.0.0.1:6789", "10.0.0.2:6789"}))
		for _, server := range dataServersOf(namespace, "training") {
			Expect(server.Spec.Ceph.FSID).To(Equal(rookFSID))
		}
	})

	It("has a missing file system made, once, and leaves it alone from then on", func() {
		namespace := newNamespace()
		rookCluster(namespace)
		Expect(admin.Delete(ctx, exists(rookObject("CephFilesystem", "", "", nil), namespace, "fs1"))).To(Succeed())
		fs := builders.FileServer(namespace, "training").Replicas(2).Rook().Build()
		fs.Spec.Storage.Ceph.Rook.CreateFileSystem = v1alpha1.RookFileSystem{ReplicatedSize: 2, FailureDomain: "zone"}
		create(fs)
		made := exists(rookObject("CephFilesystem", "", "", nil), namespace, "fs1")
		Expect(made.GetOwnerReferences()).To(BeEmpty())
		pools, _, _ := unstructured.NestedSlice(made.Object, "spec", "dataPools")
		Expect(pools).To(Equal([]any{map[string]any{
			"name": "replicated", "failureDomain": "zone", "replicated": map[string]any{"size": int64(2), "requireSafeReplicaSize": true},
		}}))
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("False Progressing waiting for Rook to make CephFilesystem fs1"))
		change(made, func(u *unstructured.Unstructured) {
			Expect(unstructured.SetNestedField(u.Object, int64(2), "spec", "metadataServer", "activeCount")).To(Succeed())
		})
		setStatus("CephFilesystem", namespace, "fs1", map[string]any{"phase": "Ready"})
		exists(rookObject("CephClient", "", "", nil), namespace, ceph.Account(identityOf(fs)))
		exists(rookObject("CephFilesystemSubVolumeGroup", "", "", nil), namespace, ceph.Group(identityOf(fs)))
		rookWorks(namespace, false)
		exists(&internalv1.Steward{}, namespace, "training")
		awaitQuiet(namespace)
		active, _, _ := unstructured.NestedInt64(exists(rookObject("CephFilesystem", "", "", nil), namespace, "fs1").Object, "spec", "metadataServer", "activeCount")
		Expect(active).To(BeEquivalentTo(2), "it is the users' own")
		Expect(admin.Delete(ctx, made)).To(Succeed())
		Eventually(storageSays(namespace), timeout, "100ms").Should(ContainSubstring("CephFilesystem fs1 had the shares' data and is missing"))
		awaitQuiet(namespace)
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(made), made))).To(BeTrue(), "it is not made again, empty")
	})

	It("follows the monitors live, and takes no other notice of what Rook writes each minute", func() {
		namespace := newNamespace()
		rookCluster(namespace)
		onRook(namespace)
		generation := exists(&appsv1.StatefulSet{}, namespace, "training").Generation
		monitorsAre(namespace, "c=10.0.0.3:6789,b=10.0.0.2:6789")
		Eventually(monitorsOf(namespace), timeout, "100ms").Should(HaveEach([]string{"10.0.0.2:6789", "10.0.0.3:6789"}))
		Expect(exists(&appsv1.StatefulSet{}, namespace, "training").Generation).To(Equal(generation), "no pod is replaced")
		loadConfigurations(namespace, "training")
		before := awaitQuiet(namespace)
		cephIs(namespace, healthOK, rookFSID)
		Expect(awaitQuiet(namespace)).To(Equal(before))
	})

	It("goes on while Ceph is ill, and says so", func() {
		namespace := newNamespace()
		rookCluster(namespace)
		onRook(namespace)
		cephIs(namespace, healthError, rookFSID)
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("True RookNotReady 2 of 2 data servers use Ceph file system fs1; CephCluster rook-ceph is HEALTH_ERR (OSD_FULL: 1 full osd(s))"))
		Expect(fileServerCondition(namespace, "training", v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue))
		cephIs(namespace, healthOK, rookFSID)
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("True Ready"))
	})

	It("says that its group is being deleted, and has it made again when it is gone", func() {
		namespace := newNamespace()
		rookCluster(namespace)
		fs := onRook(namespace)
		group := exists(rookObject("CephFilesystemSubVolumeGroup", "", "", nil), namespace, ceph.Group(identityOf(fs)))
		Expect(admin.Delete(ctx, group)).To(Succeed())
		rookWorks(namespace, true)
		Eventually(storageSays(namespace), timeout, "100ms").Should(ContainSubstring("True RookNotReady 2 of 2 data servers use Ceph file system fs1; CephFilesystemSubVolumeGroup " + group.GetName() + " is being deleted: Rook removes it only when"))
		rookWorks(namespace, false)
		Eventually(func() bool {
			again := rookObject("CephFilesystemSubVolumeGroup", "", "", nil)
			return admin.Get(ctx, client.ObjectKeyFromObject(group), again) == nil && again.GetUID() != group.GetUID()
		}, timeout, "100ms").Should(BeTrue())
		rookWorks(namespace, false)
		Eventually(storageSays(namespace), timeout, "100ms").Should(HavePrefix("True Ready"))
	})

	It("stays with the cluster that it was, whatever takes its name", func() {
		namespace := newNamespace()
		rookCluster(namespace)
		onRook(namespace)
		cluster := exists(rookObject("CephCluster", "", "", nil), namespace, "rook-ceph")
		Expect(admin.Delete(ctx, cluster)).To(Succeed())
		Eventually(storageSays(namespace), timeout, "100ms").Should(ContainSubstring("there is no CephCluster rook-ceph"))
		create(rookObject("CephCluster", namespace, "rook-ceph", map[string]any{}))
		cephIs(namespace, healthOK, "00000000-0000-0000-0000-000000000001")
		monitorsAre(namespace, "a=10.9.9.9:6789")
		Eventually(storageSays(namespace), timeout, "100ms").Should(ContainSubstring("CephCluster rook-ceph is now another Ceph cluster"))
		Consistently(monitorsOf(namespace), 2*time.Second, "200ms").Should(HaveEach([]string{"10.0.0.1:6789", "10.0.0.2:6789"}))
		for _, server := range dataServersOf(namespace, "training") {
			Expect(server.Spec.Ceph.FSID).To(Equal(rookFSID))
		}
	})

	It("is refused where its fields can't be right", func() {
		namespace := newNamespace()
		with := func(mutate func(*v1alpha1.FileServer)) *v1alpha1.FileServer {
			fs := builders.FileServer(namespace, "wrong").Rook().Build()
			mutate(fs)
			return fs
		}
		Expect(admin.Create(ctx, with(func(fs *v1alpha1.FileServer) {
			fs.Spec.Storage.Ceph.External = builders.FileServer(namespace, "x").Ceph().Build().Spec.Storage.Ceph.External
		}))).To(MatchError(ContainSubstring("exactly one of the fields in [external rook] must be set")))
		Expect(admin.Create(ctx, with(func(fs *v1alpha1.FileServer) { fs.Spec.Storage.Ceph.Rook.FileSystem = "a b" }))).
			To(MatchError(ContainSubstring("fileSystem is the name that kubectl get cephfilesystems prints")))
		Expect(admin.Create(ctx, with(func(fs *v1alpha1.FileServer) { fs.Spec.Storage.Ceph.Rook.ClusterRef.Name = "Rook" }))).
			To(MatchError(ContainSubstring("name must be the name of a CephCluster")))
		fs := with(func(*v1alpha1.FileServer) {})
		create(fs)
		for words, mutate := range map[string]func(*v1alpha1.RookCeph){
			"clusterRef can't be changed":   func(r *v1alpha1.RookCeph) { r.ClusterRef.Name = "other" },
			"fileSystem can't be changed":   func(r *v1alpha1.RookCeph) { r.FileSystem = "other" },
			"recoveryPool can't be changed": func(r *v1alpha1.RookCeph) { r.RecoveryPool = "other" },
		} {
			before := exists(&v1alpha1.FileServer{}, namespace, "wrong")
			after := before.DeepCopy()
			mutate(&after.Spec.Storage.Ceph.Rook)
			Expect(admin.Patch(ctx, after, client.MergeFrom(before))).To(MatchError(ContainSubstring(words)))
		}
		before := exists(&v1alpha1.FileServer{}, namespace, "wrong")
		after := before.DeepCopy()
		after.Spec.Storage = builders.FileServer(namespace, "x").Ceph().Build().Spec.Storage
		Expect(admin.Patch(ctx, after, client.MergeFrom(before))).To(MatchError(ContainSubstring("storage.ceph can't change between external and rook")))
	})
})

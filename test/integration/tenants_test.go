package integration

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

const tenantLabel = "example.com/storage"

// newTenant makes a Kubernetes namespace, with the label that grant chooses if it has one.
func newTenant(chosen bool) string {
	GinkgoHelper()
	namespace := newNamespace()
	choose(namespace, chosen)
	return namespace
}

// choose gives a namespace the label that grant chooses, or takes it away.
func choose(namespace string, chosen bool) {
	GinkgoHelper()
	change(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(n *corev1.Namespace) {
		delete(n.Labels, tenantLabel)
		if chosen {
			n.Labels[tenantLabel] = "training"
		}
	})
}

// sharedFileServer serves shares of the namespaces that have the label.
func sharedFileServer(replicas int32) (storage string) {
	GinkgoHelper()
	storage = newNamespace()
	fs := builders.FileServer(storage, "fs").Replicas(replicas).Class(standardClass).Build()
	fs.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
		From: v1alpha1.NamespacesFromSelector, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{tenantLabel: "training"}},
	}
	create(fs)
	runEverything(storage, "fs")
	return storage
}

// readyTenantShare waits for a share of another namespace than its FileServer's to be Ready.
func readyTenantShare(storage, namespace, name string) {
	GinkgoHelper()
	Eventually(func() metav1.ConditionStatus {
		loadConfigurations(storage, "fs")
		keepDirectories(storage)
		takeOnVolume(namespace, name)
		return shareCondition(namespace, name, v1alpha1.ConditionReady).Status
	}, timeout, "100ms").Should(Equal(metav1.ConditionTrue),
		func() string { return shareCondition(namespace, name, v1alpha1.ConditionReady).Message })
}

// tenantDirectories are the ShareDirectories of a share of another namespace, by path.
func tenantDirectories(storage, namespace, share string) map[string]internalv1.ShareDirectory {
	GinkgoHelper()
	var list internalv1.ShareDirectoryList
	Expect(admin.List(ctx, &list, client.InNamespace(storage), client.MatchingLabels(naming.ShareLabels(storage, "fs", namespace+"."+share)))).To(Succeed())
	directories := map[string]internalv1.ShareDirectory{}
	for _, directory := range list.Items {
		directories[directory.Spec.Path] = directory
	}
	return directories
}

// notAllowed is the message for a share whose FileServer does not allow its namespace.
func notAllowed(storage, namespace string) string {
	return fmt.Sprintf(`FileServer "fs" in namespace %q does not exist, or does not allow shares of namespace %q; ask its administrator to add this namespace to its spec.allowedNamespaces`, storage, namespace)
}

const untilThen = "; until then nothing of the share is served, and its data stays on the volumes"

var _ = Describe("A share of another namespace than its FileServer's", func() {
	It("is served where the FileServer allows it, with everything of Howdah's own beside the FileServer, and its claim beside the share", func() {
		storage, tenant := sharedFileServer(2), newTenant(true)
		create(builders.FileShare(tenant, "data", "fs").OnNamespace(storage).Directories("d{0..3}").Build())
		readyTenantShare(storage, tenant, "data")
		key := tenant + ".data"
		Expect(exportsOf(storage, "fs-0")).To(HaveKey(key))
		Expect(tenantDirectories(storage, tenant, "data")).To(HaveLen(4))
		attachment := exists(&internalv1.ShareAttachment{}, storage, key)
		Expect(attachment.Spec.Path).To(Equal("/data"))
		Expect(attachment.Spec.FileShareUID).To(Equal(string(exists(&v1alpha1.FileShare{}, tenant, "data").UID)))
		Expect(attachment.Spec.Inventory).To(Equal(internalv1.InventoryComplete), "namespace servers wait for it with mkdir")
		claim, volume := claimAndVolume(tenant, "data")
		Expect(claim.Spec.VolumeName).To(Equal(volume.Name))
		Expect(volume.Spec.NFS.Path).To(Equal("/data"))

		By("changing it")
		change(exists(&v1alpha1.FileShare{}, tenant, "data"), func(s *v1alpha1.FileShare) {
			s.Spec.Access = []v1alpha1.AccessRule{{Clients: []string{"10.0.0.0/8"}, AccessType: v1alpha1.AccessReadOnly}}
		})
		Eventually(func() []v1alpha1.AccessRule { return exists(attachment, storage, key).Spec.Access }, timeout).Should(
			HaveExactElements(HaveField("AccessType", v1alpha1.AccessReadOnly)))
	})

	It("is refused in the same words whether the FileServer does not allow it or does not exist, and waits for nothing else", func() {
		storage, tenant, nowhere := sharedFileServer(1), newTenant(false), newNamespace()
		create(builders.FileShare(tenant, "data", "fs").OnNamespace(storage).Directories("d").Build())
		create(builders.FileShare(tenant, "none", "fs").OnNamespace(nowhere).Build())
		for share, namespace := range map[string]string{"data": storage, "none": nowhere} {
			expectShare(tenant, share, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed)
			Expect(shareCondition(tenant, share, v1alpha1.FileSharePlaced).Message).To(Equal(notAllowed(namespace, tenant)))
			expectShare(tenant, share, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNamespaceNotAllowed)
		}
		Expect(tenantDirectories(storage, tenant, "data")).To(BeEmpty())
		Expect(exportsOf(storage, "fs-0")).To(BeEmpty())

		By("deleting the FileServer, which a share that it does not allow can't hold")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileServer{}, storage, "fs"))).To(Succeed())
		isNoMore(&v1alpha1.FileServer{}, storage, "fs")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, tenant, "data"))).To(Succeed())
		isNoMore(&v1alpha1.FileShare{}, tenant, "data")
	})

	It("decides how all shares are mounted once it is allowed, and not before", func() {
		storage, tenant := sharedFileServer(1), newTenant(false)
		create(builders.FileShare(storage, "own", "fs").Build())
		readyTenantShare(storage, storage, "own")
		anyPort := func(namespace, name string) bool {
			return slices.Contains(exists(&v1alpha1.FileShare{}, namespace, name).Status.Mount.Options, "noresvport")
		}
		look := func(times string) {
			change(exists(&v1alpha1.FileShare{}, storage, "own"), func(s *v1alpha1.FileShare) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "looked", times) })
		}
		strict := builders.FileShare(tenant, "strict", "fs").OnNamespace(storage).Access(v1alpha1.AccessReadWrite, v1alpha1.SquashNone, "10.0.0.0/8").Build()
		strict.Spec.Access[0].SourcePorts = v1alpha1.SourcePortsReserved
		create(strict)
		expectShare(tenant, "strict", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed)
		look("once")
		Consistently(anyPort).WithArguments(storage, "own").WithTimeout(time.Second).Should(BeTrue(), "whoever may make FileShares anywhere must not change how others mount")

		choose(tenant, true)
		readyTenantShare(storage, tenant, "strict")
		Eventually(anyPort).WithArguments(tenant, "strict").WithTimeout(timeout).Should(BeFalse())
		By("looking at another share, which is done within some minutes anyhow")
		look("twice")
		Eventually(anyPort).WithArguments(storage, "own").WithTimeout(timeout).Should(BeFalse())
	})

	It("is served as soon as its namespace gets the label, or the FileServer allows all", func() {
		storage, labelled, other := sharedFileServer(1), newTenant(false), newTenant(false)
		create(builders.FileShare(labelled, "a", "fs").OnNamespace(storage).Build())
		create(builders.FileShare(other, "b", "fs").OnNamespace(storage).Build())
		expectShare(labelled, "a", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed)
		choose(labelled, true)
		readyTenantShare(storage, labelled, "a")
		expectShare(other, "b", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed)
		change(exists(&v1alpha1.FileServer{}, storage, "fs"), func(fs *v1alpha1.FileServer) {
			fs.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
		})
		readyTenantShare(storage, other, "b")
	})

	It("is no longer served when that is taken back, paused or not; nothing is removed, and given again it is as it was", func() {
		storage, tenant, paused := sharedFileServer(2), newTenant(true), newTenant(true)
		create(builders.FileShare(tenant, "data", "fs").OnNamespace(storage).Directories("d{0..3}").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		create(builders.FileShare(paused, "kept", "fs").OnNamespace(storage).Build())
		readyTenantShare(storage, tenant, "data")
		readyTenantShare(storage, paused, "kept")
		change(exists(&v1alpha1.FileShare{}, paused, "kept"), func(s *v1alpha1.FileShare) {
			s.Annotations = map[string]string{v1alpha1.PausedAnnotation: v1alpha1.PausedTrue}
		})
		before := tenantDirectories(storage, tenant, "data")

		choose(tenant, false)
		choose(paused, false)
		expectShare(tenant, "data", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed)
		Expect(shareCondition(tenant, "data", v1alpha1.FileSharePlaced).Message).To(Equal(notAllowed(storage, tenant) + untilThen))
		for _, key := range []string{tenant + ".data", paused + ".kept"} {
			Eventually(func() *metav1.Time {
				return exists(&internalv1.ShareAttachment{}, storage, key).DeletionTimestamp
			}, timeout).ShouldNot(BeNil(), "it is hidden at once, and held until the exports are gone")
		}
		export := exportsOf(storage, "fs-0")[tenant+".data"]
		Expect(export.Spec.DataPolicy).To(Equal(internalv1.DataRetain))
		Eventually(func() map[string]*internalv1.ShareExport {
			loadConfigurations(storage, "fs")
			return exportsOf(storage, "fs-0")
		}, timeout).Should(BeEmpty())
		isNoMore(&internalv1.ShareAttachment{}, storage, tenant+".data")
		isNoMore(&internalv1.ShareAttachment{}, storage, paused+".kept")
		Expect(tenantDirectories(storage, tenant, "data")).To(HaveLen(4))
		claimAndVolume(tenant, "data")

		By("giving it again")
		choose(tenant, true)
		readyTenantShare(storage, tenant, "data")
		for path, directory := range tenantDirectories(storage, tenant, "data") {
			Expect(directory.UID).To(Equal(before[path].UID))
		}
	})

	It("keeps its data where it is deleted after that was taken back, whatever its reclaimPolicy", func() {
		storage, tenant := sharedFileServer(1), newTenant(true)
		create(builders.FileShare(tenant, "data", "fs").OnNamespace(storage).Directories("d").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		readyTenantShare(storage, tenant, "data")
		choose(tenant, false)
		expectShare(tenant, "data", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed)
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, tenant, "data"))).To(Succeed())
		for _, export := range exportsOf(storage, "fs-0") {
			Expect(export.Spec.DataPolicy).To(Equal(internalv1.DataRetain))
		}
		Eventually(func() bool {
			loadConfigurations(storage, "fs")
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: tenant, Name: "data"}, &v1alpha1.FileShare{}))
		}, timeout, "100ms").Should(BeTrue())
		Expect(tenantDirectories(storage, tenant, "data")["d"].Labels).To(HaveKeyWithValue(v1alpha1.RetainedLabel, v1alpha1.RetainedTrue))
	})

	It("has nothing in common with one of its name in another namespace", func() {
		storage, a, b := sharedFileServer(2), newTenant(true), newTenant(true)
		create(builders.FileShare(storage, "data", "fs").Path("/own").Directories("d{0..1}").Build())
		create(builders.FileShare(a, "data", "fs").OnNamespace(storage).Path("/a/data").Directories("d{0..1}").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		create(builders.FileShare(b, "data", "fs").OnNamespace(storage).Path("/b/data").Directories("d{0..1}").Build())
		readyShare(storage, "data")
		readyTenantShare(storage, a, "data")
		readyTenantShare(storage, b, "data")
		Expect(exportsOf(storage, "fs-1")).To(And(HaveLen(3), HaveKey("data"), HaveKey(a+".data"), HaveKey(b+".data")))
		_, volume := claimAndVolume(a, "data")
		_, other := claimAndVolume(b, "data")
		Expect(volume.Name).NotTo(Equal(other.Name))
		own := exists(&v1alpha1.FileShare{}, storage, "data").DeepCopy()

		By("deleting one of them with its data")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, a, "data"))).To(Succeed())
		Expect(deletingMessage(a, "data", "2 directories")).To(ContainSubstring("to remove its data"))
		Expect(exportsOf(storage, "fs-0")[a+".data"].Spec.DataPolicy).To(Equal(internalv1.DataDelete))
		exists(&internalv1.ShareAttachment{}, storage, a+".data")
		Eventually(func() bool {
			loadConfigurations(storage, "fs")
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: a, Name: "data"}, &v1alpha1.FileShare{}))
		}, timeout, "100ms").Should(BeTrue())
		isNoMore(&internalv1.ShareAttachment{}, storage, a+".data")
		isNoMore(&corev1.PersistentVolumeClaim{}, a, "data")
		Expect(tenantDirectories(storage, a, "data")).To(BeEmpty())
		Expect(tenantDirectories(storage, b, "data")).To(HaveLen(2))
		Expect(exportsOf(storage, "fs-1")).To(HaveLen(2))
		var all internalv1.ShareDirectoryList
		Expect(admin.List(ctx, &all, client.InNamespace(storage))).To(Succeed())
		Expect(all.Items).To(HaveLen(4))
		Expect(exists(&v1alpha1.FileShare{}, storage, "data").ResourceVersion).To(Equal(own.ResourceVersion), "nothing happened to it")
	})

	It("keeps the FileServer until it is gone, as one of its own namespace does", func() {
		storage, tenant := sharedFileServer(1), newTenant(true)
		create(builders.FileShare(tenant, "data", "fs").OnNamespace(storage).Build())
		readyTenantShare(storage, tenant, "data")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileServer{}, storage, "fs"))).To(Succeed())
		Expect(expectCondition(storage, "fs", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInUse)).To(ContainSubstring(tenant + "/data"))
		create(builders.FileShare(tenant, "late", "fs").OnNamespace(storage).Build())
		expectShare(tenant, "late", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed)
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, tenant, "data"))).To(Succeed())
		Eventually(func() bool {
			loadConfigurations(storage, "fs")
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: storage, Name: "fs"}, &v1alpha1.FileServer{}))
		}, timeout, "100ms").Should(BeTrue())
	})

	It("does not get what an earlier namespace of its name has left, until that is handed over", func() {
		storage, tenant := sharedFileServer(1), newTenant(true)
		share := func() *v1alpha1.FileShare {
			return builders.FileShare(tenant, "data", "fs").OnNamespace(storage).Directories("d").Build()
		}
		gone := func() {
			Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, tenant, "data"))).To(Succeed())
			Eventually(func() bool {
				loadConfigurations(storage, "fs")
				return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: tenant, Name: "data"}, &v1alpha1.FileShare{}))
			}, timeout, "100ms").Should(BeTrue())
			isNoMore(&corev1.PersistentVolumeClaim{}, tenant, naming.ShareClaim("data"))
			isNoMore(&corev1.PersistentVolume{}, "", naming.ShareVolume(tenant, "data"))
		}
		create(share())
		readyTenantShare(storage, tenant, "data")
		gone()
		uid := string(exists(&corev1.Namespace{}, "", tenant).UID)
		Expect(tenantDirectories(storage, tenant, "data")["d"].Annotations).To(HaveKeyWithValue(v1alpha1.NamespaceUIDAnnotation, uid))

		By("as if the namespace had been deleted, and its name given to others")
		left := tenantDirectories(storage, tenant, "data")["d"]
		change(&left, func(d *internalv1.ShareDirectory) {
			d.Annotations[v1alpha1.NamespaceUIDAnnotation] = "of-an-earlier-one"
		})
		again := share()
		again.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		create(again)
		Expect(expectShare(tenant, "data", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonDataOfDeletedNamespace)).To(
			ContainSubstring("spec.dataHandovers: [{namespace: " + tenant + ", namespaceUID: " + uid + "}]"))
		expectShare(tenant, "data", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonDataOfDeletedNamespace)
		awaitQuiet(tenant)
		Expect(exportsOf(storage, "fs-0")).To(BeEmpty())
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: storage, Name: tenant + ".data"}, &internalv1.ShareAttachment{}))).To(BeTrue())
		gone()
		Expect(tenantDirectories(storage, tenant, "data")["d"].Labels).To(HaveKeyWithValue(v1alpha1.RetainedLabel, v1alpha1.RetainedTrue), "it is not its to remove")

		By("handing it over")
		create(share())
		expectShare(tenant, "data", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonDataOfDeletedNamespace)
		change(exists(&v1alpha1.FileServer{}, storage, "fs"), func(fs *v1alpha1.FileServer) {
			fs.Spec.DataHandovers = []v1alpha1.DataHandover{{Namespace: tenant, NamespaceUID: uid}}
		})
		readyTenantShare(storage, tenant, "data")
		Expect(tenantDirectories(storage, tenant, "data")["d"].Annotations).NotTo(HaveKey(v1alpha1.NamespaceUIDAnnotation))
	})

	It("leaves nothing but its data after its finalizer was removed by hand", func() {
		storage, tenant := sharedFileServer(1), newTenant(true)
		create(builders.FileShare(tenant, "data", "fs").OnNamespace(storage).ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		readyTenantShare(storage, tenant, "data")
		share := exists(&v1alpha1.FileShare{}, tenant, "data")
		change(share, func(s *v1alpha1.FileShare) {
			s.Annotations = map[string]string{v1alpha1.PausedAnnotation: v1alpha1.PausedTrue}
		})
		expectShare(tenant, "data", v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
		Expect(admin.Delete(ctx, share)).To(Succeed())
		change(share, func(s *v1alpha1.FileShare) { s.Finalizers = nil })
		isNoMore(&internalv1.ShareAttachment{}, storage, tenant+".data")
		Eventually(func() *metav1.Time { return exportsOf(storage, "fs-0")[tenant+".data"].DeletionTimestamp }, timeout).ShouldNot(BeNil())
		Expect(exportsOf(storage, "fs-0")[tenant+".data"].Spec.DataPolicy).To(Equal(internalv1.DataRetain))
		Eventually(func() map[string]*internalv1.ShareExport {
			loadConfigurations(storage, "fs")
			return exportsOf(storage, "fs-0")
		}, timeout).Should(BeEmpty())
	})
})

var _ = Describe("A path that shares of two namespaces want", func() {
	It("is that of the one that was allowed first, and the other learns nothing of it but that", func() {
		storage, early, late := sharedFileServer(1), newTenant(false), newTenant(true)
		create(builders.FileShare(early, "secret", "fs").OnNamespace(storage).Path("/data").Build())
		expectShare(early, "secret", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotAllowed)
		create(builders.FileShare(late, "mine", "fs").OnNamespace(storage).Path("/data/set").Build())
		readyTenantShare(storage, late, "mine")

		By("allowing the older share")
		choose(early, true)
		Expect(expectShare(early, "secret", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonPathConflict)).To(Equal(
			"the path /data contains that of an older share of another namespace; delete this share and make it with another path"))
		expectShare(late, "mine", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Expect(exportsOf(storage, "fs-0")).To(HaveLen(1))

		By("deleting the one that has it")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, late, "mine"))).To(Succeed())
		readyTenantShare(storage, early, "secret")
	})
})

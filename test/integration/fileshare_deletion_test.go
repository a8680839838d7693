package integration

import (
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// deletingMessage waits until the deletion of a share waits for something that the text has, and returns all of it.
func deletingMessage(namespace, share, text string) string {
	GinkgoHelper()
	var got metav1.Condition
	Eventually(func() string {
		letClaimsGo()
		got = shareCondition(namespace, share, v1alpha1.ConditionReady)
		return got.Reason + ": " + got.Message
	}, timeout, "50ms").Should(And(HavePrefix(v1alpha1.ReasonDeleting), ContainSubstring(text)))
	return got.Message
}

var _ = Describe("Deleting a share", func() {
	It("with Retain stops its exports first, keeps its ShareDirectories as a memory, and says where the data stays", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Directories("d{0..3}").Build())
		readyShare(namespace, "s")
		claimAndVolume(namespace, "s")

		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		Expect(deletingMessage(namespace, "s", "exporting")).To(Equal("waiting for 2 of 2 data servers to stop exporting the share: fs-0, fs-1"))
		Expect(directoriesOf(namespace, "s")).To(HaveLen(4), "ShareDirectories stay while a data server may still serve them")

		shareIsGone(namespace, "s", "fs")
		Expect(directoriesOf(namespace, "s")).To(HaveLen(4), "they tell where the data is")
		Expect(directoriesOf(namespace, "s")["d0"].Labels).To(HaveKeyWithValue(v1alpha1.RetainedLabel, v1alpha1.RetainedTrue))
		isNoMore(&corev1.PersistentVolumeClaim{}, namespace, naming.ShareClaim("s"))
		isNoMore(&corev1.PersistentVolume{}, "", naming.ShareVolume(namespace, "s"))
		Eventually(func() []string { return notes(namespace, "s") }, timeout).Should(ContainElement(
			"the data of share s stays in the directory s of the volumes of FileServer fs; a FileShare of the same name finds it again"))
	})

	It("takes away the record of a client's mkdir that comes when all is over, and none that tells where data is", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		create(builders.FileShare(namespace, "s", "fs").Directories("d0").Build())
		readyShare(namespace, "s")
		made := directoriesOf(namespace, "s")["d0"]
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		shareIsGone(namespace, "s", "fs")
		late := &internalv1.ShareDirectory{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "late", Labels: maps.Clone(made.Labels), Annotations: map[string]string{tree.MadeByAnnotation: "fs-namespace-x"},
			},
			Spec: made.Spec,
		}
		delete(late.Labels, v1alpha1.RetainedLabel)
		late.Spec.Path = "late"
		create(late)
		isGone(late, namespace, "late")
		Expect(directoriesOf(namespace, "s")).To(HaveKey("d0"))
	})

	It("with Delete removes no data before the pods that use its claim have ended", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		create(builders.FileShare(namespace, "s", "fs").Directories("d").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		readyShare(namespace, "s")
		claimAndVolume(namespace, "s")
		for name, node := range map[string]string{"trainer": "node-a", "pending": "", "other": "node-b"} {
			claim := "s"
			if name == "other" {
				claim = "another"
			}
			create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{
				NodeName:   node,
				Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}},
				Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
				}}},
			}})
		}
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		Expect(expectShare(namespace, "s", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInUse)).To(Equal(
			"reclaimPolicy is Delete, and no data is removed before the pods that use PersistentVolumeClaim s have ended: trainer; delete them, or set reclaimPolicy to Retain, which keeps the data"))
		isGone(&corev1.PersistentVolumeClaim{}, namespace, "s")
		awaitQuiet(namespace)
		Expect(exportsOf(namespace, "fs-0")["s"].DeletionTimestamp).To(BeNil())
		Expect(exportsOf(namespace, "fs-0")["s"].Spec.DataPolicy).To(Equal(internalv1.DataRetain))

		By("ending them")
		Expect(admin.Delete(ctx, exists(&corev1.Pod{}, namespace, "trainer"), client.GracePeriodSeconds(0))).To(Succeed())
		shareIsGone(namespace, "s", "fs")
		Expect(directoriesOf(namespace, "s")).To(BeEmpty())
	})

	It("with Delete keeps what an earlier share of its name left, if it was never looked at", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		create(builders.FileShare(namespace, "s", "fs").Directories("d").Build())
		readyShare(namespace, "s")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		shareIsGone(namespace, "s", "fs")
		reportShares(namespace, "fs-0", []string{"s"})
		// It is paused, so no pass decides about it, and has its finalizer from its maker, as one that was restored.
		again := builders.FileShare(namespace, "s", "fs").Directories("d").ReclaimPolicy(v1alpha1.ReclaimDelete).Build()
		again.Finalizers, again.Annotations = []string{v1alpha1.FileShareFinalizer}, map[string]string{v1alpha1.PausedAnnotation: v1alpha1.PausedTrue}
		create(again)
		awaitQuiet(namespace)
		before := exists(&v1alpha1.FileShare{}, namespace, "s").DeepCopy()
		unseen := before.DeepCopy()
		unseen.Status = v1alpha1.FileShareStatus{ObservedGeneration: ptr.To(int64(0))}
		Expect(admin.Delete(ctx, before.DeepCopy())).To(Succeed())
		Eventually(func() error {
			now := exists(&v1alpha1.FileShare{}, namespace, "s")
			after := now.DeepCopy()
			after.Status = unseen.Status
			return admin.Status().Patch(ctx, after, client.MergeFrom(now))
		}, timeout).Should(Succeed())
		change(exists(&v1alpha1.FileShare{}, namespace, "s"), func(s *v1alpha1.FileShare) { s.Annotations = nil })
		isNoMore(&v1alpha1.FileShare{}, namespace, "s")
		Expect(directoriesOf(namespace, "s")).To(HaveKey("d"))
		Expect(directoriesOf(namespace, "s")["d"].Labels).To(HaveKeyWithValue(v1alpha1.RetainedLabel, v1alpha1.RetainedTrue))
	})

	It("with Delete waits until every data server has removed the data, and says what is removed", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Directories("d{0..3}").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		readyShare(namespace, "s")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		Expect(deletingMessage(namespace, "s", "remove its data")).To(Equal(
			"waiting for 2 of 2 data servers to stop exporting the share and to remove its data, 4 directories: fs-0, fs-1"))
		serveExports(namespace, "fs-1")
		deletingMessage(namespace, "s", "waiting for 1 of 2 data servers")
		Expect(directoriesOf(namespace, "s")).To(HaveLen(4))
		serveExports(namespace, "fs-0")
		isNoMore(&v1alpha1.FileShare{}, namespace, "s")
		Expect(directoriesOf(namespace, "s")).To(BeEmpty())
	})

	It("is not held up by a lost node; its server does its part when it is back, before a share of that name is exported there", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Directories("d{0..3}").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		readyShare(namespace, "s")
		setReady := func(ready corev1.ConditionStatus) {
			pod := exists(&corev1.Pod{}, namespace, "fs-1")
			before := pod.DeepCopy()
			for i := range pod.Status.Conditions {
				if pod.Status.Conditions[i].Type == corev1.PodReady {
					pod.Status.Conditions[i].Status = ready
				}
			}
			Expect(admin.Status().Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
		}
		setReady(corev1.ConditionFalse)
		expectCondition(namespace, "fs", v1alpha1.FileServerServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonServersNotReady)
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		Eventually(func() bool {
			serveExports(namespace, "fs-0")
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "s"}, &v1alpha1.FileShare{}))
		}, timeout, "100ms").Should(BeTrue(), func() string { return shareCondition(namespace, "s", v1alpha1.ConditionReady).Message })
		Eventually(func() []string { return notes(namespace, "s") }, timeout).Should(ContainElement(
			"the data of share s was removed from the volumes of FileServer fs; fs-1: away, and to do its part when it is back"))
		Expect(exportsOf(namespace, "fs-0")).To(BeEmpty())
		Expect(exportsOf(namespace, "fs-1")["s"].Spec.DataPolicy).To(Equal(internalv1.DataDelete))

		By("making it again while the server is away")
		letGo(&corev1.PersistentVolumeClaim{}, namespace, naming.ShareClaim("s"))
		letGo(&corev1.PersistentVolume{}, "", naming.ShareVolume(namespace, "s"))
		create(builders.FileShare(namespace, "s", "fs").Directories("d0").Build())
		Eventually(func() bool { return exportsOf(namespace, "fs-0")["s"] != nil }, timeout).Should(BeTrue())
		old := exportsOf(namespace, "fs-1")["s"]
		Consistently(func() bool { return exportsOf(namespace, "fs-1")["s"].UID == old.UID }, "1s").Should(BeTrue(), "the removal of the old data must come first")

		By("the server coming back")
		setReady(corev1.ConditionTrue)
		serveExports(namespace, "fs-1")
		Eventually(func() bool {
			export := exportsOf(namespace, "fs-1")["s"]
			return export != nil && export.UID != old.UID && export.Spec.DataPolicy == internalv1.DataRetain
		}, timeout).Should(BeTrue())
		readyShare(namespace, "s")
	})

	It("forgets what a data server that is no more would have to do", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		create(builders.FileShare(namespace, "s", "fs").Build())
		readyShare(namespace, "s")
		export := exportsOf(namespace, "fs-0")["s"]
		server := exists(&internalv1.DataServer{}, namespace, "fs-0")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileServer{}, namespace, "fs"))).To(Succeed())
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		deletingMessage(namespace, "s", "exporting")
		Expect(admin.Delete(ctx, server)).To(Succeed())
		Eventually(func() bool {
			current := exportsOf(namespace, "fs-0")["s"]
			return current == nil || current.UID != export.UID
		}, timeout).Should(BeTrue(), "no data server could finish it")
	})

	It("is not held up by a FileServer that never was", func() {
		namespace := newNamespace()
		create(builders.FileShare(namespace, "s", "nowhere").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		expectShare(namespace, "s", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonFileServerNotFound)
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		isNoMore(&v1alpha1.FileShare{}, namespace, "s")
	})

	It("is not held up by data servers that never started", func() {
		namespace := newNamespace()
		create(builders.FileServer(namespace, "fs").Replicas(2).Class("no-such-class").Build())
		create(builders.FileShare(namespace, "s", "fs").Directories("a").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		expectShare(namespace, "s", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonInventoryPending)
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		isNoMore(&v1alpha1.FileShare{}, namespace, "s")
	})

	It("and making it again finds the data where it was, whatever happened meanwhile", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Directories("d{0..3}").Build())
		create(builders.FileShare(namespace, "one", "fs").Single().Build())
		readyShare(namespace, "s")
		readyShare(namespace, "one")
		createDirectory(builders.ShareDirectory(namespace, "fs", "s", "made-by-a-client", "fs-1"))
		bindVolume(namespace, "s")
		owners := func(share string) map[string]string {
			found := map[string]string{}
			for path, directory := range directoriesOf(namespace, share) {
				found[path] = directory.Spec.DataServerRef.Name
			}
			return found
		}
		before, beforeOne := owners("s"), owners("one")
		Expect(before).To(HaveLen(5))
		for _, name := range []string{"s", "one"} {
			Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, name))).To(Succeed())
			shareIsGone(namespace, name, "fs")
		}
		By("another share shifting the balance")
		createDirectory(builders.ShareDirectory(namespace, "fs", "shift", "a", "fs-0"))
		createDirectory(builders.ShareDirectory(namespace, "fs", "shift", "b", beforeOne["."]))

		create(builders.FileShare(namespace, "s", "fs").Directories("d{0..4}").Build())
		create(builders.FileShare(namespace, "one", "fs").Single().Build())
		Expect(expectShare(namespace, "s", v1alpha1.FileShareClaimAvailable, metav1.ConditionFalse, v1alpha1.ReasonProgressing)).
			To(ContainSubstring("is being deleted"), "nothing is built on what goes away")
		for _, share := range []string{"s", "one"} {
			letGo(&corev1.PersistentVolumeClaim{}, namespace, naming.ShareClaim(share))
			letGo(&corev1.PersistentVolume{}, "", naming.ShareVolume(namespace, share))
		}
		readyShare(namespace, "s")
		readyShare(namespace, "one")
		bindVolume(namespace, "s")
		after := owners("s")
		Expect(after).To(HaveKey("d4"))
		delete(after, "d4")
		Expect(after).To(Equal(before))
		Expect(owners("one")).To(Equal(beforeOne))
		labels := directoriesOf(namespace, "s")["d0"].Labels
		Expect(labels).NotTo(HaveKey(v1alpha1.RetainedLabel))
		Expect(labels).To(HaveKeyWithValue(v1alpha1.FileServerLabel, "fs"), "namespace servers find it by that")
		Expect(labels).To(HaveKeyWithValue(v1alpha1.FileShareLabel, "s"))
		Expect(labels).To(HaveKeyWithValue(v1alpha1.DataServerLabel, before["d0"]))
	})

	It("with Retain is no obstacle to a share of that name on another FileServer", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		servingFileServer(namespace, "new", 1)
		create(builders.FileShare(namespace, "s", "fs").Directories("d").Build())
		readyShare(namespace, "s")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		shareIsGone(namespace, "s", "fs")
		create(builders.FileShare(namespace, "s", "new").Directories("d").Build())
		Eventually(func() string { return directoriesOf(namespace, "s")["d"].Spec.DataServerRef.Name }, timeout).Should(Equal("new-0"))
	})
})

// notes are the texts of the events of a share.
func notes(namespace, share string) []string {
	GinkgoHelper()
	return notesOf(namespace, "FileShare", share)
}

func notesOf(namespace, kind, name string) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	var texts []string
	for _, event := range list.Items {
		if event.InvolvedObject.Kind == kind && event.InvolvedObject.Name == name {
			texts = append(texts, event.Message)
		}
	}
	return texts
}

var _ = Describe("Deleting a FileServer of which a data server is lost", func() {
	// lost has a share deleted with its data while fs-1 is away, and the FileServer as well, and plays Kubernetes' garbage collector.
	lost := func(namespace string) {
		GinkgoHelper()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Directories("d{0..3}").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		readyShare(namespace, "s")
		create(builders.FileShare(namespace, "kept", "fs").Path("/kept").Directories("d{0..3}").Build())
		readyShare(namespace, "kept")
		setUnreachable(namespace, "fs-1", "fs-namespace-x")
		expectCondition(namespace, "fs", v1alpha1.FileServerServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonServersNotReady)

		fileServer := exists(&v1alpha1.FileServer{}, namespace, "fs")
		Expect(admin.Delete(ctx, fileServer)).To(Succeed())
		for _, name := range []string{"s", "kept"} {
			Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, name))).To(Succeed())
		}
		Eventually(func() bool {
			serveExports(namespace, "fs-0")
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "fs"}, &v1alpha1.FileServer{}))
		}, timeout, "100ms").Should(BeTrue(), func() string {
			return fileServerCondition(namespace, "fs", v1alpha1.ConditionReady).Message + shareCondition(namespace, "s", v1alpha1.ConditionReady).Message
		})
		collectGarbage(namespace, fileServer.UID)
		Eventually(func() bool { return exportsOf(namespace, "fs-1")["kept"] == nil }, timeout).Should(BeTrue(), "nothing of that is to be remembered")
	}

	It("says in its status what the lost one has still to remove", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		readyShare(namespace, "s")
		setUnreachable(namespace, "fs-1", "fs-namespace-x")
		expectCondition(namespace, "fs", v1alpha1.FileServerServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonServersNotReady)
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		Eventually(func() string {
			serveExports(namespace, "fs-0")
			return fileServerCondition(namespace, "fs", v1alpha1.FileServerServersAvailable).Message
		}, timeout, "100ms").Should(ContainSubstring("; when it is back it removes the data of deleted shares, in these directories of its volumes: s"))

		setUnreachable(namespace, "fs-1", "")
		serveExports(namespace, "fs-1")
		expectCondition(namespace, "fs", v1alpha1.FileServerServersAvailable, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Eventually(func() int { return len(exportsOf(namespace, "fs-1")) }, timeout).Should(BeZero())
	})

	It("ends, and a FileServer of the same name has the data removed before anything is exported there", func() {
		namespace := newNamespace()
		lost(namespace)
		Eventually(func() []string { return notesOf(namespace, "FileServer", "fs") }, timeout).Should(ContainElement(And(
			ContainSubstring("data of deleted shares is still on the volumes of data servers that were away: fs-1 (directories s)"),
			ContainSubstring("kubectl -n "+namespace+" delete pvc data-0-fs-1"))))
		old := exportsOf(namespace, "fs-1")["s"]
		Expect(old).NotTo(BeNil(), "it remembers")
		Expect(old.Spec.DataPolicy).To(Equal(internalv1.DataDelete))
		Consistently(func() bool { return exportsOf(namespace, "fs-1")["s"] != nil }, "2s").Should(BeTrue())

		By("making both again, with the claims that stayed")
		create(builders.FileServer(namespace, "fs").Replicas(2).Class(standardClass).Build())
		runNamespaceServers(namespace, "fs")
		startDataServers(namespace, "fs")
		letGo(&corev1.PersistentVolumeClaim{}, namespace, naming.ShareClaim("s"))
		letGo(&corev1.PersistentVolume{}, "", naming.ShareVolume(namespace, "s"))
		create(builders.FileShare(namespace, "s", "fs").Directories("d0").Build())
		Eventually(func() bool { return exportsOf(namespace, "fs-0")["s"] != nil }, timeout).Should(BeTrue())
		Consistently(func() bool { return exportsOf(namespace, "fs-1")["s"].UID == old.UID }, "1s").Should(BeTrue())
		readyShare(namespace, "s")
		Expect(exportsOf(namespace, "fs-1")["s"].UID).NotTo(Equal(old.UID))
		Expect(exportsOf(namespace, "fs-1")["s"].Spec.DataPolicy).To(Equal(internalv1.DataRetain))
	})

	It("forgets the data when its claim is deleted", func() {
		namespace := newNamespace()
		lost(namespace)
		Expect(exportsOf(namespace, "fs-1")).To(HaveKey("s"))
		Expect(admin.Delete(ctx, exists(&corev1.PersistentVolumeClaim{}, namespace, "data-0-fs-1"))).To(Succeed())
		isNoMore(&corev1.PersistentVolumeClaim{}, namespace, "data-0-fs-1")
		isNoMore(&internalv1.ShareExport{}, namespace, "s.fs-1")
	})

	It("and one that is scaled in keeps its memory, too, and says so", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		readyShare(namespace, "s")
		setUnreachable(namespace, "fs-1", "fs-namespace-x")
		expectCondition(namespace, "fs", v1alpha1.FileServerServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonServersNotReady)
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		Eventually(func() bool {
			serveExports(namespace, "fs-0")
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "s"}, &v1alpha1.FileShare{}))
		}, timeout, "100ms").Should(BeTrue())
		change(exists(&v1alpha1.FileServer{}, namespace, "fs"), func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = 1 })
		isGone(&internalv1.DataServer{}, namespace, "fs-1")
		Eventually(func() string {
			loadConfigurations(namespace, "fs")
			return fileServerCondition(namespace, "fs", v1alpha1.FileServerConfigApplied).Message
		}, timeout, "100ms").Should(And(ContainSubstring("not removed by data servers that are scaled in: fs-1 (directories s)"),
			HaveSuffix("kubectl -n "+namespace+" delete pvc data-0-fs-1")))
		Expect(exportsOf(namespace, "fs-1")).To(HaveKey("s"))
		Expect(fileServerCondition(namespace, "fs", v1alpha1.FileServerConfigApplied).Status).To(Equal(metav1.ConditionTrue))
	})
})

// setUnreachable plays a namespace server that says that a data server does not answer, or that it does again: "".
func setUnreachable(namespace, server, seenBy string) {
	GinkgoHelper()
	silent := exists(&internalv1.DataServer{}, namespace, server)
	before := silent.DeepCopy()
	silent.Status.Unreachable = internalv1.Unreachable{}
	if seenBy != "" {
		silent.Status.Unreachable = internalv1.Unreachable{SinceTime: ptr.To(metav1.Now()), SeenBy: seenBy}
	}
	Expect(admin.Status().Patch(ctx, silent, client.MergeFrom(before))).To(Succeed())
}

// collectGarbage plays Kubernetes' garbage collector: what an object that is gone owned goes, and pods with it.
func collectGarbage(namespace string, owner types.UID) {
	GinkgoHelper()
	collectOwned(namespace, owner)
	removePods(namespace)
}

// collectOwned is collectGarbage before it comes to the pods, which belong to what went.
func collectOwned(namespace string, owner types.UID) {
	GinkgoHelper()
	for _, list := range []client.ObjectList{
		&internalv1.DataServerList{}, &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{},
		&policyv1.PodDisruptionBudgetList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{},
		&discoveryv1.EndpointSliceList{},
	} {
		Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		Expect(meta.EachListItem(list, func(object runtime.Object) error {
			dependent := object.(client.Object)
			if of := metav1.GetControllerOf(dependent); of == nil || of.UID != owner {
				return nil
			}
			return client.IgnoreNotFound(admin.Delete(ctx, dependent, client.GracePeriodSeconds(0)))
		})).To(Succeed())
	}
}

// removePods ends all pods.
func removePods(namespace string) {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(admin.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
	for i := range pods.Items {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0)))).To(Succeed())
	}
}

package integration

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// stopExporting plays instance managers that have dropped exports and not removed any data yet.
func stopExporting(namespace, fileServer string) {
	GinkgoHelper()
	var list internalv1.DataServerList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(naming.SelectDataServers(fileServer)))).To(Succeed())
	for i := range list.Items {
		server := &list.Items[i]
		before := server.DeepCopy()
		generation := server.Generation
		server.Status.ObservedGeneration = &generation
		server.Status.Exports = slices.DeleteFunc(server.Status.Exports, func(e internalv1.ServedExport) bool {
			return !slices.ContainsFunc(server.Spec.Exports, func(wanted internalv1.ShareExport) bool { return wanted.ShareName == e.ShareName })
		})
		Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
	}
}

// deletingMessage waits until the deletion of a share waits for something that the text has, and returns all of it.
func deletingMessage(namespace, share, text string) string {
	GinkgoHelper()
	var got metav1.Condition
	Eventually(func() string {
		got = shareCondition(namespace, share, v1alpha1.ConditionReady)
		return got.Reason + ": " + got.Message
	}, patience, "50ms").Should(And(HavePrefix(v1alpha1.ReasonDeleting), ContainSubstring(text)))
	return got.Message
}

var _ = Describe("Deleting a share", func() {
	It("with Retain stops its exports first, keeps its records as a memory, and says where the data stays", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Directories("d{0..3}").Build())
		readyShare(namespace, "s")
		claimAndVolume(namespace, "s")

		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		Expect(deletingMessage(namespace, "s", "exporting")).To(Equal("waiting for 2 of 2 data servers to stop exporting the share: fs-0, fs-1"))
		Expect(recordsOf(namespace, "s")).To(HaveLen(4), "records stay while a data server may still serve them")

		shareIsGone(namespace, "s", "fs")
		Expect(recordsOf(namespace, "s")).To(HaveLen(4), "they tell where the data is")
		Expect(recordsOf(namespace, "s")["d0"].Labels).To(HaveKeyWithValue(v1alpha1.RetainedLabel, v1alpha1.RetainedTrue))
		isNoMore(&corev1.PersistentVolumeClaim{}, namespace, naming.ShareClaim("s"))
		isNoMore(&corev1.PersistentVolume{}, "", naming.ShareVolume(namespace, "s"))
		Eventually(func() []string { return notes(namespace, "s") }, patience).Should(ContainElement(
			"the data of share s stays in the directory s of the volumes of FileServer fs; a FileShare of the same name finds it again"))
	})

	It("with Delete waits until every data server has removed the data, and says what is removed", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Directories("d{0..3}").ReclaimPolicy(v1alpha1.ReclaimDelete).Build())
		readyShare(namespace, "s")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "s"))).To(Succeed())
		deletingMessage(namespace, "s", "exporting")
		// The operator asks for the removal together with the end of the export.
		Eventually(func() []string {
			stopExporting(namespace, "fs")
			return exists(&internalv1.DataServer{}, namespace, "fs-1").Spec.Removals
		}, patience).Should(ConsistOf("s"))
		stopExporting(namespace, "fs")
		Expect(deletingMessage(namespace, "s", "removing the data")).
			To(Equal("removing the data of share s on 2 data servers, 4 directories: waiting for fs-0, fs-1"))
		Expect(recordsOf(namespace, "s")).To(HaveLen(4))
		for _, name := range []string{"fs-0", "fs-1"} {
			server := exists(&internalv1.DataServer{}, namespace, name)
			before := server.DeepCopy()
			server.Status.Removed = server.Spec.Removals
			Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
		}
		isNoMore(&v1alpha1.FileShare{}, namespace, "s")
		Expect(recordsOf(namespace, "s")).To(BeEmpty())
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
		expectShare(namespace, "s", v1alpha1.FileSharePlaced, metav1.ConditionTrue, v1alpha1.ReasonReady)
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
			for path, record := range recordsOf(namespace, share) {
				found[path] = record.Spec.DataServerRef.Name
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
		labels := recordsOf(namespace, "s")["d0"].Labels
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
		Eventually(func() string { return recordsOf(namespace, "s")["d"].Spec.DataServerRef.Name }, patience).Should(Equal("new-0"))
	})
})

// notes are the texts of the events of a share.
func notes(namespace, share string) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	var texts []string
	for _, event := range list.Items {
		if event.InvolvedObject.Kind == "FileShare" && event.InvolvedObject.Name == share {
			texts = append(texts, event.Message)
		}
	}
	return texts
}

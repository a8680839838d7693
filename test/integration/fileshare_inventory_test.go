package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("Before a directory gets an owner", func() {
	// answers has a data server answer, or not.
	answers := func(namespace, server string, yes bool) {
		GinkgoHelper()
		object := exists(&internalv1.DataServer{}, namespace, server)
		before := object.DeepCopy()
		object.Status.Unreachable = internalv1.Unreachable{}
		if !yes {
			object.Status.Unreachable = internalv1.Unreachable{SinceTime: &metav1.Time{Time: time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)}, SeenBy: "namespace-x"}
		}
		Expect(admin.Status().Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
	}
	// lose deletes all ShareDirectories.
	lose := func(namespace string) {
		GinkgoHelper()
		Expect(admin.DeleteAllOf(ctx, &internalv1.ShareDirectory{}, client.InNamespace(namespace))).To(Succeed())
	}
	// look plays the leader on one data server, which has these directories of the share.
	look := func(namespace, share, server string, found internalv1.ShareInventory, paths ...string) {
		GinkgoHelper()
		fileServer := exists(&v1alpha1.FileShare{}, namespace, share).Spec.FileServerRef.Name
		for _, path := range paths {
			createDirectory(builders.ShareDirectory(namespace, fileServer, share, path, server))
		}
		loadConfigurations(namespace, fileServer)
		tellInventory(exportsOf(namespace, server)[share], found)
	}
	waitsFor := func(namespace, share, server string) {
		GinkgoHelper()
		Eventually(func() metav1.Condition { return shareCondition(namespace, share, v1alpha1.FileShareInventoried) }, timeout, "50ms").
			Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonDataServersUnavailable),
				HaveField("Message", And(ContainSubstring("waiting for "+server), ContainSubstring("no answer since"), ContainSubstring("spec.ignoreDataOn")))))
	}

	It("every data server that may have it is looked at, also after ShareDirectories were lost", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Directories("d{0..3}").Build())
		readyShare(namespace, "s")
		paths := map[string][]string{}
		for path, directory := range directoriesOf(namespace, "s") {
			paths[directory.Spec.DataServerRef.Name] = append(paths[directory.Spec.DataServerRef.Name], path)
		}

		By("losing them all while one data server does not answer")
		answers(namespace, "fs-1", false)
		lose(namespace)
		Eventually(func() int64 {
			return exists(&v1alpha1.FileShare{}, namespace, "s").Status.InventoryGeneration
		}, timeout).Should(Equal(int64(2)))
		look(namespace, "s", "fs-0", internalv1.ShareInventory{}, paths["fs-0"]...)
		waitsFor(namespace, "s", "fs-1")
		Consistently(func() int { return len(directoriesOf(namespace, "s")) }, "1s").Should(Equal(len(paths["fs-0"])), "nothing may be placed")

		By("seeing it again")
		answers(namespace, "fs-1", true)
		look(namespace, "s", "fs-1", internalv1.ShareInventory{}, paths["fs-1"]...)
		readyShare(namespace, "s")
		for server, there := range paths {
			for _, path := range there {
				Expect(directoriesOf(namespace, "s")[path].Spec.DataServerRef.Name).To(Equal(server), path)
			}
		}
	})

	It("nothing is looked for when a client has removed one that is declared", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Directories("d{0..3}").Build())
		readyShare(namespace, "s")
		answers(namespace, "fs-1", false)
		for path, directory := range directoriesOf(namespace, "s") {
			if directory.Spec.DataServerRef.Name != "fs-0" {
				continue
			}
			By("removing " + path)
			before := directory.DeepCopy()
			directory.Status.State = internalv1.DirectoryRemoving
			Expect(admin.Status().Patch(ctx, &directory, client.MergeFrom(before))).To(Succeed())
			Expect(admin.Delete(ctx, &directory)).To(Succeed())
			Eventually(func() bool {
				now, there := directoriesOf(namespace, "s")[path]
				return there && now.UID != directory.UID
			}, timeout).Should(BeTrue(), "it is declared, so it is made again")
		}
		share := exists(&v1alpha1.FileShare{}, namespace, "s")
		Expect(share.Status.InventoryGeneration).To(BeNumerically("<", 2))
		Expect(conditions.IsTrue(share.Status.Conditions, v1alpha1.FileShareInventoried)).To(BeTrue(), "mkdir waits for fs-1")
	})

	It("a Single share that is made again waits for the one data server that may have its data", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "one", "fs").Single().Build())
		readyShare(namespace, "one")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "one"))).To(Succeed())
		shareIsGone(namespace, "one", "fs")
		lose(namespace)
		answers(namespace, "fs-1", false)
		create(builders.FileShare(namespace, "one", "fs").Single().Build())
		Eventually(func() bool { return exportsOf(namespace, "fs-0")["one"] != nil }, timeout).Should(BeTrue())
		look(namespace, "one", "fs-0", internalv1.ShareInventory{})
		waitsFor(namespace, "one", "fs-1")
		Expect(directoriesOf(namespace, "one")).To(BeEmpty())
		Expect(conditions.Reason(exists(&v1alpha1.FileShare{}, namespace, "one").Status.Conditions, v1alpha1.FileSharePlaced)).
			To(Equal(v1alpha1.ReasonDataServersUnavailable))

		By("it having the data")
		answers(namespace, "fs-1", true)
		look(namespace, "one", "fs-1", internalv1.ShareInventory{OccupiedVolumes: []int32{0}})
		Eventually(func() map[string]internalv1.ShareDirectory { return directoriesOf(namespace, "one") }, timeout).Should(HaveKey("."))
		Expect(directoriesOf(namespace, "one")["."].Spec.DataServerRef.Name).To(Equal("fs-1"))
	})

	It("one that never comes back is given up by name, and one that never had the share delays nothing", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "old", "fs").Directories("d0").Build())
		readyShare(namespace, "old")
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "old"))).To(Succeed())
		shareIsGone(namespace, "old", "fs")
		lose(namespace)
		answers(namespace, "fs-1", false)

		create(builders.FileShare(namespace, "new", "fs").Directories("d0").Build())
		expectShare(namespace, "new", v1alpha1.FileShareInventoried, metav1.ConditionTrue, v1alpha1.ReasonReady)
		expectShare(namespace, "new", v1alpha1.FileSharePlaced, metav1.ConditionTrue, v1alpha1.ReasonReady)

		create(builders.FileShare(namespace, "old", "fs").Directories("d0").Build())
		waitsFor(namespace, "old", "fs-0")
		Eventually(func() bool { return exportsOf(namespace, "fs-0")["old"] != nil }, timeout).Should(BeTrue())
		look(namespace, "old", "fs-0", internalv1.ShareInventory{})
		waitsFor(namespace, "old", "fs-1")
		change(exists(&v1alpha1.FileShare{}, namespace, "old"), func(s *v1alpha1.FileShare) { s.Spec.IgnoreDataOn = []string{"fs-1"} })
		expectShare(namespace, "old", v1alpha1.FileSharePlaced, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Expect(directoriesOf(namespace, "old")["d0"].Spec.DataServerRef.Name).To(Equal("fs-0"))
	})

	It("and data that is found on two data servers is reported with its places", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Directories("d0").Build())
		readyShare(namespace, "s")
		look(namespace, "s", "fs-1", internalv1.ShareInventory{
			Misplaced: []internalv1.MisplacedDirectory{{Volume: ptr.To(int32(0)), Path: "d0"}}, MisplacedCount: ptr.To(int32(1)),
		})
		Expect(expectShare(namespace, "s", v1alpha1.FileShareInventoried, metav1.ConditionTrue, v1alpha1.ReasonDataMisplaced)).
			To(ContainSubstring("fs-1:/volumes/0/s/d0"))
		Expect(expectShare(namespace, "s", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonDataMisplaced)).
			To(ContainSubstring("fs-1:/volumes/0/s/d0"))

		By("its owner having it no more, it is not a copy")
		d0 := directoriesOf(namespace, "s")["d0"]
		d0.Status.State, d0.Status.LossID, d0.Status.MissingTime = internalv1.DirectoryMissing, "00000000000000aa", ptr.To(metav1.Now())
		Expect(admin.Status().Update(ctx, &d0)).To(Succeed())
		Expect(expectShare(namespace, "s", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDirectoriesElsewhere)).
			To(And(ContainSubstring("found at fs-1:/volumes/0/s/d0"), ContainSubstring("delete ShareDirectory "+namespace+"/"+d0.Name)))
		Expect(expectShare(namespace, "s", v1alpha1.FileShareInventoried, metav1.ConditionTrue, v1alpha1.ReasonDirectoriesElsewhere)).
			To(ContainSubstring("Remove nothing there"))
	})
})

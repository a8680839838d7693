package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("The directories of a share", func() {
	It("that it declares appear, spread over all data servers", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 3)
		create(builders.FileShare(namespace, "unet3d", "training").Depth(2).Directories("{train,valid}/{0..5}").Owner(1000, 100, "0770").Build())
		share := readyShare(namespace, "unet3d")

		directories := directoriesOf(namespace, "unet3d")
		Expect(directories).To(HaveLen(14), "12 directories and the two above them")
		Expect(perServer(directories)).To(Equal(map[string]int{"training-0": 4, "training-1": 4, "training-2": 4}))
		Expect(directories["train"].Spec.DataServerRef.Name).To(BeEmpty(), "it exists in the namespace only")
		first := directories["train/0"]
		Expect(first.Name).To(Equal(naming.Directory("training", "unet3d", "train/0")))
		Expect(first.Labels).To(HaveKeyWithValue(v1alpha1.DataServerLabel, first.Spec.DataServerRef.Name))
		Expect(*first.Spec.UID).To(Equal(int64(1000)))
		Expect(*first.Spec.GID).To(Equal(int64(100)))
		Expect(first.Spec.Mode).To(Equal("0770"))

		Expect(*share.Status.Directories.Count).To(Equal(int32(12)))
		Expect(*share.Status.Directories.Ready).To(Equal(int32(12)))
		Expect(share.Status.Directories.PerServer).To(HaveLen(3))
		Expect(*share.Status.ObservedGeneration).To(Equal(share.Generation))

		By("adding one more")
		change(share, func(s *v1alpha1.FileShare) { s.Spec.Directories = append(s.Spec.Directories, "test/a") })
		Expect(expectShare(namespace, "unet3d", v1alpha1.FileShareJunctionsResolved, metav1.ConditionFalse, v1alpha1.ReasonDirectoriesPending)).
			To(ContainSubstring("1 of 13 directories do not exist on their data servers yet: \"test/a\" on training-0"))
		readyShare(namespace, "unet3d")
	})

	It("wait until all data servers are known, and heal by themselves", func() {
		namespace := newNamespace()
		create(builders.FileShare(namespace, "early", "later").Directories("d{0..3}").Build())
		Expect(expectShare(namespace, "early", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonFileServerNotFound)).
			To(ContainSubstring(`there is no FileServer "later" in namespace "` + namespace + `"; create it`))
		Expect(directoriesOf(namespace, "early")).To(BeEmpty())
		servingFileServer(namespace, "later", 2)
		readyShare(namespace, "early")
		Expect(perServer(directoriesOf(namespace, "early"))).To(Equal(map[string]int{"later-0": 2, "later-1": 2}))
	})

	It("of a Single share are one, with an owner", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "one", "fs").Single().Build())
		readyShare(namespace, "one")
		directories := directoriesOf(namespace, "one")
		Expect(directories).To(HaveLen(1))
		Expect(directories["."].Spec.DataServerRef.Name).To(HavePrefix("fs-"))
	})

	It("are not made again where a client was faster", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Build())
		readyShare(namespace, "s")
		createDirectory(builders.ShareDirectory(namespace, "fs", "s", "a", "fs-1"))
		change(exists(&v1alpha1.FileShare{}, namespace, "s"), func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"{a,b}"} })
		Eventually(func() map[string]internalv1.ShareDirectory { return directoriesOf(namespace, "s") }, timeout).Should(HaveKey("b"))
		readyShare(namespace, "s")
		directories := directoriesOf(namespace, "s")
		Expect(directories["a"].Spec.DataServerRef.Name).To(Equal("fs-1"), "data-bearing directories stay")
		Expect(directories["b"].Spec.DataServerRef.Name).To(Equal("fs-0"))
		Eventually(func() string { return directoriesOf(namespace, "s")["a"].Annotations[v1alpha1.DeclaredAnnotation] }, timeout).
			Should(Equal(v1alpha1.DeclaredTrue), "it is declared like the others from now on")
	})

	It("are as many as the share may have", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		share := builders.FileShare(namespace, "s", "fs").Depth(2).Directories("a/{0..9}").Build()
		share.Spec.MaxDirectories = 10
		create(share)
		Expect(expectShare(namespace, "s", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonInvalidDirectories)).
			To(Equal("spec.directories declares 11 directories, with those above them, and spec.maxDirectories allows 10: raise it, or declare fewer"))
		Expect(directoriesOf(namespace, "s")).To(BeEmpty())
		change(exists(&v1alpha1.FileShare{}, namespace, "s"), func(s *v1alpha1.FileShare) { s.Spec.MaxDirectories = 11 })
		readyShare(namespace, "s")
		Expect(expectShare(namespace, "s", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonTooManyDirectories)).
			To(HavePrefix("the share has 11 directories, as many as spec.maxDirectories allows"))
	})

	It("that leave the list go if they are empty, and stay if they hold data", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Depth(2).Directories("a/{0..1}", "b/x").Build())
		readyShare(namespace, "s")
		change(exists(&v1alpha1.FileShare{}, namespace, "s"), func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"a/0"} })
		Eventually(func() internalv1.DirectoryRemoval { return directoriesOf(namespace, "s")["a/1"].Spec.Removal }, timeout).Should(Equal(internalv1.RemovalWhenEmpty))
		Eventually(func() []string {
			keepDirectories(namespace, "a/1")
			var paths []string
			for path := range directoriesOf(namespace, "s") {
				paths = append(paths, path)
			}
			return paths
		}, timeout, "100ms").Should(ConsistOf("a", "a/0", "a/1"), "b/x was empty and went, and b after it")
		Expect(expectShare(namespace, "s", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonDirectoryInUse)).
			To(Equal(`"a/1" left spec.directories and holds data, so it stays: list what is to stay, or empty it and remove it with rmdir`))

		By("not asking over and over")
		before := directoriesOf(namespace, "s")["a/1"]
		Consistently(func() string { return directoriesOf(namespace, "s")["a/1"].ResourceVersion }, "2s").Should(Equal(before.ResourceVersion))

		By("listing it again")
		change(exists(&v1alpha1.FileShare{}, namespace, "s"), func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"a/{0..1}"} })
		expectShare(namespace, "s", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		again := directoriesOf(namespace, "s")["a/1"]
		Expect(again.Spec.Removal).To(BeEmpty())
		Expect(again.Status.RemovalRefusedTime).To(BeNil())
	})

	DescribeTable("are not made, and what is there stays, if the list",
		func(fault string, directories ...string) {
			namespace := newNamespace()
			servingFileServer(namespace, "fs", 1)
			create(builders.FileShare(namespace, "s", "fs").Directories("good").Build())
			readyShare(namespace, "s")
			change(exists(&v1alpha1.FileShare{}, namespace, "s"), func(s *v1alpha1.FileShare) { s.Spec.Directories = directories })
			Expect(expectShare(namespace, "s", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonInvalidDirectories)).To(Equal(fault))
			made := directoriesOf(namespace, "s")
			Expect(made).To(HaveLen(1))
			Expect(made["good"].Status.State).To(Equal(internalv1.DirectoryReady))
		},
		Entry("has a directory twice",
			`directories[1]: pattern "a2" gives "a2", and so does directories[0], pattern "a{1..2}"; list it once`, "a{1..2}", "a2"),
		Entry("stands for too many",
			`directories[0]: pattern "d{0..99999}" brings the number of directories to 100000, and 10000 is the limit; make its ranges smaller or make the directories with mkdir`, "d{0..99999}"),
		Entry("has another depth than the share",
			`directories[0]: pattern "a/b" gives "a/b": it has 2 path elements; spec.depth asks for 1`, "a/b"),
		Entry("makes dot-dot out of braces",
			`directories[0]: pattern "{x,..}" gives "..": the path element ".." is not allowed; name the directory itself`, "{x,..}"),
		Entry("has braces that are no expression",
			`directories[0]: pattern "a{0-9}": "{0-9}" is neither a list like {a,b} nor a range like {0..15}`, "a{0-9}"),
	)

	It("may be many", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 3)
		create(builders.FileShare(namespace, "many", "fs").Directories("d{0..599}").Build())
		Eventually(func() int { return len(directoriesOf(namespace, "many")) }, timeout, "500ms").Should(Equal(600), "more than one pass writes")
		Expect(perServer(directoriesOf(namespace, "many"))).To(Equal(map[string]int{"fs-0": 200, "fs-1": 200, "fs-2": 200}))
		Expect(expectShare(namespace, "many", v1alpha1.FileSharePlaced, metav1.ConditionTrue, v1alpha1.ReasonReady)).
			To(Equal(fmt.Sprintf("%d declared directories have an owner", 600)))
	})
})

package integration

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("The path of a share", func() {
	DescribeTable("must be free of older shares: one that",
		func(older, path, relation string) {
			namespace := newNamespace()
			servingFileServer(namespace, "fs", 1)
			create(builders.FileShare(namespace, "a-older", "fs").Path(older).Build())
			readyShare(namespace, "a-older")
			create(builders.FileShare(namespace, "b-younger", "fs").Path(path).Directories("x").Build())
			Expect(expectShare(namespace, "b-younger", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonPathConflict)).
				To(Equal("the path " + path + " " + relation + ` that of the older share "a-older", ` + older + `; delete this share and make it with another path, or delete the other share`))
			expectShare(namespace, "b-younger", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPathConflict)
			Expect(directoriesOf(namespace, "b-younger")).To(BeEmpty())
			Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Name: naming.ShareVolume(namespace, "b-younger")}, &corev1.PersistentVolume{}))).To(BeTrue())
			expectShare(namespace, "a-older", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

			By("deleting the older one")
			Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, namespace, "a-older"))).To(Succeed())
			readyShare(namespace, "b-younger")
			Expect(directoriesOf(namespace, "b-younger")).To(HaveKey("x"))
		},
		Entry("is the same", "/data/set", "/data/set", "is"),
		Entry("lies in it", "/data", "/data/set", "lies in"),
		Entry("contains it", "/data/set", "/data", "contains"),
	)

	It("may start like another's name", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		create(builders.FileShare(namespace, "a", "fs").Path("/data").Build())
		create(builders.FileShare(namespace, "b", "fs").Path("/data2").Build())
		readyShare(namespace, "a")
		readyShare(namespace, "b")
	})
})

var _ = Describe("A share that the API server refuses", func() {
	share := func() *v1alpha1.FileShare { return builders.FileShare("default", "refused", "fs").Build() }
	DescribeTable("names the field and what to do:",
		func(spoil func(*v1alpha1.FileShare), wants ...string) {
			object := share()
			spoil(object)
			err := admin.Create(ctx, object)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			for _, want := range wants {
				Expect(err.Error()).To(ContainSubstring(want))
			}
		},
		Entry("dot-dot in a directory", func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"a/../b"} },
			"spec.directories[0]", "no '/' first or last, no '.' or '..'"),
		Entry("a double quote in a directory", func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{`a"b`} }, "spec.directories[0]", "a path below the share"),
		Entry("a single quote in a directory", func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{`a'b`} }, "spec.directories[0]", "a path below the share"),
		Entry("a control character in a directory", func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"a\nb"} }, "spec.directories[0]", "a path below the share"),
		Entry("an absolute directory", func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"/a"} }, "spec.directories"),
		Entry("a directory with a slash at its end", func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"a/"} }, "spec.directories[0]", "no '/' first or last"),
		Entry("a pattern that is too long", func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{strings.Repeat("a", 256)} }, "spec.directories[0]", "255"),
		Entry("a pattern that is there twice", func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"a", "a"} }, "spec.directories[1]", "Duplicate"),
		Entry("a path with a slash at its end", func(s *v1alpha1.FileShare) { s.Spec.Path = "/a/" }, "spec.path", "path must be /NAME or /NAME/NAME"),
		Entry("a relative path", func(s *v1alpha1.FileShare) { s.Spec.Path = "ab" }, "spec.path", "path must be /NAME or /NAME/NAME"),
		Entry("dot-dot in the path", func(s *v1alpha1.FileShare) { s.Spec.Path = "/a/.." }, "spec.path", "path must be /NAME or /NAME/NAME"),
		Entry("a quote in the path", func(s *v1alpha1.FileShare) { s.Spec.Path = `/a"` }, "spec.path", "path must be /NAME or /NAME/NAME"),
		Entry("a line break in the path", func(s *v1alpha1.FileShare) { s.Spec.Path = "/a\n" }, "spec.path", "path must be /NAME or /NAME/NAME"),
		Entry("a path of three elements", func(s *v1alpha1.FileShare) { s.Spec.Path = "/a/b/c" }, "spec.path", "path must be /NAME or /NAME/NAME"),
		Entry("the root as path", func(s *v1alpha1.FileShare) { s.Spec.Path = "/" }, "spec.path"),
		Entry("no path", func(s *v1alpha1.FileShare) { s.Spec.Path = "" }, "spec.path", "Required"),
		Entry("no FileServer", func(s *v1alpha1.FileShare) { s.Spec.FileServerRef.Name = "" }, "spec.fileServerRef", "Required"),
		Entry("an address that is none", func(s *v1alpha1.FileShare) { s.Spec.Access = []v1alpha1.AccessRule{{Clients: []string{"10.0.0.0/33"}}} },
			"clients must be addresses (10.0.0.7), networks (10.0.0.0/8) or the word Nodes"),
		Entry("a host name as address", func(s *v1alpha1.FileShare) { s.Spec.Access = []v1alpha1.AccessRule{{Clients: []string{"node1"}}} },
			"clients must be addresses (10.0.0.7), networks (10.0.0.0/8) or the word Nodes"),
		Entry("an access type that is none", func(s *v1alpha1.FileShare) {
			s.Spec.Access = []v1alpha1.AccessRule{{Clients: []string{"10.0.0.1"}, AccessType: "Sometimes"}}
		}, "spec.access[0].accessType", `"ReadWrite", "ReadOnly"`),
		Entry("a mode that is not octal", func(s *v1alpha1.FileShare) { s.Spec.Mode = "0789" }, "spec.mode", "octal permission bits in quotes"),
		Entry("depth with layout Single", func(s *v1alpha1.FileShare) { s.Spec.Layout, s.Spec.Depth = v1alpha1.LayoutSingle, 2 },
			"depth and directories are for layout Distributed"),
		Entry("directories with layout Single", func(s *v1alpha1.FileShare) {
			s.Spec.Layout, s.Spec.Directories = v1alpha1.LayoutSingle, []string{"a"}
		}, "depth and directories are for layout Distributed"),
		Entry("a hot directory above the share", func(s *v1alpha1.FileShare) {
			s.Spec.HotDirectories = []v1alpha1.HotDirectories{{Paths: []string{"../a"}, DataServers: 2}}
		}, "spec.hotDirectories[0].paths[0]", "a path below the share"),
		Entry("a hot directory with a line break", func(s *v1alpha1.FileShare) {
			s.Spec.HotDirectories = []v1alpha1.HotDirectories{{Paths: []string{"a\nb"}, DataServers: 2}}
		}, "spec.hotDirectories[0].paths[0]", "a path below the share"),
		Entry("hot directories without paths", func(s *v1alpha1.FileShare) {
			s.Spec.HotDirectories = []v1alpha1.HotDirectories{{Paths: []string{""}, DataServers: 2}}
		}, "spec.hotDirectories[0].paths[0]"),
		Entry("a hot directory of one data server", func(s *v1alpha1.FileShare) {
			s.Spec.HotDirectories = []v1alpha1.HotDirectories{{DataServers: 1}}
		}, "spec.hotDirectories[0].dataServers", "greater than or equal to 2"),
		Entry("a hot directory of more data servers than there can be", func(s *v1alpha1.FileShare) {
			s.Spec.HotDirectories = []v1alpha1.HotDirectories{{DataServers: 65}}
		}, "spec.hotDirectories[0].dataServers", "less than or equal to 64"),
		Entry("a hot directory without a number", func(s *v1alpha1.FileShare) {
			s.Spec.HotDirectories = []v1alpha1.HotDirectories{{Paths: []string{"a"}}}
		}, "spec.hotDirectories[0].dataServers", "Required"),
		Entry("a search for hot directories with one client", func(s *v1alpha1.FileShare) {
			s.Spec.FindHotDirectories = v1alpha1.HotDirectorySearch{Clients: 1, DataServers: 2}
		}, "spec.findHotDirectories.clients", "greater than or equal to 2"),
		Entry("a search for hot directories without a number of data servers", func(s *v1alpha1.FileShare) {
			s.Spec.FindHotDirectories = v1alpha1.HotDirectorySearch{Clients: 8}
		}, "spec.findHotDirectories.dataServers", "Required"),
		Entry("a search for hot directories where all are hot", func(s *v1alpha1.FileShare) {
			s.Spec.HotDirectories = []v1alpha1.HotDirectories{{Paths: []string{"a"}, DataServers: 2}, {DataServers: 3}}
			s.Spec.FindHotDirectories = v1alpha1.HotDirectorySearch{DataServers: 2}
		}, "findHotDirectories finds nothing", "remove that entry, or findHotDirectories"),
		Entry("paths of hot directories with layout Single", func(s *v1alpha1.FileShare) {
			s.Spec.Layout, s.Spec.HotDirectories = v1alpha1.LayoutSingle, []v1alpha1.HotDirectories{{Paths: []string{"a"}, DataServers: 2}}
		}, "hotDirectories[].paths is for layout Distributed"),
		Entry("nine entries of hot directories", func(s *v1alpha1.FileShare) {
			s.Spec.HotDirectories = slices.Repeat([]v1alpha1.HotDirectories{{DataServers: 2}}, 9)
		}, "spec.hotDirectories", "at most 8"),
		Entry("a depth of nine", func(s *v1alpha1.FileShare) { s.Spec.Depth = 9 }, "spec.depth", "less than or equal to 8"),
		Entry("a name with a dot", func(s *v1alpha1.FileShare) { s.Name = "a.b" }, "metadata.name must be a DNS label (no dots)"),
		Entry("a name that is too long", func(s *v1alpha1.FileShare) { s.Name = strings.Repeat("a", 51) }, "metadata.name must be at most 50 characters"),
		Entry("a reclaim policy that is none", func(s *v1alpha1.FileShare) { s.Spec.ReclaimPolicy = "Maybe" }, "spec.reclaimPolicy", `"Retain", "Delete"`),
	)

	DescribeTable("can't change",
		func(spoil func(*v1alpha1.FileShare), want string) {
			namespace := newNamespace()
			object := builders.FileShare(namespace, "s", "nowhere").Depth(2).Build()
			create(object)
			before := object.DeepCopy()
			spoil(object)
			err := admin.Patch(ctx, object, client.MergeFrom(before))
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(err.Error()).To(ContainSubstring(want))
		},
		Entry("its FileServer", func(s *v1alpha1.FileShare) { s.Spec.FileServerRef.Name = "other" }, "fileServerRef can't be changed: the data is on that FileServer's volumes"),
		Entry("its path", func(s *v1alpha1.FileShare) { s.Spec.Path = "/other" }, "path can't be changed: clients have it mounted; create another share"),
		Entry("its layout", func(s *v1alpha1.FileShare) { s.Spec.Layout, s.Spec.Depth = v1alpha1.LayoutSingle, 0 }, "layout can't be changed"),
		Entry("its depth", func(s *v1alpha1.FileShare) { s.Spec.Depth = 3 }, "depth can't be changed"),
		Entry("the claim it was made for", func(s *v1alpha1.FileShare) { s.Spec.ClaimRef = v1alpha1.ClaimReference{Namespace: "n", Name: "c"} }, "claimRef can't be changed"),
		Entry("its depth by leaving it out", func(s *v1alpha1.FileShare) { s.Spec.Depth = 0 }, "depth can't be changed"),
	)
})

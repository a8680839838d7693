package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/test/builders"
)

// The operator's cache has a digest in place of an export's access rules.
var _ = Describe("The access rules of a share's exports", func() {
	rules := func(clients ...string) []v1alpha1.AccessRule {
		return []v1alpha1.AccessRule{{Clients: clients, AccessType: v1alpha1.AccessReadWrite, Squash: v1alpha1.SquashRoot, SourcePorts: v1alpha1.SourcePortsAny}}
	}

	It("are those of the share, whoever changes them", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		share := builders.FileShare(namespace, "data", "fs").Access(v1alpha1.AccessReadWrite, v1alpha1.SquashRoot, "10.0.0.0/8").Build()
		create(share)
		readyShare(namespace, "data")
		export := func(server string) *internalv1.ShareExport { return exportsOf(namespace, server)["data"] }
		both := func(wanted []v1alpha1.AccessRule) {
			GinkgoHelper()
			for _, server := range []string{"fs-0", "fs-1"} {
				Eventually(func() []v1alpha1.AccessRule { return export(server).Spec.Access }, timeout, "50ms").Should(Equal(wanted))
			}
		}
		both(rules("10.0.0.0/8"))

		By("the user changing them")
		change(share, func(share *v1alpha1.FileShare) { share.Spec.Access[0].Clients = []string{"10.0.0.0/8", "192.168.1.7"} })
		both(rules("10.0.0.0/8", "192.168.1.7"))
		for _, server := range []string{"fs-0", "fs-1"} {
			Expect(export(server).Generation).To(Equal(int64(2)), "what is as it should be is not written again")
		}

		By("a change to those of one export")
		change(export("fs-1"), func(export *internalv1.ShareExport) { export.Spec.Access = rules("0.0.0.0/0") })
		both(rules("10.0.0.0/8", "192.168.1.7"))

		By("a digest being written")
		other := export("fs-1")
		other.Spec.Access = desired.AccessDigest(other.Spec.Access)
		Expect(admin.Update(ctx, other)).To(MatchError(ContainSubstring("Too long: may not be more than 43 bytes")))
	})
})

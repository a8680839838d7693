package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/provisioner"
	"github.com/howdah/howdah/test/builders"
)

// limit sets spec.limits of the FileServer.
func limit(storage string, limits v1alpha1.FileServerLimits) {
	GinkgoHelper()
	change(exists(&v1alpha1.FileServer{}, storage, "fs"), func(fs *v1alpha1.FileServer) { fs.Spec.Limits = limits })
}

// perNamespace is a limit for each tenant.
func perNamespace(limits v1alpha1.ShareLimits) v1alpha1.FileServerLimits {
	return v1alpha1.FileServerLimits{PerNamespace: limits}
}

var _ = Describe("The limits of a FileServer", func() {
	It("keep a namespace from taking all of it, and let in who waits as soon as there is room", func() {
		storage, tenant, other := sharedFileServer(2), newTenant(true), newTenant(true)
		limit(storage, perNamespace(v1alpha1.ShareLimits{Directories: 6}))
		Eventually(func() internalv1.DirectoryLimits {
			return exists(&internalv1.DataServer{}, storage, "fs-0").Spec.DirectoryLimits
		}, timeout).Should(
			Equal(internalv1.DirectoryLimits{Total: 100_000, PerNamespace: 6}), "namespace servers read it there")
		create(builders.FileShare(tenant, "first", "fs").OnNamespace(storage).Path("/first").Directories("{0..3}").Build())
		readyTenantShare(storage, tenant, "first")
		Expect(*exists(&v1alpha1.FileShare{}, tenant, "first").Status.LimitsUsed.Directories).To(BeEquivalentTo(4))

		create(builders.FileShare(tenant, "second", "fs").OnNamespace(storage).Path("/second").Directories("{0..9999}").Build())
		Expect(expectShare(tenant, "second", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonLimitReached)).To(Equal(fmt.Sprintf(
			"Placed: FileServer fs allows the shares of namespace %s together 6 directories (spec.limits.perNamespace.directories); others have 4 and this one would have 10000: "+
				"ask the administrator of the FileServer to raise spec.limits.perNamespace.directories, or make room", tenant)))
		expectShare(tenant, "second", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonLimitReached)
		Expect(tenantDirectories(storage, tenant, "second")).To(BeEmpty())
		Expect(exportsOf(storage, "fs-0")).NotTo(HaveKey(tenant + ".second"))
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: storage, Name: tenant + ".second"}, &internalv1.ShareAttachment{})).NotTo(Succeed())

		By("others having theirs")
		create(builders.FileShare(other, "data", "fs").OnNamespace(storage).Path("/data").Directories("{0..5}").Build())
		readyTenantShare(storage, other, "data")

		By("asking for less")
		change(exists(&v1alpha1.FileShare{}, tenant, "second"), func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"{0..2}"} })
		Eventually(func() string { return shareCondition(tenant, "second", v1alpha1.FileSharePlaced).Message }, timeout).Should(ContainSubstring("this one would have 3"))
		change(exists(&v1alpha1.FileShare{}, tenant, "first"), func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"{0..2}"} })
		readyTenantShare(storage, tenant, "second")
		Expect(exists(&v1alpha1.FileShare{}, tenant, "first").Status.LimitsUsed.Directories).To(HaveValue(BeEquivalentTo(3)))
	})

	It("leave a share that may not grow as it is served", func() {
		storage, tenant := sharedFileServer(2), newTenant(true)
		limit(storage, perNamespace(v1alpha1.ShareLimits{Directories: 3, AccessNetworks: 2}))
		create(builders.FileShare(tenant, "data", "fs").OnNamespace(storage).Directories("{0..2}").Build())
		readyTenantShare(storage, tenant, "data")
		clients := func() []v1alpha1.AccessRule {
			return exists(&internalv1.ShareAttachment{}, storage, tenant+".data").Spec.Access
		}
		before := clients()

		change(exists(&v1alpha1.FileShare{}, tenant, "data"), func(s *v1alpha1.FileShare) {
			s.Spec.Directories = []string{"{0..7}"}
			s.Spec.Access = []v1alpha1.AccessRule{{Clients: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}}}
		})
		Expect(expectShare(tenant, "data", v1alpha1.FileSharePlaced, metav1.ConditionFalse, v1alpha1.ReasonGrowthRefused)).To(HavePrefix(
			"directories that were added to spec.directories are not made: FileServer fs allows the shares of namespace " + tenant + " together 3 directories"))
		Expect(expectShare(tenant, "data", v1alpha1.FileShareExported, metav1.ConditionFalse, v1alpha1.ReasonGrowthRefused)).To(ContainSubstring("spec.limits.perNamespace.accessNetworks"))
		Expect(tenantDirectories(storage, tenant, "data")).To(HaveLen(3))
		Expect(clients()).To(Equal(before))

		By("lowering the limits, which takes nothing away, and raising them")
		limit(storage, perNamespace(v1alpha1.ShareLimits{Directories: 1, AccessNetworks: 1}))
		Eventually(func() string { return shareCondition(tenant, "data", v1alpha1.FileSharePlaced).Message }, timeout).Should(ContainSubstring("together 1 directories"))
		Expect(tenantDirectories(storage, tenant, "data")).To(HaveLen(3))
		limit(storage, perNamespace(v1alpha1.ShareLimits{Directories: 8, AccessNetworks: 3}))
		readyTenantShare(storage, tenant, "data")
		Expect(tenantDirectories(storage, tenant, "data")).To(HaveLen(8))
		Eventually(clients, timeout).ShouldNot(Equal(before))
	})

	It("count claims, whose owners hear of it, and which wait", func() {
		storage, team := openFileServer(1), newNamespace()
		limit(storage, perNamespace(v1alpha1.ShareLimits{Shares: 1}))
		class := newClass(builders.StorageClass("bounded-"+team).Shares(storage, "fs"))
		first := claimed(builders.Claim(team, "first", class))
		volume := boundClaim(first, storage)
		second := claimed(builders.Claim(team, "second", class))
		Eventually(claimNotes(second, provisioner.ReasonFailed), timeout).Should(ConsistOf(ContainSubstring(
			"FileServer fs allows the shares of namespace " + team + " together 1 shares (spec.limits.perNamespace.shares)")))
		var shares v1alpha1.FileShareList
		Expect(admin.List(ctx, &shares, client.InNamespace(storage))).To(Succeed())
		Expect(shares.Items).To(HaveLen(1), "no share is made that would only wait")

		deleteClaim(first)
		shareIsGone(storage, volume.Name, "fs")
		boundClaim(second, storage)
	})
})

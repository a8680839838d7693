package integration

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/provisioner"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("A claim of a StorageClass", func() {
	It("of any namespace becomes a share with a volume, and goes with its data", func() {
		storage, team := openFileServer(2), newNamespace()
		class := newClass(builders.StorageClass("plain-"+team).Shares(storage, "fs", "uid", "1000", "mode", "0770").With(func(c *storagev1.StorageClass) {
			c.MountOptions = []string{"nconnect=4"}
		}))
		claim := claimed(builders.Claim(team, "scratch", class))
		volume := boundClaim(claim, storage)

		share := exists(&v1alpha1.FileShare{}, storage, volume.Name)
		path := "/" + team + "/scratch-" + string(claim.UID)[:8]
		Expect(share.Spec.Path).To(Equal(path))
		Expect(share.Spec.Layout).To(Equal(v1alpha1.LayoutSingle), "any file anywhere, as who makes a claim expects")
		Expect(*share.Spec.UID).To(BeEquivalentTo(1000))
		Expect(share.Spec.Mode).To(Equal("0770"))
		Expect(share.Spec.ClaimRef).To(Equal(v1alpha1.ClaimReference{Namespace: team, Name: "scratch"}))
		Expect(share.Status.Mount.ClaimName).To(BeEmpty(), "it has no ready-made claim")
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: storage, Name: share.Name}, &corev1.PersistentVolumeClaim{})).NotTo(Succeed())
		Expect(admin.Get(ctx, client.ObjectKey{Name: naming.ShareVolume(storage, share.Name)}, &corev1.PersistentVolume{})).NotTo(Succeed())
		Expect(shareCondition(storage, share.Name, v1alpha1.FileShareClaimAvailable).Message).To(Equal("the share is for the claim scratch of namespace " + team))

		Expect(volume.Spec.NFS).To(Equal(&corev1.NFSVolumeSource{Server: exists(&v1alpha1.FileServer{}, storage, "fs").Status.Address, Path: path}))
		Expect(volume.Spec.MountOptions).To(Equal([]string{"vers=4.1", "hard", "nosuid", "nodev", "acdirmin=1", "acdirmax=2", "noresvport", "nconnect=4"}))
		Expect(volume.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete))
		Expect(volume.Spec.Capacity.Storage().String()).To(Equal("10Gi"))
		Expect(volume.Spec.ClaimRef.UID).To(Equal(claim.UID))
		Expect(volume.Annotations).To(HaveKeyWithValue(v1alpha1.CapacityAnnotation, v1alpha1.CapacityNotEnforced))
		Eventually(claimNotes(claim, provisioner.ReasonSucceeded), timeout).Should(ConsistOf(
			path + " of FileServer fs is the claim's; nothing keeps pods to 10Gi: they can fill what the FileServer's storage has"))

		By("nothing more being written")
		before := awaitQuiet(storage)
		change(claim, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"touched": "yes"} })
		Consistently(func() int64 { return writesIn(storage) - before }, "2s").Should(BeZero(), describeWrites)

		By("the claim being deleted")
		Expect(exists(&v1alpha1.FileShare{}, storage, volume.Name).Spec.ReclaimPolicy).To(Equal(v1alpha1.ReclaimRetain),
			"who deletes the share of a volume in use deletes no data")
		deleteClaim(claim)
		isGone(&v1alpha1.FileShare{}, storage, volume.Name)
		Expect(exists(&corev1.PersistentVolume{}, "", volume.Name).DeletionTimestamp).To(BeNil(), "the volume is what knows of the share")
		Eventually(func() (policies []internalv1.DataPolicy) {
			for _, export := range exportsOf(storage, "fs-0") {
				policies = append(policies, export.Spec.DataPolicy)
			}
			return policies
		}, timeout).Should(HaveEach(internalv1.DataDelete), "the data goes, too")
		shareIsGone(storage, volume.Name, "fs")
		isNoMore(&corev1.PersistentVolume{}, "", volume.Name)
	})

	It("is mounted at the same address after the Service was deleted", func() {
		storage, team := openFileServer(1), newNamespace()
		class := newClass(builders.StorageClass("address-"+team).Shares(storage, "fs"))
		volume := boundClaim(claimed(builders.Claim(team, "scratch", class)), storage)
		ofDataServer := exists(&corev1.Service{}, storage, "fs-0").Spec.ClusterIP
		serviceAddress := func(name string) func() string {
			return func() string {
				service := &corev1.Service{}
				if admin.Get(ctx, client.ObjectKey{Namespace: storage, Name: name}, service) != nil {
					return ""
				}
				return service.Spec.ClusterIP
			}
		}
		address := func() string { return exists(&v1alpha1.FileServer{}, storage, "fs").Status.Address }
		claimAvailable := func() string { return shareCondition(storage, volume.Name, v1alpha1.FileShareClaimAvailable).Message }
		for _, name := range []string{"fs", "fs-0"} {
			Expect(admin.Delete(ctx, exists(&corev1.Service{}, storage, name))).To(Succeed())
		}
		Eventually(serviceAddress("fs"), timeout).Should(Equal(volume.Spec.NFS.Server), "a volume's address can't be changed")
		Eventually(serviceAddress("fs-0"), timeout).Should(Equal(ofDataServer), "clients have mounted it")
		awaitQuiet(storage)
		Expect(address()).To(Equal(volume.Spec.NFS.Server))
		Expect(serviceAddress("fs")()).To(Equal(volume.Spec.NFS.Server))

		By("another Service having the address")
		pause := func(value string) {
			GinkgoHelper()
			change(exists(&v1alpha1.FileServer{}, storage, "fs"), func(fs *v1alpha1.FileServer) {
				metav1.SetMetaDataAnnotation(&fs.ObjectMeta, v1alpha1.PausedAnnotation, value)
			})
		}
		pause(v1alpha1.PausedTrue)
		expectCondition(storage, "fs", v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
		Expect(admin.Delete(ctx, exists(&corev1.Service{}, storage, "fs"))).To(Succeed())
		other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "other"}, Spec: corev1.ServiceSpec{
			ClusterIP: volume.Spec.NFS.Server, Ports: []corev1.ServicePort{{Port: 80}},
		}}
		create(other)
		pause("false")
		Eventually(address, timeout).Should(And(Not(BeEmpty()), Not(Equal(volume.Spec.NFS.Server))))
		Eventually(claimAvailable, timeout).Should(Equal(fmt.Sprintf("PersistentVolume %s has the address %s, and the namespace servers are at %s now, so pods can't mount it; "+
			"free the first address if another Service has it, and delete Service %s/fs: it is made again with that address", volume.Name, volume.Spec.NFS.Server, address(), storage)))

		By("doing what the share says")
		Expect(admin.Delete(ctx, other)).To(Succeed())
		Expect(admin.Delete(ctx, exists(&corev1.Service{}, storage, "fs"))).To(Succeed())
		Eventually(address, timeout).Should(Equal(volume.Spec.NFS.Server))
		Eventually(claimAvailable, timeout).Should(Equal("the share is for the claim scratch of namespace " + team))
	})

	It("keeps share and data with Retain, also when the volume is deleted", func() {
		storage, team := openFileServer(1), newNamespace()
		class := newClass(builders.StorageClass("kept-"+team).Shares(storage, "fs").With(func(c *storagev1.StorageClass) {
			c.ReclaimPolicy = ptr.To(corev1.PersistentVolumeReclaimRetain)
		}))
		claim := claimed(builders.Claim(team, "results", class))
		volume := boundClaim(claim, storage)
		deleteClaim(claim)
		share := &v1alpha1.FileShare{}
		Consistently(func() bool {
			return exists(share, storage, volume.Name).DeletionTimestamp == nil && exists(&corev1.PersistentVolume{}, "", volume.Name).DeletionTimestamp == nil
		}, "2s").Should(BeTrue(), "it waits for people")
		Expect(share.Spec.ReclaimPolicy).To(Equal(v1alpha1.ReclaimRetain))

		By("a new claim of the same name, which is another volume")
		again := claimed(builders.Claim(team, "results", class))
		Expect(boundClaim(again, storage).Spec.NFS.Path).NotTo(Equal(volume.Spec.NFS.Path))

		By("the old volume being deleted by hand")
		Expect(admin.Delete(ctx, volume)).To(Succeed())
		isNoMore(&corev1.PersistentVolume{}, "", volume.Name)
		Consistently(func() *metav1.Time { return exists(share, storage, volume.Name).DeletionTimestamp }, "2s").Should(BeNil())
	})

	It("goes by the policy that its volume has in the end", func() {
		storage, team := openFileServer(1), newNamespace()
		class := newClass(builders.StorageClass("changed-"+team).Shares(storage, "fs"))
		claim := claimed(builders.Claim(team, "c", class))
		volume := boundClaim(claim, storage)
		change(volume, func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})
		deleteClaim(claim)
		Consistently(func() *metav1.Time { return exists(&v1alpha1.FileShare{}, storage, volume.Name).DeletionTimestamp }, "2s").Should(BeNil())
		change(volume, func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		})
		shareIsGone(storage, volume.Name, "fs")
		isNoMore(&corev1.PersistentVolume{}, "", volume.Name)

		By("a volume being deleted while its claim uses it")
		claim = claimed(builders.Claim(team, "c", class))
		volume = boundClaim(claim, storage)
		Expect(admin.Delete(ctx, volume)).To(Succeed())
		Consistently(func() *metav1.Time { return exists(&v1alpha1.FileShare{}, storage, volume.Name).DeletionTimestamp }, "2s").Should(BeNil())
		deleteClaim(claim)
		shareIsGone(storage, volume.Name, "fs")
		isNoMore(&corev1.PersistentVolume{}, "", volume.Name)
	})

	It("gets its share again, with the data, after the share was deleted", func() {
		storage, team := openFileServer(2), newNamespace()
		class := newClass(builders.StorageClass("lost-"+team).Shares(storage, "fs"))
		claim := claimed(builders.Claim(team, "c", class))
		volume := boundClaim(claim, storage)
		share := exists(&v1alpha1.FileShare{}, storage, volume.Name)
		owner := func() string { return directoriesOf(storage, volume.Name)["."].Spec.DataServerRef.Name }
		before := owner()
		Expect(admin.Delete(ctx, share)).To(Succeed())
		again := &v1alpha1.FileShare{}
		Eventually(func() bool {
			loadConfigurations(storage, "fs")
			return admin.Get(ctx, client.ObjectKeyFromObject(share), again) == nil && again.UID != share.UID
		}, timeout, "100ms").Should(BeTrue())
		again = readyShare(storage, volume.Name)
		Expect(again.Spec.Path).To(Equal(volume.Spec.NFS.Path))
		Expect(owner()).To(Equal(before), "it is where its data is")
		Eventually(claimNotes(claim, provisioner.ReasonShareLost), timeout).Should(ConsistOf(ContainSubstring("was deleted; it is made again, with its data")))
		deleteClaim(claim)
		shareIsGone(storage, volume.Name, "fs")
	})

	It("can become a directory of a share, which stays", func() {
		storage, team := openFileServer(2), newNamespace()
		create(builders.FileShare(storage, "home", "fs").Depth(2).Build())
		readyShare(storage, "home")
		class := newClass(builders.StorageClass("home-"+team).Shares(storage, "fs", "fileShare", "home", "uid", "1000", "mode", "0700").Expandable().With(func(c *storagev1.StorageClass) {
			c.ReclaimPolicy = ptr.To(corev1.PersistentVolumeReclaimRetain)
		}))
		claims := map[string]*corev1.PersistentVolumeClaim{}
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			claims[name] = claimed(builders.Claim(team, name, class))
		}
		pathOf := func(name string) string { return team + "/" + name + "-" + string(claims[name].UID)[:8] }
		for name, claim := range claims {
			volume := boundClaim(claim, storage)
			Expect(volume.Spec.NFS.Path).To(Equal("/home/" + pathOf(name)))
			directory := directoriesOf(storage, "home")[pathOf(name)]
			Expect(*directory.Spec.UID).To(BeEquivalentTo(1000))
			Expect(directory.Spec.Mode).To(Equal("0700"))
		}
		Expect(directoriesOf(storage, "home")).To(HaveKey(team))
		Expect(perServer(directoriesOf(storage, "home"))).To(HaveLen(2), "they are spread as all directories are")
		Expect(exists(&v1alpha1.FileShare{}, storage, "home").Spec.Directories).To(BeEmpty())

		By("growing one, and deleting the claim and then the volume of another")
		change(claims["a"], func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Ti")
		})
		Eventually(func() string { return exists(claims["a"], team, "a").Status.Capacity.Storage().String() }, timeout).Should(Equal("1Ti"))
		deleteClaim(claims["b"])
		Consistently(func() internalv1.DirectoryRemoval { return directoriesOf(storage, "home")[pathOf("b")].Spec.Removal }, "2s").Should(BeEmpty())

		By("a claim that goes before it is served")
		early := claimed(builders.Claim(team, "early", class))
		path := team + "/early-" + string(early.UID)[:8]
		Eventually(func() map[string]internalv1.ShareDirectory { return directoriesOf(storage, "home") }, timeout).Should(HaveKey(path))
		deleteClaim(early)
		Eventually(func() map[string]internalv1.ShareDirectory {
			keepDirectories(storage)
			return directoriesOf(storage, "home")
		}, timeout).ShouldNot(HaveKey(path))
		Expect(directoriesOf(storage, "home")).To(HaveKey(pathOf("c")))
	})

	It("leaves nothing if it goes before it is served", func() {
		storage, team := newNamespace(), newNamespace()
		fs := builders.FileServer(storage, "fs").Replicas(1).Class(standardClass).Build()
		fs.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
		create(fs)
		class := newClass(builders.StorageClass("early-"+team).Shares(storage, "fs"))
		claim := claimed(builders.Claim(team, "c", class))
		name := naming.ProvisionedVolume(string(claim.UID))
		exists(&v1alpha1.FileShare{}, storage, name)
		byHand := builders.FileShare(storage, "pvc-by-hand", "fs").Build()
		byHand.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		byHand.Spec.ClaimRef = v1alpha1.ClaimReference{Namespace: team, Name: "absent"}
		create(byHand)
		deleteClaim(claim)
		shareIsGone(storage, name, "fs")
		Expect(exists(&v1alpha1.FileShare{}, storage, byHand.Name).DeletionTimestamp).To(BeNil(), "it was not made for a claim")
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Name: name}, &corev1.PersistentVolume{}))).To(BeTrue())
	})

	It("grows as its class allows", func() {
		storage, team := openFileServer(1), newNamespace()
		class := newClass(builders.StorageClass("grows-"+team).Shares(storage, "fs").Expandable())
		claim := claimed(builders.Claim(team, "c", class))
		volume := boundClaim(claim, storage)
		change(claim, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Ti")
		})
		Eventually(func() string { return exists(volume, "", volume.Name).Spec.Capacity.Storage().String() }, timeout).Should(Equal("1Ti"))
		Eventually(func() string { return exists(claim, team, "c").Status.Capacity.Storage().String() }, timeout).Should(Equal("1Ti"))
		Expect(claim.Status.AllocatedResources.Storage().String()).To(Equal("1Ti"), "what a ResourceQuota counts, as Kubernetes' own resizer leaves it")
		Eventually(claimNotes(claim, provisioner.ReasonResized), timeout).Should(ContainElement(ContainSubstring("claim and volume show 1Ti now; nothing else changes")))
	})

	It("is refused in sentences, and served as soon as what was wrong is mended", func() {
		storage, team := newNamespace(), newNamespace()
		bad := newClass(builders.StorageClass("bad-"+team).Shares(storage, "fs", "onDelete", "retain"))
		claim := claimed(builders.Claim(team, "bad", bad))
		Eventually(claimNotes(claim, provisioner.ReasonFailed), timeout).Should(ConsistOf(HavePrefix("StorageClass " + bad + ": parameter onDelete is not known; there are depth,")))

		class := newClass(builders.StorageClass("good-"+team).Shares(storage, "fs"))
		block := claimed(builders.Claim(team, "block", class).With(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }))
		Eventually(claimNotes(block, provisioner.ReasonFailed), timeout).Should(ConsistOf("spec.volumeMode is Block: a share is a file system; leave volumeMode out; make the claim again"))

		early := claimed(builders.Claim(team, "early", class))
		refused := claimNotes(early, provisioner.ReasonFailed)
		sentence := fmt.Sprintf("there is no FileServer %q in namespace %q that allows claims of namespace %q; ask its administrator to allow them by its spec.allowedNamespaces", "fs", storage, team)
		Eventually(refused, timeout).Should(ConsistOf(sentence))
		create(builders.FileServer(storage, "fs").Replicas(1).Class(standardClass).Build())
		runEverything(storage, "fs")
		Expect(refused()).To(ConsistOf(sentence), "that it is there now, and that it is not allowed, are one")
		Expect(exists(&v1alpha1.FileServer{}, storage, "fs").Spec.AllowedNamespaces).To(BeNil())
		change(exists(&v1alpha1.FileServer{}, storage, "fs"), func(fs *v1alpha1.FileServer) {
			fs.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
		})
		boundClaim(early, storage)

		By("a FileShare that a quota refuses")
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: storage, Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/fileshares.howdah.io": resource.MustParse("0")}},
		}
		create(quota)
		before := quota.DeepCopy()
		quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{"count/fileshares.howdah.io": resource.MustParse("1")}
		Expect(admin.Status().Patch(ctx, quota, client.MergeFrom(before))).To(Succeed())
		over := claimed(builders.Claim(team, "over", class))
		Eventually(claimNotes(over, provisioner.ReasonFailed), timeout).Should(ConsistOf(fmt.Sprintf(
			"a FileShare for the claim is refused in namespace %s, where FileServer fs is; ask its administrator: the operator's log has the reason, and tries again", storage)))
		Expect(admin.Delete(ctx, quota)).To(Succeed())
		boundClaim(over, storage)

		By("more mistakes than an event has room for")
		var many []string
		for i := range 12 {
			many = append(many, fmt.Sprintf("unknown%d", i), "x")
		}
		awful := newClass(builders.StorageClass("awful-"+team).Shares(storage, "fs", many...))
		Eventually(claimNotes(claimed(builders.Claim(team, "awful", awful)), provisioner.ReasonFailed), timeout).Should(ConsistOf(HaveSuffix(" …")))

		By("a path that is taken")
		create(builders.FileShare(storage, "mine", "fs").Path("/taken").Build())
		readyShare(storage, "mine")
		fixed := newClass(builders.StorageClass("fixed-"+team).Shares(storage, "fs", "path", "/{claim}"))
		taken := claimed(builders.Claim(team, "taken", fixed))
		Eventually(claimNotes(taken, provisioner.ReasonFailed), timeout).Should(ConsistOf(SatisfyAll(
			ContainSubstring("says PathConflict; ask the administrator of FileServer fs"), Not(ContainSubstring("mine")))))
		Expect(admin.Delete(ctx, exists(&v1alpha1.FileShare{}, storage, "mine"))).To(Succeed())
		Expect(boundClaim(taken, storage).Spec.NFS.Path).To(Equal("/taken"))
	})

	// HOWDAH_CLAIMS says how many; make bench-claims makes 500.
	It("is one of many that are made at once", func() {
		count := 20
		if text := os.Getenv("HOWDAH_CLAIMS"); text != "" {
			var err error
			count, err = strconv.Atoi(text)
			Expect(err).NotTo(HaveOccurred(), "HOWDAH_CLAIMS")
		}
		const replicas = 3
		storage, team := openFileServer(replicas), newNamespace()
		class := newClass(builders.StorageClass("many-"+team).Shares(storage, "fs"))
		before, started := awaitQuiet(storage), time.Now()
		for i := range count {
			// Names that are alike at the beginning, and longer than a path's element.
			claimed(builders.Claim(team, strings.Repeat("x", 63)+"."+strconv.Itoa(i), class))
		}
		made := time.Since(started)
		var list corev1.PersistentVolumeList
		mine := func() (paths map[string]bool) {
			paths = map[string]bool{}
			Expect(admin.List(ctx, &list, client.MatchingLabels{v1alpha1.FileServerLabel: "fs"})).To(Succeed())
			for _, volume := range list.Items {
				if volume.Spec.StorageClassName == class {
					paths[volume.Spec.NFS.Path] = true
				}
			}
			return paths
		}
		Eventually(func() int {
			loadConfigurations(storage, "fs")
			keepDirectories(storage)
			return len(mine())
		}, time.Duration(count)*10*time.Second+timeout, "50ms").Should(Equal(count), "each with a path of its own")
		all := time.Since(started)
		written := awaitQuiet(storage) - before
		line := fmt.Sprintf("%d claims at once, %d data servers: made in %.1f s, all have volumes after %.1f s, %d API writes of the operator, %.1f a claim\n",
			count, replicas, made.Seconds(), all.Seconds(), written, float64(written)/float64(count))
		AddReportEntry("claims", line)
		if os.Getenv("HOWDAH_CLAIMS") != "" {
			_, _ = os.Stdout.WriteString(line)
		}
		Expect(written).To(BeNumerically("<", 20*count), describeWrites)

		spread := perServerOf(storage)
		Expect(spread).To(HaveLen(replicas))
		for server, n := range spread {
			// Four shares are placed at a time, and each may not see the last of the others.
			Expect(n).To(BeNumerically("~", count/replicas, 5), "claims are spread over the data servers: %s of %v", server, spread)
		}
	})
})

package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// provisioned makes a FileServer whose shares a steward makes in Ceph, and runs its pods; the steward works, and makes nothing.
func provisioned(namespace, name string, replicas int32) *v1alpha1.FileServer {
	GinkgoHelper()
	fs := builders.FileServer(namespace, name).Replicas(replicas).Provisioned().Build()
	create(fs)
	runNamespaceServers(namespace, name)
	startDataServers(namespace, name)
	stewardWorks(namespace, name, "a")
	runEverything(namespace, name)
	return fs
}

// tellStorage plays the steward: it says this of a share's place.
func tellStorage(namespace, name string, condition metav1.Condition) {
	GinkgoHelper()
	object := &internalv1.ShareStorage{}
	Eventually(func() error { return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object) }, timeout, "100ms").Should(Succeed())
	before, generation := object.DeepCopy(), object.Generation
	conditions.Set(&object.Status.Conditions, generation, time.Now(), condition)
	object.Status.ObservedGeneration = &generation
	if condition.Type == v1alpha1.ConditionReady && condition.Status == metav1.ConditionTrue {
		object.Status.Path, object.Status.User = "/volumes/howdah-uid/howdah-x/y", "howdah-share-x"
	}
	Expect(admin.Status().Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// madeStorage plays a steward that has made a share's place.
func madeStorage(namespace, name string) {
	GinkgoHelper()
	tellStorage(namespace, name, conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "the place is there"))
}

// stewardSays plays the steward: it says this of itself, and that it has written the Secret so.
func stewardSays(namespace, name string, condition metav1.Condition, revision string) {
	GinkgoHelper()
	object := exists(&internalv1.Steward{}, namespace, name)
	before, generation := object.DeepCopy(), object.Generation
	conditions.Set(&object.Status.Conditions, generation, time.Now(), condition)
	object.Status.ObservedGeneration, object.Status.SecretRevision = &generation, revision
	Expect(admin.Status().Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// stewardWorks plays a steward with nothing amiss.
func stewardWorks(namespace, name, revision string) {
	GinkgoHelper()
	stewardSays(namespace, name, conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "client.howdah-provisioner keeps 0 shares"), revision)
}

var _ = Describe("A FileServer with a steward", func() {
	It("has one pod with the credential, a Secret for it to write, and users of its own for data servers", func() {
		namespace := newNamespace()
		fs := provisioned(namespace, "training", 2)
		secret := naming.StewardSecret("training", string(fs.UID))
		made := exists(&corev1.Secret{}, namespace, secret)
		Expect(made.Data).To(BeEmpty())
		Expect(metav1.GetControllerOf(made).UID).To(Equal(fs.UID))
		steward := exists(&internalv1.Steward{}, namespace, "training")
		identity := steward.Spec.FileServerUID
		Expect(identity).To(HaveLen(36))
		Eventually(func() string {
			return exists(&v1alpha1.FileServer{}, namespace, "training").Status.StorageIdentity
		}).Should(Equal(identity))
		Expect(steward.Spec.Ceph.SharesSecretName).To(Equal(secret))
		Expect(steward.Spec.Ceph.ProvisioningSecretName).To(Equal("ceph"))
		pod := exists(&appsv1.Deployment{}, namespace, "training-steward").Spec.Template.Spec
		Expect(pod.Containers[0].Args).To(Equal([]string{"steward", "--file-server=training"}))
		for _, server := range dataServersOf(namespace, "training") {
			ordinal, _ := naming.DataServerOrdinal("training", server.Name)
			Expect(server.Spec.Ceph.RecoveryUser).To(Equal(ceph.RecoveryUser(identity, ordinal)))
			Expect(server.Spec.Ceph.Identity).To(Equal(identity))
			Expect(server.Spec.Ceph.SecretName).To(Equal(secret))
			Expect(server.Spec.Ceph.StewardName).To(Equal("training"))
		}
		for _, volume := range exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Spec.Volumes {
			Expect(volume.Secret == nil || volume.Secret.SecretName != "ceph").To(BeTrue(), "a data server has the credential")
		}

		By("making the Secret again when the steward misses it")
		Expect(admin.Delete(ctx, made)).To(Succeed())
		stewardSays(namespace, "training", conditions.False(v1alpha1.ConditionReady, internalv1.ReasonSecretMissing, "there is no Secret"), "")
		Eventually(func() bool {
			again := &corev1.Secret{}
			return admin.Get(ctx, client.ObjectKeyFromObject(made), again) == nil && again.UID != made.UID
		}, timeout, "100ms").Should(BeTrue())
	})

	It("has the same storage identity when it is made again, and one that another has is refused", func() {
		namespace := newNamespace()
		first := provisioned(namespace, "training", 1)
		identity := exists(&v1alpha1.FileServer{}, namespace, "training").Status.StorageIdentity

		By("asking for it with another FileServer")
		second := builders.FileServer(namespace, "second").Replicas(1).Provisioned().Build()
		second.Spec.Storage.Ceph.Identity = identity
		create(second)
		Eventually(func() string {
			return fileServerCondition(namespace, "second", v1alpha1.ConditionReady).Message
		}, timeout, "100ms").Should(ContainSubstring("FileServer " + namespace + "/training has " + identity))
		Expect(fileServerCondition(namespace, "second", v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonInvalidSpec))
		awaitQuiet(namespace)
		isNoMore(&internalv1.Steward{}, namespace, "second")

		By("deleting the one that has it")
		Expect(admin.Delete(ctx, first)).To(Succeed())
		isNoMore(&v1alpha1.FileServer{}, namespace, "training")
		Eventually(func() string {
			steward := &internalv1.Steward{}
			_ = admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "second"}, steward)
			return steward.Spec.FileServerUID
		}, timeout, "100ms").Should(Equal(identity))

		By("changing what it has")
		change(exists(&v1alpha1.FileServer{}, namespace, "second"), func(fs *v1alpha1.FileServer) { fs.Labels = map[string]string{"a": "b"} })
		changed := exists(&v1alpha1.FileServer{}, namespace, "second")
		before := changed.DeepCopy()
		changed.Spec.Storage.Ceph.Identity = "99999999-9999-9999-9999-999999999999"
		Expect(admin.Patch(ctx, changed, client.MergeFrom(before))).To(MatchError(ContainSubstring("identity can't be changed")))
	})

	It("brings a new Secret to the pods at once, and follows monitors without another pod", func() {
		namespace := newNamespace()
		fs := provisioned(namespace, "training", 2)
		stewardWorks(namespace, "training", "first")
		for _, revision := range []string{"first", "second"} {
			stewardWorks(namespace, "training", revision)
			for _, name := range []string{"training-0", "training-1"} {
				Eventually(func() string {
					return exists(&corev1.Pod{}, namespace, name).Annotations[v1alpha1.StorageSecretAnnotation]
				}, timeout, "100ms").Should(Equal(revision))
			}
		}
		generation := exists(&appsv1.Deployment{}, namespace, "training-steward").Generation
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Storage.Ceph.External.Monitors = []string{"10.0.0.7:3300"} })
		Eventually(func() []string { return exists(&internalv1.Steward{}, namespace, "training").Spec.Ceph.Monitors }, timeout, "100ms").
			Should(Equal([]string{"10.0.0.7:3300"}))
		Expect(exists(&appsv1.Deployment{}, namespace, "training-steward").Generation).To(Equal(generation))
	})

	It("says what the steward says where data servers lack something, and that they serve where they do", func() {
		namespace := newNamespace()
		create(builders.FileServer(namespace, "training").Replicas(2).Provisioned().Build())
		storage := func() string {
			c := fileServerCondition(namespace, "training", v1alpha1.FileServerStorageAvailable)
			return string(c.Status) + " " + c.Reason + " " + c.Message
		}
		Eventually(storage, timeout, "100ms").Should(HavePrefix("False Progressing waiting for the steward"))
		stewardSays(namespace, "training", conditions.False(v1alpha1.ConditionReady, internalv1.ReasonCephUnusable, "there is no Secret ceph"), "")
		Eventually(storage, timeout, "100ms").Should(Equal("False CephUnusable the steward can't work: there is no Secret ceph"))
		stewardWorks(namespace, "training", "r")
		runEverything(namespace, "training")
		Eventually(storage, timeout, "100ms").Should(Equal("True Ready 2 of 2 data servers use Ceph file system fs1"))
		stewardSays(namespace, "training", conditions.False(v1alpha1.ConditionReady, internalv1.ReasonCephUnusable, "no monitor answers"), "r")
		Eventually(storage, timeout, "100ms").Should(And(HavePrefix("True StewardFailing 2 of 2 data servers use"), HaveSuffix("no monitor answers")))
		Expect(fileServerCondition(namespace, "training", v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue))
	})

	It("lets its pod write what is its own, and nothing else", func() {
		namespace := newNamespace()
		fs := builders.FileServer(namespace, "training").Replicas(1).Provisioned().Build()
		create(fs)
		other := builders.FileServer(namespace, "archive").Replicas(1).Provisioned().Build()
		create(other)
		create(builders.FileShare(namespace, "data", "training").Path("/data").Build())
		create(builders.FileShare(namespace, "old", "archive").Path("/old").Build())
		own, foreign := exists(&internalv1.ShareStorage{}, namespace, "data.training"), exists(&internalv1.ShareStorage{}, namespace, "old.archive")
		exists(&internalv1.Steward{}, namespace, "archive")
		server := exists(&internalv1.DataServer{}, namespace, "training-0")
		steward := asPod(namespace, "training-steward", "training-steward-5d8f-x7")
		ready := `{"conditions":[{"type":"Ready","status":"False","reason":"Progressing","message":"m","lastTransitionTime":"2026-11-22T00:00:00Z"}]}`
		Expect(patchStatus(steward, own, ready)).To(Succeed())
		Expect(patchStatus(steward, exists(&internalv1.Steward{}, namespace, "training"), ready)).To(Succeed())
		Expect(patchStatus(steward, server, `{"fenced":{"id":"a"}}`)).To(Succeed())
		Expect(patchStatus(steward, server, `{"nodeName":"elsewhere"}`)).To(beRefused("writes the field fenced only"))
		Expect(patchStatus(steward, foreign, ready)).To(beRefused("writes its objects only"))
		Expect(patchStatus(steward, exists(&internalv1.Steward{}, namespace, "archive"), ready)).To(beRefused(byRole))
		Expect(steward.Delete(ctx, own.DeepCopy())).To(beRefused(byRole))

		named := func(name string) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"a": []byte("b")}}
		}
		secret := naming.StewardSecret("training", string(fs.UID))
		exists(&corev1.Secret{}, namespace, secret)
		Expect(steward.Update(ctx, named(secret))).To(Succeed())
		Expect(steward.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secret}, &corev1.Secret{})).To(beRefused(byRole))
		Expect(steward.Update(ctx, named(naming.StewardSecret("archive", string(other.UID))))).To(beRefused(byRole))
		Expect(steward.Create(ctx, named("new"))).To(beRefused(byRole))
		otherPod := asPod(namespace, "training-steward", "training-1")
		Expect(patchStatus(otherPod, own, ready)).To(beRefused("must have been made for its pod"))
		dataServer := asPod(namespace, "training-data", "training-0")
		Expect(patchStatus(dataServer, server, `{"fence":{"id":"b","addresses":["10.0.0.1:0/1"]}}`)).To(Succeed())
		Expect(patchStatus(dataServer, server, `{"fenced":{"id":"b"}}`)).To(beRefused("is not for data servers to write"))
	})
})

var _ = Describe("A share whose place a steward makes", func() {
	It("has a ShareStorage, waits for it, and is Ready with it", func() {
		namespace := newNamespace()
		provisioned(namespace, "training", 2)
		create(builders.FileShare(namespace, "data", "training").Path("/data").Build())
		Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.FileShareExported).Reason }, timeout, "100ms").
			Should(Equal(v1alpha1.ReasonStoragePending))
		storage := exists(&internalv1.ShareStorage{}, namespace, "data.training")
		Expect(storage.Spec).To(Equal(internalv1.ShareStorageSpec{
			FileServerRef: internalv1.FileServerReference{Name: "training"}, FileShareRef: internalv1.FileShareReference{Name: "data"}, DataPolicy: internalv1.DataRetain,
		}))
		Expect(controllerutil.ContainsFinalizer(storage, v1alpha1.StorageFinalizer)).To(BeTrue())
		Expect(metav1.GetControllerOf(storage)).NotTo(BeNil())
		madeStorage(namespace, "data.training")
		readyShare(namespace, "data")
	})

	It("keeps a ShareStorage that is deleted by accident until the steward has ended it, and asks again", func() {
		namespace := newNamespace()
		provisioned(namespace, "training", 1)
		create(builders.FileShare(namespace, "data", "training").Path("/data").Build())
		madeStorage(namespace, "data.training")
		first := exists(&internalv1.ShareStorage{}, namespace, "data.training")
		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.FileShareExported).Message }, timeout, "100ms").
			Should(ContainSubstring("has to end the place of an earlier share"))
		Expect(exists(&internalv1.ShareStorage{}, namespace, "data.training").Spec.DataPolicy).To(Equal(internalv1.DataRetain))
		tellStorage(namespace, "data.training", conditions.True(internalv1.StorageRemoved, internalv1.StorageRemoved, "the account is gone, the data stays"))
		Eventually(func() bool {
			again := exists(&internalv1.ShareStorage{}, namespace, "data.training")
			return again.UID != first.UID && again.DeletionTimestamp == nil
		}, timeout, "100ms").Should(BeTrue())
	})

	It("waits, deleted with its data, until the exports and then the place are gone", func() {
		namespace := newNamespace()
		provisioned(namespace, "training", 1)
		share := builders.FileShare(namespace, "data", "training").Path("/data").Build()
		share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		create(share)
		madeStorage(namespace, "data.training")
		readyShare(namespace, "data")
		Expect(admin.Delete(ctx, share)).To(Succeed())
		Eventually(func() string {
			letClaimsGo()
			return shareCondition(namespace, "data", v1alpha1.ConditionReady).Message
		}, timeout, "100ms").Should(ContainSubstring("to stop exporting the share"))
		storage := exists(&internalv1.ShareStorage{}, namespace, "data.training")
		Expect(storage.DeletionTimestamp).To(BeNil(), "the place goes after the exports")
		Expect(storage.Spec.DataPolicy).To(Equal(internalv1.DataRetain))

		By("dropping the exports")
		loadConfigurations(namespace, "training")
		Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.ConditionReady).Message }, timeout, "100ms").
			Should(ContainSubstring("waiting for the steward of FileServer training to remove the share's data"))
		storage = exists(&internalv1.ShareStorage{}, namespace, "data.training")
		Expect(storage.DeletionTimestamp).NotTo(BeNil())
		Expect(storage.Spec.DataPolicy).To(Equal(internalv1.DataDelete))
		tellStorage(namespace, "data.training", conditions.False(internalv1.StorageRemoved, internalv1.ReasonRemovalFailing, "Ceph refused it: snapshots"))
		Eventually(func() string { return shareCondition(namespace, "data", v1alpha1.ConditionReady).Message }, timeout, "100ms").
			Should(ContainSubstring("Ceph refused it: snapshots"))
		tellStorage(namespace, "data.training", conditions.True(internalv1.StorageRemoved, internalv1.StorageRemoved, "the subvolume is in Ceph's trash"))
		isNoMore(&internalv1.ShareStorage{}, namespace, "data.training")
		isNoMore(&v1alpha1.FileShare{}, namespace, "data")
	})

	It("does not wait where the data stays, and its place's account ends later", func() {
		namespace := newNamespace()
		provisioned(namespace, "training", 1)
		share := builders.FileShare(namespace, "data", "training").Path("/data").Build()
		create(share)
		madeStorage(namespace, "data.training")
		readyShare(namespace, "data")
		Expect(admin.Delete(ctx, share)).To(Succeed())
		shareIsGone(namespace, "data", "training")
		storage := exists(&internalv1.ShareStorage{}, namespace, "data.training")
		Expect(storage.DeletionTimestamp).NotTo(BeNil())
		Expect(storage.Spec.DataPolicy).To(Equal(internalv1.DataRetain))
		tellStorage(namespace, "data.training", conditions.True(internalv1.StorageRemoved, internalv1.StorageRemoved, "the account is gone, the data stays"))
		isNoMore(&internalv1.ShareStorage{}, namespace, "data.training")
	})
})

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("A FileServer says what it will not do", func() {
	var namespace string
	BeforeEach(func() { namespace = newNamespace() })
	replicas := func(name string) func() int32 {
		return func() int32 { return *exists(&appsv1.StatefulSet{}, namespace, name).Spec.Replicas }
	}

	It("refuses to lose servers that own directories, and lets the others go", func() {
		fs := builders.FileServer(namespace, "training").Replicas(3).Build()
		create(fs)
		runEverything(namespace, "training")
		directory := builders.ShareDirectory(namespace, "training", "unet3d", "train/7", "training-2")
		createDirectory(directory)

		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = 1 })
		message := expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonScaleInRefused)
		Expect(message).To(ContainSubstring("training-2 owns 1 (unet3d:train/7)"))
		Expect(message).To(ContainSubstring("set spec.replicas to 3"))
		Expect(replicas("training")()).To(Equal(int32(3)))

		Expect(admin.Delete(ctx, directory)).To(Succeed())
		Eventually(replicas("training"), timeout).Should(Equal(int32(1)))
		isGone(&internalv1.DataServer{}, namespace, "training-2")
		isGone(&corev1.Service{}, namespace, "training-1")
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		exists(&corev1.PersistentVolumeClaim{}, namespace, "data-0-training-2")
	})

	It("names a StorageClass that is missing, and goes on when it comes", func() {
		create(builders.FileServer(namespace, "training").Replicas(1).Class("golden").Build())
		message := expectCondition(namespace, "training", v1alpha1.FileServerStorageAvailable, metav1.ConditionFalse, v1alpha1.ReasonStorageClassNotFound)
		Expect(message).To(Equal(`spec.storage.volumes.storageClassName: there is no StorageClass "golden"; there are: fixed, standard; make one of this name, or delete this FileServer and make it again with another (the field can't be changed)`))
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonStorageClassNotFound)
		exists(&corev1.Service{}, namespace, "training")
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "training"}, &appsv1.StatefulSet{}))).To(BeTrue())

		class := builders.StorageClass("golden").Build()
		create(class)
		DeferCleanup(func() { Expect(admin.Delete(ctx, class)).To(Succeed()) })
		exists(&appsv1.StatefulSet{}, namespace, "training")
	})

	It("grows claims where the class allows it, and says where it does not", func() {
		growing := builders.FileServer(namespace, "growing").Replicas(2).Build()
		fixed := builders.FileServer(namespace, "fixed").Replicas(1).Class(fixedClass).Build()
		for _, fs := range []*v1alpha1.FileServer{growing, fixed} {
			create(fs)
			runEverything(namespace, fs.Name)
			change(fs, func(fs *v1alpha1.FileServer) {
				size := resource.MustParse("2Gi")
				fs.Spec.Storage.Volumes.Size = &size
			})
		}
		for _, name := range []string{"data-0-growing-0", "data-0-growing-1"} {
			Eventually(func() string {
				claim := exists(&corev1.PersistentVolumeClaim{}, namespace, name)
				request := claim.Spec.Resources.Requests[corev1.ResourceStorage]
				return request.String()
			}, timeout).Should(Equal("2Gi"))
		}
		message := expectCondition(namespace, "growing", v1alpha1.FileServerStorageAvailable, metav1.ConditionFalse, v1alpha1.ReasonProgressing)
		Expect(message).To(ContainSubstring("data-0-growing-0 from 1Gi"))
		message = expectCondition(namespace, "fixed", v1alpha1.FileServerStorageAvailable, metav1.ConditionFalse, v1alpha1.ReasonExpansionRefused)
		Expect(message).To(ContainSubstring(`StorageClass "fixed" does not allow volumes to grow`))
		Expect(message).To(ContainSubstring("set the size back to 1Gi"))

		By("taking back a size that volumes did not get, and no more")
		resized := func(name, size string) error {
			before := exists(&v1alpha1.FileServer{}, namespace, name)
			after := before.DeepCopy()
			after.Spec.Storage.Volumes.Size = quantity(size)
			return admin.Patch(ctx, after, client.MergeFrom(before))
		}
		Expect(resized("fixed", "1Gi")).To(Succeed())
		expectCondition(namespace, "fixed", v1alpha1.FileServerStorageAvailable, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Expect(resized("fixed", "1023Mi")).To(MatchError(ContainSubstring("size can't shrink")))
		claim := exists(&corev1.PersistentVolumeClaim{}, namespace, "data-0-fixed-0")
		Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))

		By("keeping a size that volumes have")
		for _, name := range []string{"data-0-growing-0", "data-0-growing-1"} {
			claim := exists(&corev1.PersistentVolumeClaim{}, namespace, name)
			before := claim.DeepCopy()
			claim.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
			Expect(admin.Status().Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())
		}
		expectCondition(namespace, "growing", v1alpha1.FileServerStorageAvailable, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Expect(exists(&v1alpha1.FileServer{}, namespace, "growing").Status.VolumeSize.String()).To(Equal("2Gi"))
		Expect(resized("growing", "1Gi")).To(MatchError(ContainSubstring("size can't shrink")))
	})

	It("does not touch a Service of that name that it did not make", func() {
		foreign := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "training", Labels: map[string]string{"app": "other"}},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "other"}, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		create(foreign)
		create(builders.FileServer(namespace, "training").Replicas(1).Build())
		message := expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNameTaken)
		Expect(message).To(ContainSubstring("Service " + namespace + "/training exists"))
		Expect(message).To(ContainSubstring("give this object another name"))
		now := exists(&corev1.Service{}, namespace, "training")
		Expect(now.ResourceVersion).To(Equal(foreign.ResourceVersion), "nothing was written")
		exists(&appsv1.StatefulSet{}, namespace, "training")

		By("going on when the name is free")
		Expect(admin.Delete(ctx, foreign)).To(Succeed())
		Eventually(func() string { return exists(&corev1.Service{}, namespace, "training").Labels[v1alpha1.ManagedByLabel] },
			timeout, "100ms").Should(Equal(v1alpha1.ManagedBy))
	})

	It("keeps two FileServers apart whose children would have one name", func() {
		create(builders.FileServer(namespace, "a").Replicas(1).Build())
		exists(&corev1.Service{}, namespace, "a-0")
		create(builders.FileServer(namespace, "a-0").Replicas(1).Build())
		message := expectCondition(namespace, "a-0", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNameTaken)
		Expect(message).To(ContainSubstring("Service " + namespace + "/a-0 exists and belongs to FileServer a;"))
	})

	It("reports a node that can't take a server, in the scheduler's words", func() {
		create(builders.FileServer(namespace, "training").Replicas(1).Build())
		set := exists(&appsv1.StatefulSet{}, namespace, "training")
		runPod(namespace, "training-0", withClaims(set, "training-0"), nil, "", "10.1.0.1")
		pod := exists(&corev1.Pod{}, namespace, "training-0")
		before := pod.DeepCopy()
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient memory.",
		}}
		Expect(admin.Status().Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
		Eventually(func() string {
			return fileServerCondition(namespace, "training", v1alpha1.FileServerServersAvailable).Message
		}, timeout).Should(Equal("0 of 1 data servers serve: training-0 is Pending (not scheduled: 0/3 nodes are available: 3 Insufficient memory.)"))
	})
})

var _ = Describe("Deleting a FileServer", func() {
	It("waits for the shares that use it, stops nothing meanwhile, and keeps the claims", func() {
		namespace := newNamespace()
		fs := builders.FileServer(namespace, "training").Replicas(1).Build()
		create(fs)
		runEverything(namespace, "training")
		share := builders.FileShare(namespace, "unet3d", "training").Build()
		share.Finalizers = []string{"test.howdah.io/hold"}
		create(share)
		Eventually(func() int { return len(exportsOf(namespace, "training-0")) }, timeout).Should(Equal(1))

		Expect(admin.Delete(ctx, fs)).To(Succeed())
		message := expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInUse)
		Expect(message).To(ContainSubstring("FileShares that use it: unet3d;"))
		Expect(exportsOf(namespace, "training-0")).To(HaveLen(1), "the share is still served")
		Expect(exists(&appsv1.StatefulSet{}, namespace, "training").DeletionTimestamp).To(BeNil())

		Expect(admin.Delete(ctx, share)).To(Succeed())
		change(share, func(s *v1alpha1.FileShare) { s.Finalizers = nil })
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(fs), &v1alpha1.FileServer{}))
		}, timeout).Should(BeTrue())
		claim := exists(&corev1.PersistentVolumeClaim{}, namespace, "data-0-training-0")
		Expect(claim.DeletionTimestamp).To(BeNil())
		Expect(claim.OwnerReferences).To(BeEmpty())
		set := exists(&appsv1.StatefulSet{}, namespace, "training")
		Expect(set.OwnerReferences[0].UID).To(Equal(fs.UID), "the garbage collector takes it")
	})
})

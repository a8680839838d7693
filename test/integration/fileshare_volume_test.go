package integration

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("The volume and the claim of a share", func() {
	It("are ready to mount, and status says how to mount without them", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 2)
		create(builders.FileShare(namespace, "s", "fs").Path("/deep/er").Build())
		share := readyShare(namespace, "s")
		claim, volume := claimAndVolume(namespace, "s")
		address := exists(&v1alpha1.FileServer{}, namespace, "fs").Status.Address

		Expect(volume.Spec.NFS).To(Equal(&corev1.NFSVolumeSource{Server: address, Path: "/deep/er"}))
		Expect(volume.Spec.MountOptions).To(Equal([]string{"vers=4.1", "nconnect=16", "hard", "nosuid", "nodev", "acdirmin=1", "acdirmax=2", "noresvport"}))
		Expect(volume.Spec.AccessModes).To(ConsistOf(corev1.ReadWriteMany, corev1.ReadOnlyMany))
		Expect(volume.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
		Expect(volume.Spec.StorageClassName).To(BeEmpty())
		Expect(volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name).To(Equal(namespace + "/s"))
		Expect(volume.Spec.Capacity.Storage().Cmp(resource.MustParse("2Gi"))).To(BeZero(), "the size of the FileServer: %s", volume.Spec.Capacity.Storage())
		Expect(claim.Spec.VolumeName).To(Equal(volume.Name))
		Expect(*claim.Spec.StorageClassName).To(BeEmpty())
		Expect(metav1.GetControllerOf(claim).UID).To(Equal(share.UID))

		Expect(share.Status.Mount.Command).To(Equal("mount -t nfs4 -o vers=4.1,nconnect=16,hard,nosuid,nodev,acdirmin=1,acdirmax=2,noresvport " + address + ":/deep/er /mnt"))
		Expect(share.Status.Mount.ClaimName).To(Equal("s"))
	})

	It("leave the client's ports free, unless a share of the FileServer accepts reserved ones only", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		servingFileServer(namespace, "other", 1)
		create(builders.FileShare(namespace, "any", "fs").Build())
		create(builders.FileShare(namespace, "elsewhere", "other").Build())
		// anyPort says it for the volume, the options and the command.
		anyPort := func(share string) []bool {
			mount := exists(&v1alpha1.FileShare{}, namespace, share).Status.Mount
			_, volume := claimAndVolume(namespace, share)
			return []bool{slices.Contains(volume.Spec.MountOptions, "noresvport"), slices.Contains(mount.Options, "noresvport"), strings.Contains(mount.Command, ",noresvport ")}
		}
		readyShare(namespace, "any")
		Eventually(anyPort).WithArguments("any").Should(HaveEach(true))

		strict := builders.FileShare(namespace, "strict", "fs").Access(v1alpha1.AccessReadWrite, v1alpha1.SquashNone, "10.0.0.0/8").Build()
		strict.Spec.Access[0].SourcePorts = v1alpha1.SourcePortsReserved
		create(strict)
		Eventually(anyPort).WithArguments("any").Should(HaveEach(false), "a node has one set of connections for all shares of a FileServer")
		readyShare(namespace, "strict")
		Eventually(anyPort).WithArguments("strict").Should(HaveEach(false))
		readyShare(namespace, "elsewhere")
		Eventually(anyPort).WithArguments("elsewhere").Should(HaveEach(true))

		change(strict, func(s *v1alpha1.FileShare) { s.Spec.Access[0].SourcePorts = v1alpha1.SourcePortsAny })
		Eventually(anyPort).WithArguments("any").Should(HaveEach(true))
		Eventually(anyPort).WithArguments("strict").Should(HaveEach(true))
	})

	It("stay bound, and bind again when the claim was deleted", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		create(builders.FileShare(namespace, "s", "fs").Build())
		readyShare(namespace, "s")
		bindVolume(namespace, "s")
		claim, volume := claimAndVolume(namespace, "s")
		Consistently(func() types.UID { return exists(volume, "", volume.Name).Spec.ClaimRef.UID }, "2s").Should(Equal(claim.UID),
			"Kubernetes' own part of claimRef is left alone")

		Expect(admin.Delete(ctx, claim)).To(Succeed())
		before := claim.DeepCopy()
		claim.Finalizers = nil
		Expect(admin.Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())
		Consistently(func() types.UID { return exists(volume, "", volume.Name).Spec.ClaimRef.UID }, "500ms").Should(Equal(claim.UID),
			"Kubernetes has not called the volume Released yet")
		Eventually(func() types.UID {
			takeOnVolume(namespace, "s")
			return exists(volume, "", volume.Name).Spec.ClaimRef.UID
		}, timeout).Should(BeEmpty(), "the reference to the deleted claim is cleared")
		bindVolume(namespace, "s")
		again, _ := claimAndVolume(namespace, "s")
		Expect(again.UID).NotTo(Equal(claim.UID))
	})

	It("come when a namespace server is ready, the claim when Kubernetes knows the volume", func() {
		namespace := newNamespace()
		create(builders.FileServer(namespace, "fs").Replicas(1).Class(standardClass).Build())
		create(builders.FileShare(namespace, "s", "fs").Build())
		claimAvailable := func() string { return shareCondition(namespace, "s", v1alpha1.FileShareClaimAvailable).Message }
		Eventually(claimAvailable, timeout).Should(ContainSubstring("waiting for a namespace server of FileServer fs to be ready"))
		volume := &corev1.PersistentVolume{}
		key := client.ObjectKey{Name: naming.ShareVolume(namespace, "s")}
		Expect(admin.Get(ctx, key, volume)).NotTo(Succeed())

		runEverything(namespace, "fs")
		Eventually(claimAvailable, timeout).Should(ContainSubstring("waiting for Kubernetes to call PersistentVolume " + key.Name + " Available"))
		Expect(admin.Get(ctx, key, volume)).To(Succeed())
		claim := &corev1.PersistentVolumeClaim{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "s"}, claim)).NotTo(Succeed())
		Expect(exists(&v1alpha1.FileShare{}, namespace, "s").Status.Mount.ClaimName).To(BeEmpty(), "no claim to use yet")

		takeOnVolume(namespace, "s")
		Eventually(claimAvailable, timeout).Should(ContainSubstring("pods can use the claim s"))
		exists(claim, namespace, "s")
	})

	It("are made again with another address as long as no claim uses the volume", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		before := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{
				Name:        naming.ShareVolume(namespace, "s"),
				Labels:      map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.FileServerLabel: "fs", v1alpha1.FileShareLabel: "s"},
				Annotations: map[string]string{v1alpha1.OwnerAnnotation: naming.Owner("FileShare", namespace, "s")},
			},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "192.0.2.1", Path: "/s"}},
			},
		}
		create(before)
		create(builders.FileShare(namespace, "s", "fs").Path("/s").Build())
		address := exists(&v1alpha1.FileServer{}, namespace, "fs").Status.Address
		Eventually(func() bool {
			volume := &corev1.PersistentVolume{}
			if admin.Get(ctx, client.ObjectKeyFromObject(before), volume) != nil {
				return false
			}
			if volume.DeletionTimestamp != nil { // as Kubernetes' controller does with what no claim uses
				finalized := volume.DeepCopy()
				finalized.Finalizers = nil
				Expect(client.IgnoreNotFound(admin.Patch(ctx, finalized, client.MergeFrom(volume)))).To(Succeed())
				return false
			}
			return volume.UID != before.UID && volume.Spec.NFS.Server == address
		}, timeout).Should(BeTrue())
	})

	It("leave a claim of that name alone that was not made for the share", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 1)
		foreign := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}
		create(foreign)
		create(builders.FileShare(namespace, "s", "fs").Build())
		Expect(expectShare(namespace, "s", v1alpha1.FileShareClaimAvailable, metav1.ConditionFalse, v1alpha1.ReasonNameTaken)).
			To(ContainSubstring("PersistentVolumeClaim " + namespace + "/s exists"))
		Consistently(func() string { return exists(&corev1.PersistentVolumeClaim{}, namespace, "s").ResourceVersion }, "1s").Should(Equal(foreign.ResourceVersion))
		Expect(client.IgnoreNotFound(admin.Get(ctx, client.ObjectKey{Name: naming.ShareVolume(namespace, "s")}, &corev1.PersistentVolume{}))).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKey{Name: naming.ShareVolume(namespace, "s")}, &corev1.PersistentVolume{})).NotTo(Succeed(), "no volume waits for a claim that isn't ours")
		Expect(exists(&v1alpha1.FileShare{}, namespace, "s").Status.Mount.ClaimName).To(BeEmpty())
	})

	It("take no API write in steady state", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "fs", 3)
		create(builders.FileShare(namespace, "s", "fs").Depth(2).Directories("{a,b}/{0..9}").Build())
		create(builders.FileShare(namespace, "one", "fs").Single().Build())
		readyShare(namespace, "s")
		readyShare(namespace, "one")
		bindVolume(namespace, "s")
		bindVolume(namespace, "one")
		before := awaitQuiet(namespace)
		for _, name := range []string{"s", "one"} {
			change(exists(&v1alpha1.FileShare{}, namespace, name), func(share *v1alpha1.FileShare) {
				share.Labels = map[string]string{"touched": "yes"}
			})
		}
		server := exists(&internalv1.DataServer{}, namespace, "fs-0")
		change(server, func(s *internalv1.DataServer) { s.Annotations["touched"] = "yes" })
		Consistently(func() int64 { return writesIn(namespace) - before }, "3s").Should(BeZero(), describeWrites)
	})
})

package integration

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/mountinfo"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// localPath is what a supervisor sees of a volume that a provisioner of host directories made.
func localPath() string {
	GinkgoHelper()
	mounts, err := mountinfo.Parse("40 1 8:1 /opt/local-path-provisioner/pvc-0b4e /volumes/0 rw - ext4 /dev/sda1 rw\n")
	Expect(err).NotTo(HaveOccurred())
	return mountinfo.Shared(mounts, []mountinfo.Volume{{Path: "/volumes/0", MountID: 40}})[0]
}

// meetLocalPaths plays the supervisors of data servers whose volumes are host directories: by their DataServers they refuse
// them, or serve and say it.
func meetLocalPaths(namespace, fileServer string) {
	GinkgoHelper()
	var list internalv1.DataServerList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(naming.SelectDataServers(fileServer)))).To(Succeed())
	for i := range list.Items {
		server := &list.Items[i]
		before := server.DeepCopy()
		found := conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "ganesha answers")
		if server.Spec.SharedFileSystemPolicy == v1alpha1.SharedFileSystemAllow {
			index, total, used := int32(0), int64(1<<40), int64(1<<30)
			server.Status.ObservedGeneration = &before.Generation
			server.Status.Volumes = []internalv1.VolumeUsage{{Index: &index, TotalBytes: &total, UsedBytes: &used, SharedFileSystem: localPath()}}
		} else {
			ordinal, _ := naming.DataServerOrdinal(fileServer, server.Name)
			found = conditions.False(v1alpha1.ConditionReady, internalv1.ReasonVolumeRefused,
				mountinfo.Refusal([]string{naming.VolumeClaim(fileServer, ordinal, 0)}, []string{localPath()}))
		}
		if conditions.Set(&server.Status.Conditions, server.Generation, time.Now(), found) {
			Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
		}
		serveExports(namespace, server.Name)
	}
}

// onLocalPaths makes a FileServer whose volumes are host directories.
func onLocalPaths(namespace, name string, policy v1alpha1.SharedFileSystemPolicy) *v1alpha1.FileServer {
	GinkgoHelper()
	fs := builders.FileServer(namespace, name).Replicas(2).Build()
	fs.Spec.Storage.Volumes.SharedFileSystemPolicy = policy
	create(fs)
	runNamespaceServers(namespace, name)
	startDataServers(namespace, name)
	meetLocalPaths(namespace, name)
	return fs
}

// expectLocalPaths waits for Ready while the supervisors go on, and until all of them were heard.
func expectLocalPaths(namespace, name string, status metav1.ConditionStatus, reason, all string) string {
	GinkgoHelper()
	var got metav1.Condition
	Eventually(func() string {
		meetLocalPaths(namespace, name)
		got = fileServerCondition(namespace, name, v1alpha1.ConditionReady)
		return fmt.Sprintf("%s %s %s", got.Status, got.Reason, got.Message)
	}, timeout, "100ms").Should(And(HavePrefix("%s %s ", status, reason), ContainSubstring(all)))
	return got.Message
}

var _ = Describe("Volumes that are directories of the nodes' disks", func() {
	It("are refused until the user allows them, with one event and a lasting condition", func() {
		namespace := newNamespace()
		fs := onLocalPaths(namespace, "training", "")
		Expect(exists(&v1alpha1.FileServer{}, namespace, "training").Spec.Storage.Volumes.SharedFileSystemPolicy).To(Equal(v1alpha1.SharedFileSystemForbid))
		message := expectLocalPaths(namespace, "training", metav1.ConditionFalse, v1alpha1.ReasonVolumeRefused, "2 of 2")
		for _, part := range []string{
			"2 of 2 data servers refuse a volume (training-0, training-1)", "claim data-0-training-0 is the directory /opt/local-path-provisioner/pvc-0b4e",
			"leaked file handle", "StorageClass", "sharedFileSystemPolicy to Allow",
		} {
			Expect(message).To(ContainSubstring(part))
		}
		expectCondition(namespace, "training", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonVolumeRefused)
		Expect(fileServerCondition(namespace, "training", v1alpha1.FileServerServersAvailable).Message).To(ContainSubstring("it can't use its storage: see StorageAvailable"))
		Eventually(eventsAbout(namespace, "FileServer", "training"), timeout).Should(Equal([]string{v1alpha1.ReasonVolumeRefused}))

		By("allowing it")
		change(fs, func(fs *v1alpha1.FileServer) {
			fs.Spec.Storage.Volumes.SharedFileSystemPolicy = v1alpha1.SharedFileSystemAllow
		})
		message = expectLocalPaths(namespace, "training", metav1.ConditionTrue, v1alpha1.ReasonSharedFileSystems, "data-0-training-1")
		Expect(message).To(ContainSubstring("sharedFileSystemPolicy is Allow"))
		Expect(message).To(ContainSubstring("data-0-training-0 is the directory /opt/local-path-provisioner/pvc-0b4e of a larger file system (ext4 on /dev/sda1)"))
		Expect(fileServerCondition(namespace, "training", v1alpha1.ConditionStalled).Type).To(BeEmpty())
		reasons := []string{v1alpha1.ReasonVolumeRefused, v1alpha1.ReasonSharedFileSystems}
		Eventually(eventsAbout(namespace, "FileServer", "training"), timeout).Should(Equal(reasons))
		awaitQuiet(namespace)
		Consistently(eventsAbout(namespace, "FileServer", "training"), "2s").Should(Equal(reasons))
		Expect(fileServerCondition(namespace, "training", v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonSharedFileSystems), "it stays")

		By("forbidding it again")
		change(fs, func(fs *v1alpha1.FileServer) {
			fs.Spec.Storage.Volumes.SharedFileSystemPolicy = v1alpha1.SharedFileSystemForbid
		})
		expectLocalPaths(namespace, "training", metav1.ConditionFalse, v1alpha1.ReasonVolumeRefused, "2 of 2")
	})
})

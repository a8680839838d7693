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

const lostVolume = "6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c"

// sayOfServer plays the supervisor of a data server that says that of itself.
func sayOfServer(namespace, name string, found metav1.Condition, change func(*internalv1.DataServerStatus)) {
	GinkgoHelper()
	server := exists(&internalv1.DataServer{}, namespace, name)
	before := server.DeepCopy()
	change(&server.Status)
	conditions.Set(&server.Status.Conditions, server.Generation, time.Now(), found)
	Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
}

// What the data server itself does with its volumes is in internal/dataserver: "a replaced volume is refused until the lost one is given up".
var _ = Describe("A claim that has another volume than before", func() {
	It("makes the FileServer say which one is missing, and only the server that had it gets it as given up", func() {
		namespace := newNamespace()
		fs := builders.FileServer(namespace, "training").Replicas(2).Build()
		create(fs)
		runEverything(namespace, "training")
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

		sayOfServer(namespace, "training-1", conditions.False(v1alpha1.ConditionReady, internalv1.ReasonVolumeRefused, "claim data-0-training-1: it had "+lostVolume),
			func(status *internalv1.DataServerStatus) {
				status.VolumeIDs = []internalv1.VolumeIdentity{{Index: ptr.To(int32(0)), ID: lostVolume}}
			})
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonVolumeRefused)
		Expect(fileServerCondition(namespace, "training", v1alpha1.FileServerStorageAvailable).Message).To(
			ContainSubstring("1 of 2 data servers refuse a volume (training-1): claim data-0-training-1: it had " + lostVolume))
		Expect(exists(&internalv1.DataServer{}, namespace, "training-1").Spec.LostVolumes).To(BeEmpty())

		change(fs, func(fs *v1alpha1.FileServer) {
			fs.Spec.Storage.Volumes.LostVolumes = []v1alpha1.LostVolume{{ClaimName: "data-0-training-1", VolumeID: lostVolume}}
		})
		Eventually(func() []internalv1.VolumeIdentity {
			return exists(&internalv1.DataServer{}, namespace, "training-1").Spec.LostVolumes
		}, timeout).Should(Equal([]internalv1.VolumeIdentity{{Index: ptr.To(int32(0)), ID: lostVolume}}))
		awaitQuiet(namespace)
		Expect(exists(&internalv1.DataServer{}, namespace, "training-0").Spec.LostVolumes).To(BeEmpty())
	})
})

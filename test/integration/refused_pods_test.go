package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// failedCreate plays the controller of a StatefulSet or a Job whose pod the API server refuses.
func failedCreate(kind, namespace, name string, uid types.UID, message string) {
	GinkgoHelper()
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	create(&corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: name + "."},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name, UID: uid},
		Reason:         "FailedCreate", Type: corev1.EventTypeWarning, Message: message, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
}

var _ = Describe("Pods that the API server refuses", func() {
	var namespace string
	BeforeEach(func() { namespace = newNamespace() })

	It("are named in the FileServer's conditions, until they are made", func() {
		create(builders.FileServer(namespace, "training").Replicas(1).Build())
		set := exists(&appsv1.StatefulSet{}, namespace, "training")
		failedCreate("StatefulSet", namespace, "training", "another", "create Pod training-0 in StatefulSet training failed error: of an earlier StatefulSet")
		failedCreate("StatefulSet", namespace, "training", set.UID,
			`create Pod training-0 in StatefulSet training failed error: pods "training-0" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1`)
		Expect(expectCondition(namespace, "training", v1alpha1.FileServerServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonPodsRefused)).
			To(ContainSubstring("its pod is refused: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"))
		expectCondition(namespace, "training", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonPodsRefused)

		deployment := exists(&appsv1.Deployment{}, namespace, naming.NamespaceServers("training"))
		before := deployment.DeepCopy()
		deployment.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
			Message: `pods "training-namespace-7f-x7k2p" is forbidden: violates PodSecurity "restricted:latest"`,
		}}
		Expect(admin.Status().Patch(ctx, deployment, client.MergeFrom(before))).To(Succeed())
		Expect(expectCondition(namespace, "training", v1alpha1.FileServerNamespaceServersAvailable, metav1.ConditionFalse, v1alpha1.ReasonPodsRefused)).
			To(HaveSuffix(`a pod is refused: violates PodSecurity "restricted:latest"`))

		runEverything(namespace, "training")
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	})

	It("are named in the MLPerfStorageJob's conditions, until they are made", func() {
		readyBenchmarkShare(namespace)
		create(mlperfJob(namespace, "unet3d", "unet3d"))
		job := generating(namespace, "unet3d")
		failedCreate("Job", namespace, job.Name, job.UID, `Error creating: pods "unet3d-generate-0-x7k2p" is forbidden: exceeded quota: few`)
		Expect(expectJob(namespace, "unet3d", metav1.ConditionUnknown, v1alpha1.ReasonPodsRefused)).To(Equal("client pods are refused: exceeded quota: few"))

		clientPod(namespace, job.Name, "0", corev1.PodStatus{Phase: corev1.PodRunning})
		clientPod(namespace, job.Name, "1", corev1.PodStatus{Phase: corev1.PodRunning})
		expectJob(namespace, "unet3d", metav1.ConditionUnknown, v1alpha1.ReasonGeneratingDataset)
	})
})

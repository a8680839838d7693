package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/admissible"
	"github.com/howdah/howdah/test/builders"
)

// admitted reads an object as a user writes it, with the schema's defaults. It must pass the schema.
func admitted(namespace, text string, into any) {
	GinkgoHelper()
	object := parse(namespace, text)
	Expect(admin.Create(ctx, object, client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed(), text)
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)).To(Succeed())
}

// refusalsOf asks the API server which of the children it would refuse.
func refusalsOf(children ...runtime.ApplyConfiguration) (refusals []string) {
	GinkgoHelper()
	for _, child := range children {
		text, err := json.Marshal(child)
		Expect(err).NotTo(HaveOccurred())
		object := &unstructured.Unstructured{}
		Expect(json.Unmarshal(text, &object.Object)).To(Succeed())
		if err := admin.Create(ctx, object, client.DryRunAll); err != nil {
			refusals = append(refusals, err.Error())
		}
	}
	return refusals
}

// childrenOf are all pods' and Services' objects of a FileServer, the steward and the pod that pulls an image included.
func childrenOf(fs *v1alpha1.FileServer) (children []runtime.ApplyConfiguration) {
	in := desired.FileServerInput{
		FileServer: fs, Images: desired.Images{Server: serverImage, Howdah: howdahImage}, Replicas: 1, ImageOn: "node-a",
		Storage: backendapi.ServerStorage{Steward: &backendapi.Steward{Credential: "a", Secret: "b", Describe: func(*internalv1ac.StewardSpecApplyConfiguration) {}}},
	}
	for _, child := range desired.FileServer(in) {
		text, err := json.Marshal(child)
		Expect(err).NotTo(HaveOccurred())
		for _, kind := range []string{"StatefulSet", "Deployment", "Service"} {
			if strings.Contains(string(text), `"kind":"`+kind+`"`) {
				children = append(children, child)
			}
		}
	}
	return children
}

// ofPods are values that are copied into pods, right ones and wrong ones.
var ofPods = []string{
	// What is right stays right.
	"PLACEMENT: {nodeSelector: {disk: ssd, example.org/rack: \"\"}}",
	"PLACEMENT: {tolerations: [{operator: Exists}, {key: a, value: b}, {key: a.b/c, operator: Exists, effect: NoExecute, tolerationSeconds: 5}, {key: a, operator: Equal, value: \"\"}]}",
	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}, {key: c, operator: Gt, values: [\"7\"]}]}, {matchFields: [{key: metadata.name, operator: NotIn, values: [node-a]}]}, {}]}}}",
	"PLACEMENT: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: [{key: a, operator: DoesNotExist}]}}]}}",
	"PLACEMENT: {nodeAffinity: {}}",
	"PODS: {labels: {example.org/team: Training_1.x, empty: \"\"}, annotations: {example.org/Note: \"a b\\nc\", sidecar.istio.io/inject: \"false\"}}",
	"PODS: {annotations: {controller.kubernetes.io/pod-deletion-cost: \"-10\", seccomp.security.alpha.kubernetes.io/pod: runtime/default}}",
	"PODS: {imagePullSecrets: [{name: Pull Secret}], priorityClassName: system-node-critical}",
	"RESOURCES: {requests: {cpu: 1500m, memory: 1Gi, ephemeral-storage: 1Gi}, limits: {cpu: 2, memory: 1Gi, example.com/nic: 1, hugepages-2Mi: 4Mi}}",
	"RESOURCES: {requests: {example.com/nic: 1}, limits: {example.com/nic: 1}}",

	"PLACEMENT: {nodeSelector: {disk: my disk}}",
	"PLACEMENT: {nodeSelector: {\"my disk\": ssd}}",
	"PLACEMENT: {nodeSelector: {Example.org/disk: ssd}}",
	"PLACEMENT: {nodeSelector: {a/b/c: ssd}}",
	"PLACEMENT: {nodeSelector: {\"\": ssd}}",
	"PLACEMENT: {nodeSelector: {disk: " + strings.Repeat("a", 64) + "}}",

	"PLACEMENT: {tolerations: [{key: my taint, operator: Exists}]}",
	"PLACEMENT: {tolerations: [{key: a, value: b c}]}",
	"PLACEMENT: {tolerations: [{value: b}]}",
	"PLACEMENT: {tolerations: [{operator: Equal}]}",
	"PLACEMENT: {tolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 5}]}",
	"PLACEMENT: {tolerations: [{key: a, operator: Exists, tolerationSeconds: 5}]}",

	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}",
	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}",
	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists, values: [b]}]}]}}}",
	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: in, values: [b]}]}]}}}",
	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a b, operator: Exists}]}]}}}",
	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b, c d]}]}]}}}",
	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: [\"1\", \"2\"]}]}]}}}",
	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: spec.unschedulable, operator: In, values: [\"true\"]}]}]}}}",
	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}]}}}",
	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: Exists}]}]}}}",
	"PLACEMENT: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [Node 1]}]}]}}}",
	"PLACEMENT: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}",
	"PLACEMENT: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {}}]}}",
	"PLACEMENT: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: NotIn}]}}]}}",
	"PLACEMENT: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchFields: [{key: metadata.uid, operator: NotIn, values: [a]}]}}]}}",

	"PODS: {labels: {team: a team}}",
	"PODS: {labels: {a team: a}}",
	"PODS: {labels: {team: -a}}",
	"PODS: {annotations: {a note: a}}",
	"PODS: {annotations: {example.org/: a}}",
	"PODS: {annotations: {large: " + strings.Repeat("a", 256<<10) + "}}",
	"PODS: {annotations: {controller.kubernetes.io/pod-deletion-cost: low}}",
	"PODS: {annotations: {kubernetes.io/config.mirror: a}}",
	"PODS: {annotations: {seccomp.security.alpha.kubernetes.io/pod: unconfined}}",
	"PODS: {annotations: {seccomp.security.alpha.kubernetes.io/pod: none}}",
	"PODS: {annotations: {container.seccomp.security.alpha.kubernetes.io/x: none}}",
	"PODS: {annotations: {container.apparmor.security.beta.kubernetes.io/x: unconfined}}",
	"PODS: {annotations: {container.apparmor.security.beta.kubernetes.io/CONTAINER: unconfined}}",
	"PODS: {annotations: {container.apparmor.security.beta.kubernetes.io/CONTAINER: none}}",
	"PODS: {annotations: {scheduler.alpha.kubernetes.io/tolerations: none}}",
	"PODS: {labels: {job-name: a}}",
	"PODS: {labels: {batch.kubernetes.io/job-name: a}}",
	"PODS: {labels: {controller-uid: a}}",
	"PODS: {labels: {batch.kubernetes.io/controller-uid: a}}",
	"PODS: {labels: {statefulset.kubernetes.io/pod-name: a, pod-template-hash: a, controller-revision-hash: a, app.kubernetes.io/instance: a}}",

	"RESOURCES: {requests: {nvidia.com/gpu: 1}}",
	"RESOURCES: {requests: {example.com/nic: 1}, limits: {example.com/nic: 2}}",
	"RESOURCES: {limits: {example.com/nic: 500m}}",
	"RESOURCES: {limits: {gpu: 1}}",
	"RESOURCES: {limits: {storage: 1Gi}}",
	"RESOURCES: {limits: {kubernetes.io/nic: 1}}",
	"RESOURCES: {limits: {a b/c: 1}}",
	"RESOURCES: {limits: {requests.example.com/nic: 1}}",
	"RESOURCES: {requests: {cpu: -1}}",
	"RESOURCES: {limits: {ephemeral-storage: -1}}",
	"RESOURCES: {requests: {hugepages-2Mi: 4Mi}}",
	"RESOURCES: {limits: {hugepages-2Mi: 3Mi}}",
	"RESOURCES: {limits: {hugepages-x: 3Mi}}",
	"RESOURCES: {limits: {hugepages-2Mi: 4Mi}}",
}

// ofServices are values of network.loadBalancer.
var ofServices = []string{
	"{labels: {pool: a}, annotations: {example.org/Pool: \"a b\"}}",
	"{annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: \"10.0.0.0/8, 192.0.2.0/24\"}}",
	"{annotations: {service.kubernetes.io/topology-mode: Auto}}",
	"{annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: \"10.0.0.7/8\"}}",
	"{sourceRanges: [0.0.0.0/0, \"::/0\"]}",
	"{class: a.b/C}",

	"{labels: {pool: a b}}",
	"{labels: {a b: c}}",
	"{annotations: {a b: c}}",
	"{annotations: {large: " + strings.Repeat("a", 256<<10) + "}}",
	"{annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: all}}",
	"{annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: all}, sourceRanges: [10.0.0.0/8]}",
	"{annotations: {service.kubernetes.io/topology-mode: Auto, service.kubernetes.io/topology-aware-hints: Disabled}}",
}

// agree compares what is found in a specification with what the API server says of its children.
func agree(written string, found field.ErrorList, refusals []string) string {
	written = fmt.Sprintf("%.300s", written)
	switch {
	case len(found) == 0 && len(refusals) > 0:
		return fmt.Sprintf("%s\n  is not found, and the API server refuses it: %.400s", written, refusals[0])
	case len(found) > 0 && len(refusals) == 0:
		return fmt.Sprintf("%s\n  is found, and the API server takes it: %v", written, found)
	}
	return ""
}

var _ = Describe("Values that are copied into pods and Services", func() {
	It("are found wrong if the API server refuses them, and only then", func() {
		namespace := newNamespace()
		var wrong []string
		at := func(text, placement, resources, container string) string {
			return strings.NewReplacer("PLACEMENT", placement, "RESOURCES", resources, "PODS", "pods", "CONTAINER", container).Replace(text)
		}
		check := func(text string, refused []string, found field.ErrorList) {
			if fault := agree(text, found, refused); fault != "" {
				wrong = append(wrong, fault)
			}
		}
		ofFileServer := func(line string) {
			fs := &v1alpha1.FileServer{}
			admitted(namespace, fileServerYAML("fs", "size: 1Gi", line), fs)
			check(line, refusalsOf(childrenOf(fs)...), admissible.FileServer(&fs.Spec).All())
		}
		for _, text := range ofPods {
			ofFileServer(at(text, "placement", "resources", "server"))
			if !strings.HasPrefix(text, "PODS") {
				namespaced := strings.NewReplacer("PLACEMENT: ", "namespaceServers: {placement: ", "RESOURCES: ", "namespaceServers: {resources: ").Replace(text)
				ofFileServer(namespaced + "}")
			}
			job := &v1alpha1.MLPerfStorageJob{}
			line := at(text, "placement", "resources", "benchmark")
			admitted(namespace, jobYAML(twoH100, line), job)
			share := &v1alpha1.FileShare{Spec: v1alpha1.FileShareSpec{UID: ptr.To[int64](1), GID: ptr.To[int64](1)}}
			in := desired.BenchmarkJobInput{Job: job, Share: share, Image: howdahImage, Clients: 1}
			check("MLPerfStorageJob, "+line, refusalsOf(desired.BenchmarkGenerateJob(in), desired.BenchmarkRunJob(in)), admissible.Job(&job.Spec))
		}
		for _, text := range ofServices {
			ofFileServer("network: {loadBalancer: " + text + "}")
		}
		for _, line := range []string{"uid: 2147483647", "gid: 2147483647", "uid: 2147483648", "gid: 4294967294"} {
			job, share := &v1alpha1.MLPerfStorageJob{}, &v1alpha1.FileShare{}
			admitted(namespace, jobYAML(twoH100), job)
			admitted(namespace, fileShareYAML("data", "/data", line), share)
			in := desired.BenchmarkJobInput{Job: job, Share: share, Image: howdahImage, Clients: 1}
			check("FileShare of a job, "+line, refusalsOf(desired.BenchmarkGenerateJob(in)), admissible.Owner(&share.Spec))
		}
		slices.Sort(wrong)
		Expect(wrong).To(BeEmpty(), strings.Join(wrong, "\n"))
	})
})

var _ = Describe("A FileServer with a value that its pods can't have", func() {
	const bad = `spec.placement.nodeSelector[disk]: "my disk" can't be used: a valid label must be an empty string`
	set := func(disk string) func(*v1alpha1.FileServer) {
		return func(fs *v1alpha1.FileServer) {
			fs.Spec.Placement = &v1alpha1.Placement{NodeSelector: map[string]string{"disk": disk}}
		}
	}

	It("reports it at once, and gets its pods when the value is corrected", func() {
		namespace := newNamespace()
		create(parse(namespace, fileServerYAML("training", "size: 1Gi", "replicas: 1", "placement: {nodeSelector: {disk: my disk}}")))
		Expect(expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec)).To(HavePrefix(bad))
		expectCondition(namespace, "training", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonInvalidSpec)
		exists(&appsv1.Deployment{}, namespace, "training-namespace")
		exists(&corev1.Service{}, namespace, "training-0")
		awaitQuiet(namespace)
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "training"}, &appsv1.StatefulSet{}))).To(BeTrue())

		change(exists(&v1alpha1.FileServer{}, namespace, "training"), set("ssd"))
		Expect(exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Spec.NodeSelector).To(Equal(map[string]string{"disk": "ssd"}))
		Eventually(func() string { return fileServerCondition(namespace, "training", v1alpha1.ConditionReady).Reason }, timeout).ShouldNot(Equal(v1alpha1.ReasonInvalidSpec))
	})

	It("keeps what it has, though fewer servers are asked for at the same time", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 2)
		before := exists(&appsv1.StatefulSet{}, namespace, "training")
		change(exists(&v1alpha1.FileServer{}, namespace, "training"), func(fs *v1alpha1.FileServer) {
			set("my disk")(fs)
			fs.Spec.Replicas = 1
		})
		Expect(expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec)).To(HavePrefix(bad))
		Expect(expectCondition(namespace, "training", v1alpha1.FileServerServersUpdated, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec)).To(ContainSubstring("keep their pods"))
		awaitQuiet(namespace)
		after := exists(&appsv1.StatefulSet{}, namespace, "training")
		Expect(after.Spec).To(Equal(before.Spec))
		for _, name := range []string{"training-0", "training-1"} {
			Expect(exists(&internalv1.DataServer{}, namespace, name).DeletionTimestamp).To(BeNil())
			Expect(exists(&corev1.Service{}, namespace, name).DeletionTimestamp).To(BeNil())
		}

		By("following the rest of the specification meanwhile")
		change(exists(&v1alpha1.FileServer{}, namespace, "training"), func(fs *v1alpha1.FileServer) { fs.Spec.NamespaceServers.Replicas = 3 })
		Eventually(func() int32 { return *exists(&appsv1.Deployment{}, namespace, "training-namespace").Spec.Replicas }, timeout).Should(Equal(int32(3)))

		By("going on when it is corrected")
		change(exists(&v1alpha1.FileServer{}, namespace, "training"), set("ssd"))
		Eventually(func() map[string]string {
			return exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Spec.NodeSelector
		}, timeout).Should(Equal(map[string]string{"disk": "ssd"}))
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "training-1"}, &internalv1.DataServer{}))
		}, timeout).Should(BeTrue())
	})

	It("names the family that Services of this cluster lack, keeps the Services that it has, and goes on with all else", func() {
		namespace := newNamespace()
		policy := func(policy corev1.IPFamilyPolicy) func(*v1alpha1.FileServer) {
			return func(fs *v1alpha1.FileServer) { fs.Spec.Network.LoadBalancer.IPFamilyPolicy = policy }
		}
		create(builders.FileServer(namespace, "training").Replicas(1).LoadBalancer(v1alpha1.LoadBalancer{IPFamilyPolicy: corev1.IPFamilyPolicyRequireDualStack}).Build())
		const lacks = `spec.network.loadBalancer.ipFamilyPolicy: "RequireDualStack" can't be used: Services of this cluster have IPv4 addresses only: use PreferDualStack, or have`
		Expect(expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec)).To(HavePrefix(lacks))
		expectCondition(namespace, "training", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonInvalidSpec)
		runNamespaceServers(namespace, "training")
		runDataServers(namespace, "training")
		awaitQuiet(namespace)
		outside := client.ObjectKey{Namespace: namespace, Name: "training-0-outside"}
		Expect(apierrors.IsNotFound(admin.Get(ctx, outside, &corev1.Service{}))).To(BeTrue())

		By("having them when it is corrected")
		fs := exists(&v1alpha1.FileServer{}, namespace, "training")
		change(fs, policy(corev1.IPFamilyPolicyPreferDualStack))
		made := exists(&corev1.Service{}, namespace, "training-0-outside")
		Expect(made.Spec.IPFamilies).To(Equal([]corev1.IPFamily{corev1.IPv4Protocol}))
		balance(namespace, "training-0-outside", "192.0.2.10")
		balance(namespace, "training-outside", "192.0.2.9")
		addresses := func() []string {
			return exists(&internalv1.DataServer{}, namespace, "training-0").Spec.OutsideAddresses
		}
		Eventually(addresses, timeout).Should(Equal([]string{"192.0.2.10"}))
		expectCondition(namespace, "training", v1alpha1.FileServerOutsideAddressesAvailable, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Eventually(func() string { return fileServerCondition(namespace, "training", v1alpha1.ConditionReady).Reason }, timeout).ShouldNot(Equal(v1alpha1.ReasonInvalidSpec))

		By("keeping them when it is wrong again, and following the rest of the specification")
		change(fs, func(fs *v1alpha1.FileServer) {
			policy(corev1.IPFamilyPolicyRequireDualStack)(fs)
			fs.Spec.NamespaceServers.Replicas = 3
		})
		Expect(expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec)).To(HavePrefix(lacks))
		Eventually(func() int32 { return *exists(&appsv1.Deployment{}, namespace, "training-namespace").Spec.Replicas }, timeout).Should(Equal(int32(3)))
		awaitQuiet(namespace)
		kept := exists(&corev1.Service{}, namespace, "training-0-outside")
		Expect(kept.UID).To(Equal(made.UID))
		Expect(kept.Spec).To(Equal(made.Spec))
		Expect(addresses()).To(Equal([]string{"192.0.2.10"}))
		Expect(fileServerCondition(namespace, "training", v1alpha1.FileServerOutsideAddressesAvailable).Status).To(Equal(metav1.ConditionTrue))

		By("leaving the policy out: the API server would keep the one before")
		change(fs, policy(""))
		Eventually(func() *corev1.IPFamilyPolicy {
			return exists(&corev1.Service{}, namespace, "training-0-outside").Spec.IPFamilyPolicy
		}, timeout).
			Should(HaveValue(Equal(corev1.IPFamilyPolicySingleStack)))
	})

	It("keeps its pods' annotations for the container of the pod that pulls an image, too", func() {
		namespace := newNamespace()
		fs := &v1alpha1.FileServer{}
		admitted(namespace, fileServerYAML("fs", "size: 1Gi", "pods: {annotations: {container.apparmor.security.beta.kubernetes.io/server: unconfined}}"), fs)
		Expect(refusalsOf(childrenOf(fs)...)).To(BeEmpty())
	})
})

var _ = Describe("An MLPerfStorageJob with a value that its pods can't have", func() {
	It("ends before anything is made for it, and before its share is there", func() {
		namespace := newNamespace()
		create(parse(namespace, jobYAML(twoH100, "placement: {tolerations: [{value: benchmark}]}")))
		message := expectJob(namespace, "unet3d", metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec)
		Expect(message).To(HavePrefix("spec.placement.tolerations[0].key: a toleration without a key must have the operator Exists"))
		Expect(jobStatus(namespace, "unet3d").CompletionTime).NotTo(BeNil())
	})

	It("ends if its share has an owner that no pod can have", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 1)
		create(parse(namespace, fileShareYAML("data", "/data", "uid: 3000000000")))
		readyShare(namespace, "data")
		create(parse(namespace, jobYAML(twoH100)))
		message := expectJob(namespace, "unet3d", metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec)
		Expect(message).To(HavePrefix(`FileShare data: spec.uid: "3000000000" can't be used: must be between 0 and 2147483647`))
	})
})

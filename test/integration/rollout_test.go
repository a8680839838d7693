package integration

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/fileserver"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// rollingSet plays the controllers of StatefulSets and of disruption budgets for the data servers of a FileServer.
type rollingSet struct{ namespace, fileServer string }

func (r rollingSet) pod(name string) *corev1.Pod {
	GinkgoHelper()
	return exists(&corev1.Pod{}, r.namespace, name)
}

// observe has the controller see the StatefulSet as it is: which revision is the newest, and which was the last that all pods had.
func (r rollingSet) observe(current, update string) *appsv1.StatefulSet {
	GinkgoHelper()
	set := exists(&appsv1.StatefulSet{}, r.namespace, r.fileServer)
	var pods corev1.PodList
	Expect(admin.List(ctx, &pods, client.InNamespace(r.namespace), client.MatchingLabels(naming.SelectDataServers(r.fileServer)))).To(Succeed())
	before, updated := set.DeepCopy(), int32(0)
	for i := range pods.Items {
		if pods.Items[i].Labels[appsv1.StatefulSetRevisionLabel] == update {
			updated++
		}
	}
	replicas := int32(len(pods.Items))
	set.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, Replicas: replicas, ReadyReplicas: replicas, UpdatedReplicas: updated, CurrentRevision: current, UpdateRevision: update,
	}
	Expect(admin.Status().Patch(ctx, set, client.MergeFrom(before))).To(Succeed())
	return set
}

// start runs everything with one revision.
func (r rollingSet) start(replicas int32, revision string) {
	GinkgoHelper()
	create(builders.FileServer(r.namespace, r.fileServer).Replicas(replicas).Build())
	runEverything(r.namespace, r.fileServer)
	for ordinal := range replicas {
		change(r.pod(naming.DataServer(r.fileServer, ordinal)), func(p *corev1.Pod) { p.Labels[appsv1.StatefulSetRevisionLabel] = revision })
	}
	r.observe(revision, revision)
	expectCondition(r.namespace, r.fileServer, v1alpha1.FileServerServersUpdated, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

// allow lets the budget have one pod evicted.
func (r rollingSet) allow(disruptions int32) {
	GinkgoHelper()
	budget := exists(&policyv1.PodDisruptionBudget{}, r.namespace, naming.DataServerAccount(r.fileServer))
	before := budget.DeepCopy()
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptionsAllowed: disruptions, CurrentHealthy: 3, DesiredHealthy: 3 - disruptions, ExpectedPods: 3,
	}
	Expect(admin.Status().Patch(ctx, budget, client.MergeFrom(before))).To(Succeed())
}

func (r rollingSet) strategyBecomes(want appsv1.StatefulSetUpdateStrategyType) {
	GinkgoHelper()
	Eventually(func() appsv1.StatefulSetUpdateStrategyType {
		return exists(&appsv1.StatefulSet{}, r.namespace, r.fileServer).Spec.UpdateStrategy.Type
	}, timeout).Should(Equal(want))
}

func (r rollingSet) stopping(name string) func() bool {
	return func() bool { return r.pod(name).DeletionTimestamp != nil }
}

// replaced waits until the pod is stopped, lets it end, and makes the next one. It returns after the kubelet and the supervisor have reported,
// with clients that still reclaim their state.
func (r rollingSet) replaced(name, current, update string, runs bool) {
	GinkgoHelper()
	Eventually(r.stopping(name), timeout).Should(BeTrue())
	old := r.pod(name)
	Expect(admin.Delete(ctx, old, client.GracePeriodSeconds(0))).To(Succeed())
	r.strategyBecomes(appsv1.OnDeleteStatefulSetStrategyType)
	set := r.observe(current, update)
	r.answers(name, runs)
	if runs {
		r.inGrace(name, true)
		runPod(r.namespace, name, withClaims(set, name), map[string]string{
			appsv1.StatefulSetPodNameLabel: name, appsv1.StatefulSetRevisionLabel: update,
		}, old.Spec.NodeName, "10.1.0.99")
	} else {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name, Labels: old.Labels}, Spec: withClaims(set, name).Spec}
		pod.Labels[appsv1.StatefulSetRevisionLabel] = update
		pod.Spec.NodeName = old.Spec.NodeName
		create(pod)
		before := pod.DeepCopy()
		pod.Status.Phase = corev1.PodPending
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "server", Image: "x", ImageID: "x",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"}},
		}}
		Expect(admin.Status().Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
	}
	r.observe(current, update)
	r.strategyBecomes(appsv1.RollingUpdateStatefulSetStrategyType)
	r.observe(current, update)
	loadConfigurations(r.namespace, r.fileServer)
}

// answers is what the namespace servers report of a data server. One whose pod does not serve does not answer.
func (r rollingSet) answers(name string, does bool) {
	GinkgoHelper()
	server := exists(&internalv1.DataServer{}, r.namespace, name)
	before := server.DeepCopy()
	server.Status.Unreachable = internalv1.Unreachable{}
	if !does {
		since := metav1.Now()
		server.Status.Unreachable = internalv1.Unreachable{SinceTime: &since, SeenBy: r.fileServer + "-namespace"}
	}
	Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
}

func (r rollingSet) inGrace(name string, is bool) {
	GinkgoHelper()
	server := exists(&internalv1.DataServer{}, r.namespace, name)
	before := server.DeepCopy()
	c := conditions.True(internalv1.GraceEnded, v1alpha1.ReasonReady, "clients may open files")
	if is {
		c = conditions.False(internalv1.GraceEnded, internalv1.ReasonInGrace, "clients reclaim")
	}
	conditions.Set(&server.Status.Conditions, server.Generation, metav1.Now().Time, c)
	Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
}

// asEarlierVersion makes a StatefulSet again as a version of the operator without rollouts has made it: with another template, without a record,
// and with a strategy that names no partition.
func asEarlierVersion(set *appsv1.StatefulSet) {
	GinkgoHelper()
	delete(set.Annotations, v1alpha1.RolloutAnnotation)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	object.SetUID("")
	unstructured.RemoveNestedField(object.Object, "status")
	Expect(unstructured.SetNestedField(object.Object, int64(0), "spec", "template", "spec", "terminationGracePeriodSeconds")).To(Succeed())
	Expect(unstructured.SetNestedMap(object.Object, map[string]any{"type": "RollingUpdate"}, "spec", "updateStrategy")).To(Succeed())
	Expect(admin.Delete(ctx, set)).To(Succeed())
	Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fileserver.FieldManager), client.ForceOwnership)).To(Succeed())
}

var _ = Describe("A change of the data servers' pods", func() {
	var namespace string
	BeforeEach(func() {
		namespace = newNamespace()
		for _, name := range []string{"node-a", "node-b", "node-c"} {
			changeNode(name, boot("boot-1-"+name))
		}
	})

	It("reaches one at a time, stops at one that does not serve, and is taken back without a hand at a pod", func() {
		r := rollingSet{namespace, "training"}
		r.start(3, "r1")
		set := exists(&appsv1.StatefulSet{}, namespace, "training")
		Expect(*set.Spec.UpdateStrategy.RollingUpdate.Partition).To(BeNumerically(">", 64), "the StatefulSet's controller replaces no pod by itself")

		By("changing what ganesha reloads, or reads at its next start")
		change(&v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "training"}}, func(fs *v1alpha1.FileServer) {
			fs.Spec.NFS = &v1alpha1.NFSOptions{LeaseSeconds: 15, GraceSeconds: 45, MaxConnections: 128}
			fs.Spec.AdditionalNodeNetworks = []string{"10.77.0.0/16"}
		})
		Eventually(func() int32 { return exists(&internalv1.DataServer{}, namespace, "training-0").Spec.GraceSeconds }, timeout).Should(BeEquivalentTo(45))
		Expect(exists(&appsv1.StatefulSet{}, namespace, "training").Generation).To(Equal(set.Generation), "no pod is another one")

		Eventually(func() metav1.ConditionStatus {
			loadConfigurations(namespace, "training")
			return fileServerCondition(namespace, "training", v1alpha1.ConditionReady).Status
		}, timeout).Should(Equal(metav1.ConditionTrue))

		By("changing the pods: the highest goes first, when the budget lets it")
		setCPU := func(cpu string) {
			change(&v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "training"}}, func(fs *v1alpha1.FileServer) {
				fs.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
			})
			Eventually(func() string {
				return exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String()
			}, timeout).Should(Equal(cpu))
		}
		setCPU("250m")
		r.allow(0)
		r.observe("r1", "r2")
		r.strategyBecomes(appsv1.OnDeleteStatefulSetStrategyType)
		r.observe("r1", "r2")
		expectCondition(namespace, "training", v1alpha1.FileServerServersUpdated, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		Consistently(func() bool {
			return slices.ContainsFunc([]string{"training-0", "training-1", "training-2"}, func(name string) bool { return r.stopping(name)() })
		}, "1s").Should(BeFalse(), "a drain has taken one")
		Expect(fileServerCondition(namespace, "training", v1alpha1.FileServerServersUpdated).Message).
			To(ContainSubstring("PodDisruptionBudget training-data lets no pod of a data server go now"))
		Expect(fileServerCondition(namespace, "training", v1alpha1.FileServerServersAvailable).Status).To(Equal(metav1.ConditionTrue), "all serve")
		r.allow(1)
		r.replaced("training-2", "r1", "r2", true)

		By("waiting for the clients that reclaim")
		r.allow(1)
		Eventually(func() string {
			return fileServerCondition(namespace, "training", v1alpha1.FileServerServersUpdated).Message
		}, timeout).
			Should(And(ContainSubstring("2 data servers with earlier pods: training-0, training-1"), ContainSubstring("training-2 (its clients reclaim")))
		Consistently(r.stopping("training-1"), "1s").Should(BeFalse())
		r.inGrace("training-2", false)
		r.strategyBecomes(appsv1.OnDeleteStatefulSetStrategyType)
		r.observe("r1", "r2")

		By("having a pod whose image can't be pulled")
		r.replaced("training-1", "r1", "r2", false)
		r.allow(1)
		message := expectCondition(namespace, "training", v1alpha1.FileServerServersUpdated, metav1.ConditionFalse, v1alpha1.ReasonRolloutStopped)
		Expect(message).To(And(ContainSubstring("data server training-1"), ContainSubstring("image "+serverImage), ContainSubstring("ImagePullBackOff"), ContainSubstring("take the change back")))
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRolloutStopped)
		Eventually(func() []eventsv1.Event {
			var list eventsv1.EventList
			Expect(admin.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
			return list.Items
		}, timeout).Should(And(
			ContainElement(And(HaveField("Reason", v1alpha1.ReasonRolloutStopped), HaveField("Type", corev1.EventTypeWarning))),
			ContainElement(And(HaveField("Reason", "DataServerReplaced"), HaveField("Note", ContainSubstring("training-1"))))))
		Consistently(r.stopping("training-0"), "1s").Should(BeFalse(), "it stops at the first")

		By("taking the change back: the broken one is first, then the one that serves")
		setCPU("100m")
		r.observe("r1", "r1")
		r.strategyBecomes(appsv1.OnDeleteStatefulSetStrategyType)
		r.observe("r1", "r1")
		Eventually(r.stopping("training-1"), timeout).Should(BeTrue())
		Expect(r.stopping("training-2")()).To(BeFalse())
		r.replaced("training-1", "r1", "r1", true)
		r.inGrace("training-1", false)
		r.strategyBecomes(appsv1.OnDeleteStatefulSetStrategyType)
		r.allow(1)
		r.observe("r1", "r1")
		r.replaced("training-2", "r1", "r1", true)
		r.inGrace("training-2", false)
		expectCondition(namespace, "training", v1alpha1.FileServerServersUpdated, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Expect(r.stopping("training-0")()).To(BeFalse(), "it had the right one all the time")
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		awaitQuiet(namespace)
	})

	It("leaves data servers whose volumes are on cordoned nodes, and takes them when the nodes are back", func() {
		r := rollingSet{namespace, "training"}
		r.start(2, "r1")
		const last = "training-1"
		claim := exists(&corev1.PersistentVolumeClaim{}, namespace, naming.VolumeClaim("training", 1, 0))
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "of-" + namespace}, Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/volume"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-b"}}},
			}}}},
		}}
		create(volume)
		DeferCleanup(func() { Expect(admin.Delete(ctx, volume)).To(Succeed()) })
		change(claim, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume.Name })
		Expect(r.pod(last).Spec.NodeName).To(Equal("node-b"))
		server := exists(&internalv1.DataServer{}, namespace, last)
		before := server.DeepCopy()
		server.Status.NodeName = "node-b"
		Expect(admin.Status().Patch(ctx, server, client.MergeFrom(before))).To(Succeed())
		cordon := func(is bool) {
			change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-b"}}, func(n *corev1.Node) { n.Spec.Unschedulable = is })
		}
		cordon(true)
		DeferCleanup(cordon, false)
		change(&v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "training"}}, func(fs *v1alpha1.FileServer) {
			fs.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}}
		})
		Eventually(func() string {
			return exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String()
		}, timeout).Should(Equal("250m"))
		r.allow(1)
		r.observe("r1", "r2")
		r.strategyBecomes(appsv1.OnDeleteStatefulSetStrategyType)
		r.observe("r1", "r2")
		r.replaced("training-0", "r1", "r2", true)
		r.inGrace("training-0", false)
		message := expectCondition(namespace, "training", v1alpha1.FileServerServersUpdated, metav1.ConditionFalse, v1alpha1.ReasonRolloutWaiting)
		Expect(message).To(ContainSubstring("training-1 (its volume is on node node-b only, which takes no pod now"))
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Expect(r.stopping(last)()).To(BeFalse())

		By("uncordoning the node")
		cordon(false)
		r.strategyBecomes(appsv1.OnDeleteStatefulSetStrategyType)
		r.observe("r1", "r2")
		r.allow(1)
		Eventually(r.stopping(last), timeout).Should(BeTrue())
	})

	It("by a new operator reaches one FileServer at a time", func() {
		one, two := rollingSet{namespace, "one"}, rollingSet{namespace, "two"}
		pause := func(name, value string) {
			change(&v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, func(fs *v1alpha1.FileServer) {
				if fs.Annotations == nil {
					fs.Annotations = map[string]string{}
				}
				fs.Annotations[v1alpha1.PausedAnnotation] = value
			})
		}
		for _, r := range []rollingSet{one, two} {
			r.start(2, "r1")
			r.allow(1)
			pause(r.fileServer, v1alpha1.PausedTrue)
			expectCondition(namespace, r.fileServer, v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused)
		}
		By("having StatefulSets as another version of the operator has left them")
		for _, r := range []rollingSet{one, two} {
			asEarlierVersion(exists(&appsv1.StatefulSet{}, namespace, r.fileServer))
			pause(r.fileServer, "false")
			Eventually(func() string {
				return exists(&appsv1.StatefulSet{}, namespace, r.fileServer).Annotations[v1alpha1.RolloutAnnotation]
			}, timeout).Should(HaveSuffix(" Operator"))
			By("seeing that " + r.fileServer + " is the operator's to change")
			r.observe("r1", "r2")
		}
		By("waiting until one of them begins")
		first, second := one, two
		Eventually(func() appsv1.StatefulSetUpdateStrategyType {
			for _, r := range []rollingSet{one, two} {
				r.observe("r1", "r2")
				if r.stopping(r.fileServer + "-1")() {
					first = r
					return exists(&appsv1.StatefulSet{}, namespace, r.fileServer).Spec.UpdateStrategy.Type
				}
			}
			return ""
		}, timeout).Should(Equal(appsv1.OnDeleteStatefulSetStrategyType))
		if first == two {
			second = one
		}
		second.observe("r1", "r2") // It may have been about to begin.
		message := expectCondition(namespace, second.fileServer, v1alpha1.FileServerServersUpdated, metav1.ConditionFalse, v1alpha1.ReasonRolloutWaiting)
		Expect(message).To(ContainSubstring("FileServer " + namespace + "/" + first.fileServer + " is not done"))
		Expect(fileServerCondition(namespace, second.fileServer, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue))

		By("writing down whose turn it is, for an operator that is restarted")
		inTurn := func(r rollingSet) bool {
			return exists(&appsv1.StatefulSet{}, namespace, r.fileServer).Annotations[v1alpha1.RolloutTurnAnnotation] == v1alpha1.RolloutTurnTaken
		}
		Expect(inTurn(first)).To(BeTrue())
		Expect(inTurn(second)).To(BeFalse())

		By("finishing the first")
		first.replaced(first.fileServer+"-1", "r1", "r2", true)
		first.inGrace(first.fileServer+"-1", false)
		first.strategyBecomes(appsv1.OnDeleteStatefulSetStrategyType)
		first.allow(1)
		first.observe("r1", "r2")
		first.replaced(first.fileServer+"-0", "r1", "r2", true)
		first.inGrace(first.fileServer+"-0", false)
		Consistently(second.stopping(second.fileServer+"-1"), "1s").Should(BeFalse())
		first.observe("r2", "r2")
		expectCondition(namespace, first.fileServer, v1alpha1.FileServerServersUpdated, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Eventually(func() bool {
			second.observe("r1", "r2") // Whatever the operator applies.
			return second.stopping(second.fileServer + "-1")()
		}, timeout).Should(BeTrue())
		Expect(inTurn(second)).To(BeTrue())
		Eventually(func() bool { return inTurn(first) }, timeout).Should(BeFalse())
	})
})

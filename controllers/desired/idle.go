package desired

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// offLostNodes keeps pods off nodes that have one of the FileServer's pods for lost nodes (LostNodePod). It is there before a node
// is lost, because a change of the template would replace all pods. FileServers without a steward have no failover.
func offLostNodes(in FileServerInput, affinity *corev1ac.AffinityApplyConfiguration) *corev1ac.AffinityApplyConfiguration {
	if in.Storage.Steward == nil {
		return affinity
	}
	if affinity.PodAntiAffinity == nil {
		affinity.WithPodAntiAffinity(corev1ac.PodAntiAffinity())
	}
	affinity.PodAntiAffinity.WithRequiredDuringSchedulingIgnoredDuringExecution(corev1ac.PodAffinityTerm().
		WithTopologyKey(corev1.LabelHostname).
		WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(naming.SelectLostNodes(in.name()))))
	return affinity
}

// LostNodePod is a pod on a lost node that does nothing. The scheduler counts it although its kubelet does not answer, so it keeps
// the FileServer's other pods off the node, and takes no right to change nodes. It must be there before the lost pod is deleted:
// the API calls a node Ready for some 40 s after it is lost.
func LostNodePod(fs *v1alpha1.FileServer, images Images, node string) *corev1.Pod {
	var secrets []corev1.LocalObjectReference
	for _, name := range images.PullSecrets {
		secrets = append(secrets, corev1.LocalObjectReference{Name: name})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fs.Namespace, Name: naming.LostNode(fs.Name, node), Labels: labels(naming.SelectLostNodes(fs.Name)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(fs, v1alpha1.GroupVersion.WithKind("FileServer"))},
		},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			ImagePullSecrets:              secrets,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](nonRoot), RunAsGroup: ptr.To[int64](nonRoot),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "idle", Image: images.Howdah, Args: []string{serverpod.IdleCommand},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("8Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
				},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// ImageDeployment has a node pull the image of the data servers before a data server there is stopped for it. Its pod does nothing. Until the
// pod is there it is not known whether the image can be pulled at all. It goes through the scheduler, and tolerates what the data server does, and a
// cordon: a Deployment whose pods name their node, or tolerate that its disk is full, makes one after the other if the kubelet refuses them.
func ImageDeployment(in FileServerInput, node string) *appsv1ac.DeploymentApplyConfiguration {
	name, selector := naming.Image(in.name(), node, in.Images.Server), naming.SelectImages(in.name())
	selector[instanceLabel] = name // No two Deployments may select the same pods.
	pod := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(1).
		WithTolerations(corev1ac.Toleration().WithKey(corev1.TaintNodeUnschedulable).WithOperator(corev1.TolerationOpExists).WithEffect(corev1.TaintEffectNoSchedule)).
		WithAffinity(corev1ac.Affinity().WithNodeAffinity(corev1ac.NodeAffinity().WithRequiredDuringSchedulingIgnoredDuringExecution(
			corev1ac.NodeSelector().WithNodeSelectorTerms(corev1ac.NodeSelectorTerm().WithMatchFields(corev1ac.NodeSelectorRequirement().
				WithKey(metav1.ObjectNameField).WithOperator(corev1.NodeSelectorOpIn).WithValues(node)))))).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(nonRoot).WithRunAsGroup(nonRoot).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(corev1ac.Container().
			WithName(naming.ServerContainer).
			WithImage(in.Images.Server).
			WithArgs(serverpod.IdleCommand).
			WithResources(corev1ac.ResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("8Mi")}).
				WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")})).
			WithSecurityContext(corev1ac.SecurityContext().
				WithAllowPrivilegeEscalation(false).
				WithReadOnlyRootFilesystem(true).
				WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))))
	if placement := in.FileServer.Spec.Placement; placement != nil {
		for i := range placement.Tolerations {
			pod.WithTolerations(applied[corev1ac.TolerationApplyConfiguration](&placement.Tolerations[i]))
		}
	}
	return appsv1ac.Deployment(name, in.namespace()).
		WithLabels(labels(selector)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(1).
			WithRevisionHistoryLimit(0).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
			WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)).
			WithTemplate(podTemplate(selector, in.FileServer.Spec.Pods, in.Images.PullSecrets, pod)))
}

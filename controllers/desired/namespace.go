package desired

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// nonRoot is the user of the namespace servers. It owns no files.
const nonRoot = 65532

// nodeLostSeconds is how long a namespace server stays on a node that does not answer. It has no state, so a
// replacement on another node is better at once; the default of Kubernetes is 300 s.
const nodeLostSeconds = 10

// NamespaceServerDeployment is the Deployment of the namespace servers. A new pod is ready before an old one is
// removed, so that clients always find a server.
func NamespaceServerDeployment(in FileServerInput) *appsv1ac.DeploymentApplyConfiguration {
	selector := naming.SelectNamespaceServers(in.name())
	return appsv1ac.Deployment(naming.NamespaceServers(in.name()), in.namespace()).
		WithLabels(labels(selector)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(NamespaceReplicas(in.FileServer)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
			WithStrategy(appsv1ac.DeploymentStrategy().
				WithType(appsv1.RollingUpdateDeploymentStrategyType).
				WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
					WithMaxUnavailable(intstr.FromInt32(0)).
					WithMaxSurge(intstr.FromInt32(1)))).
			WithTemplate(withCertificatesLost(in, podTemplate(selector, in.FileServer.Spec.Pods, in.Images.PullSecrets, namespaceServerPod(in, selector)))))
}

func namespaceServerPod(in FileServerInput, selector map[string]string) *corev1ac.PodSpecApplyConfiguration {
	lost := func(key string) *corev1ac.TolerationApplyConfiguration {
		return corev1ac.Toleration().WithKey(key).WithOperator(corev1.TolerationOpExists).
			WithEffect(corev1.TaintEffectNoExecute).WithTolerationSeconds(nodeLostSeconds)
	}
	pod := corev1ac.PodSpec().
		WithServiceAccountName(naming.NamespaceServers(in.name())).
		WithAutomountServiceAccountToken(true).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(10).
		WithTolerations(lost(corev1.TaintNodeNotReady), lost(corev1.TaintNodeUnreachable)).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(nonRoot).WithRunAsGroup(nonRoot).WithFSGroup(nonRoot).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)))
	container := corev1ac.Container().
		WithName(naming.ServerContainer).
		WithImage(in.Images.Howdah).
		WithArgs(namespaceArgs(in)...).
		WithEnv(downwardEnv()...).
		WithPorts(namespacePorts(in)...).
		WithLivenessProbe(probe(serverpod.HealthPath, 10, 5, 6)).
		WithReadinessProbe(probe(serverpod.ReadyPath, 1, 2, 2)).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
	resources := namespaceServerResources(in.FileServer)
	container.WithResources(applied[corev1ac.ResourceRequirementsApplyConfiguration](&resources))
	withNamespaceServerCertificates(in, pod, container)
	pod.WithContainers(container)
	var placement *v1alpha1.Placement
	if door := in.FileServer.Spec.NamespaceServers; door != nil {
		placement = door.Placement
	}
	place(pod, selector, placement)
	offLostNodes(in, pod.Affinity)
	return pod
}

// namespacePorts are the ports of a namespace server.
func namespacePorts(in FileServerInput) []*corev1ac.ContainerPortApplyConfiguration {
	ports := []*corev1ac.ContainerPortApplyConfiguration{
		containerPort(portNFS, v1alpha1.NFSPort), containerPort(portManager, v1alpha1.ManagerPort), containerPort(portWaiting, v1alpha1.WaitingRoomPort),
	}
	if HasOutside(in.FileServer) {
		ports = append(ports, containerPort(portNFSOutside, v1alpha1.NFSOutsidePort))
	}
	return ports
}

// namespaceArgs are the arguments of a namespace server.
func namespaceArgs(in FileServerInput) []string {
	args := []string{
		"namespace", "--file-server=" + in.name(),
		"--identity=" + naming.NamespaceServerIdentity(string(in.FileServer.UID)),
	}
	if door := in.FileServer.Spec.NamespaceServers; door != nil && door.MaxWaitSeconds != 0 {
		args = append(args, fmt.Sprintf("--max-wait=%ds", door.MaxWaitSeconds))
	}
	if HasOutside(in.FileServer) {
		args = append(args, fmt.Sprintf("--listen-outside=:%d", v1alpha1.NFSOutsidePort))
	}
	return args
}

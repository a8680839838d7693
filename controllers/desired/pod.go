package desired

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// downwardEnv gives a container the names of its pod, node and namespace, under the names in internal/serverpod.
func downwardEnv() []*corev1ac.EnvVarApplyConfiguration {
	return []*corev1ac.EnvVarApplyConfiguration{
		fieldEnv(serverpod.EnvDataServer, "metadata.name"),
		fieldEnv(serverpod.EnvNamespace, "metadata.namespace"),
		fieldEnv(serverpod.EnvPodIP, "status.podIP"),
		fieldEnv(serverpod.EnvNodeName, "spec.nodeName"),
	}
}

func fieldEnv(name, path string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().
		WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath(path)))
}

// probe asks the manager port. Periods and timeouts are in seconds.
func probe(path string, period, timeout, failures int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString(portManager))).
		WithPeriodSeconds(period).WithTimeoutSeconds(timeout).WithFailureThreshold(failures)
}

func containerPort(name string, port int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)
}

// apart prefers nodes without another pod of the selector, through both mechanisms of the scheduler. Together they
// outweigh its preference for nodes that already have the image.
//
// It is a preference on purpose. A hard rule (DoNotSchedule) looks safer and is not: volumes may be local to nodes, and
// then a data server can return only to its own node. With two servers on each of two nodes, a third node that joins
// makes the skew of any restarted server 2, and it would never start again. A hard rule would also keep a server off
// the last nodes after a failure. The price is that servers can share a node; the status says so if there are fewer
// nodes than servers.
func apart(selector map[string]string, placement *v1alpha1.Placement) (*corev1ac.TopologySpreadConstraintApplyConfiguration, *corev1ac.AffinityApplyConfiguration) {
	match := metav1ac.LabelSelector().WithMatchLabels(selector)
	key := topologyKey(placement)
	spread := corev1ac.TopologySpreadConstraint().
		WithMaxSkew(1).
		WithTopologyKey(key).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(match)
	affinity := corev1ac.Affinity().WithPodAntiAffinity(corev1ac.PodAntiAffinity().
		WithPreferredDuringSchedulingIgnoredDuringExecution(corev1ac.WeightedPodAffinityTerm().
			WithWeight(100).
			WithPodAffinityTerm(corev1ac.PodAffinityTerm().
				WithTopologyKey(key).
				WithLabelSelector(match))))
	return spread, towardsNodes(affinity, placement)
}

// topologyKey is the node label by which pods keep apart.
func topologyKey(placement *v1alpha1.Placement) string {
	if placement == nil {
		return corev1.LabelHostname
	}
	return cmp.Or(placement.TopologyKey, corev1.LabelHostname)
}

// towardsNodes adds the node affinity of a placement.
func towardsNodes(affinity *corev1ac.AffinityApplyConfiguration, placement *v1alpha1.Placement) *corev1ac.AffinityApplyConfiguration {
	if placement != nil && placement.NodeAffinity != nil {
		affinity.NodeAffinity = applied[corev1ac.NodeAffinityApplyConfiguration](placement.NodeAffinity)
	}
	return affinity
}

// place puts pods where a placement says, apart from each other.
func place(pod *corev1ac.PodSpecApplyConfiguration, selector map[string]string, placement *v1alpha1.Placement) {
	spread, affinity := apart(selector, placement)
	pod.WithTopologySpreadConstraints(spread).WithAffinity(affinity)
	onNodes(pod, placement)
}

// onNodes restricts pods to the nodes of a placement.
func onNodes(pod *corev1ac.PodSpecApplyConfiguration, placement *v1alpha1.Placement) {
	if placement == nil {
		return
	}
	if placement.NodeSelector != nil {
		pod.WithNodeSelector(placement.NodeSelector)
	}
	for i := range placement.Tolerations {
		pod.WithTolerations(applied[corev1ac.TolerationApplyConfiguration](&placement.Tolerations[i]))
	}
}

// outsideMeshes keep the proxies of service meshes out of pods: Istio with sidecars and without, Kuma; Linkerd, Consul. Through a proxy every client
// would come from one address, so that access rules and limits could not tell them apart, and all bytes would go through one more program.
var (
	outsideMeshesLabels = map[string]string{
		"sidecar.istio.io/inject": "false", "istio.io/dataplane-mode": "none", "kuma.io/sidecar-injection": "disabled",
	}
	outsideMeshesAnnotations = map[string]string{"linkerd.io/inject": "disabled", "consul.hashicorp.com/connect-inject": "false"}
)

// podTemplate is a pod template with the user's settings. Howdah's own labels take precedence, but for those that keep meshes out. The operator's pull
// secrets come after the user's; the kubelet tries them all.
func podTemplate(selector map[string]string, settings *v1alpha1.PodSettings, pullSecrets []string, pod *corev1ac.PodSpecApplyConfiguration) *corev1ac.PodTemplateSpecApplyConfiguration {
	template := corev1ac.PodTemplateSpec().WithLabels(outsideMeshesLabels).WithAnnotations(outsideMeshesAnnotations)
	var secrets []string
	if settings != nil {
		template.WithLabels(settings.Labels).WithAnnotations(settings.Annotations)
		for _, secret := range settings.ImagePullSecrets {
			secrets = append(secrets, secret.Name)
		}
		if settings.PriorityClassName != "" {
			pod.WithPriorityClassName(settings.PriorityClassName)
		}
	}
	for _, name := range pullSecrets {
		// The list's key is the name: the API server refuses to apply one twice.
		if !slices.Contains(secrets, name) {
			secrets = append(secrets, name)
		}
	}
	for _, name := range secrets {
		pod.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(name))
	}
	return template.WithLabels(labels(selector)).WithSpec(pod)
}

// applied is a part of the core API as its apply configuration: the two have one form in JSON.
func applied[T any](part any) *T {
	out := new(T)
	text, err := json.Marshal(part)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		panic(fmt.Sprintf("%T is not the apply configuration of %T: %v", out, part, err)) // types decide this, not values
	}
	return out
}

// dataServerPorts are the ports of a data server. On a node's network the API server makes each a port of the host, and the
// scheduler gives no node two pods that want one. onNode: the Service leads to an address of the node that is not the pod's (IsOnNodeAddress).
func dataServerPorts(network *v1alpha1.HostNetwork, onNode bool) []*corev1ac.ContainerPortApplyConfiguration {
	numbers, nfs, nfsTLS := naming.DataServerPorts(firstPort(network)), portNFS, portNFSTLS
	if onNode {
		nfs, nfsTLS = naming.PortNFSOnNode, naming.PortNFSTLSOnNode
	}
	ports := []*corev1ac.ContainerPortApplyConfiguration{
		containerPort(nfs, numbers.NFS), containerPort(nfsTLS, numbers.NFSTLS),
		containerPort(portMetrics, numbers.Metrics), containerPort(portManager, numbers.Manager),
	}
	if network == nil {
		return ports
	}
	ports = append(ports, containerPort(naming.PortGanesha, numbers.Ganesha))
	for _, port := range ports {
		// As the API server would, so that the template is the same before and after it.
		port.WithHostPort(*port.ContainerPort)
	}
	return ports
}

// firstPort is the first port of data servers on their nodes' networks, 0 if they have networks of their own.
func firstPort(network *v1alpha1.HostNetwork) int32 {
	if network == nil {
		return 0
	}
	return network.FirstPort
}

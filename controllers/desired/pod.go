package desired

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/instance"
)

// downwardEnv tells a container which pod it is, by the names that instance publishes.
func downwardEnv() []*corev1ac.EnvVarApplyConfiguration {
	field := func(name, path string) *corev1ac.EnvVarApplyConfiguration {
		return corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().
			WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath(path)))
	}
	return []*corev1ac.EnvVarApplyConfiguration{
		field(instance.EnvDataServer, "metadata.name"),
		field(instance.EnvNamespace, "metadata.namespace"),
		field(instance.EnvPodIP, "status.podIP"),
		field(instance.EnvNodeName, "spec.nodeName"),
	}
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

// apart prefers nodes without another pod of the selector, in the two ways that
// the scheduler has; together they outweigh its wish to start where the image already is.
//
// It is a preference on purpose. A hard rule (DoNotSchedule) looks safer and is not: volumes
// may be local to nodes, and then a data server can go back to its own node only. With two servers on each of
// two nodes, a third node that joins makes the skew of any restarted server 2, and it would
// never start again. It would also keep a server off the last nodes after a failure. The price is that servers
// can share a node; status says so when there are fewer nodes than servers.
func apart(selector map[string]string) (*corev1ac.TopologySpreadConstraintApplyConfiguration, *corev1ac.AffinityApplyConfiguration) {
	match := metav1ac.LabelSelector().WithMatchLabels(selector)
	spread := corev1ac.TopologySpreadConstraint().
		WithMaxSkew(1).
		WithTopologyKey(corev1.LabelHostname).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(match)
	affinity := corev1ac.Affinity().WithPodAntiAffinity(corev1ac.PodAntiAffinity().
		WithPreferredDuringSchedulingIgnoredDuringExecution(corev1ac.WeightedPodAffinityTerm().
			WithWeight(100).
			WithPodAffinityTerm(corev1ac.PodAffinityTerm().
				WithTopologyKey(corev1.LabelHostname).
				WithLabelSelector(match))))
	return spread, affinity
}

func tolerations(in []corev1.Toleration) []*corev1ac.TolerationApplyConfiguration {
	out := make([]*corev1ac.TolerationApplyConfiguration, 0, len(in))
	for _, t := range in {
		config := corev1ac.Toleration()
		if t.Key != "" {
			config.WithKey(t.Key)
		}
		if t.Operator != "" {
			config.WithOperator(t.Operator)
		}
		if t.Value != "" {
			config.WithValue(t.Value)
		}
		if t.Effect != "" {
			config.WithEffect(t.Effect)
		}
		if t.TolerationSeconds != nil {
			config.WithTolerationSeconds(*t.TolerationSeconds)
		}
		out = append(out, config)
	}
	return out
}

func resources(in *corev1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	out := corev1ac.ResourceRequirements()
	if in.Limits != nil {
		out.WithLimits(in.Limits)
	}
	if in.Requests != nil {
		out.WithRequests(in.Requests)
	}
	for _, claim := range in.Claims {
		config := corev1ac.ResourceClaim().WithName(claim.Name)
		if claim.Request != "" {
			config.WithRequest(claim.Request)
		}
		out.WithClaims(config)
	}
	return out
}

// podPorts are the ports of a server; ganesha has an exporter of its own.
func podPorts(withGanesha bool) []*corev1ac.ContainerPortApplyConfiguration {
	ports := []*corev1ac.ContainerPortApplyConfiguration{containerPort(portNFS, v1alpha1.NFSPort)}
	if withGanesha {
		ports = append(ports, containerPort(portMetrics, v1alpha1.MetricsPort))
	}
	return append(ports, containerPort(portManager, v1alpha1.ManagerPort))
}

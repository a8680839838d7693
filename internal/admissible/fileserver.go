package admissible

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// Faults are the values of a FileServer that can't be used, by the children that they are copied into.
type Faults struct {
	// DataServers are those of the data servers alone, NamespaceServers those of the namespace servers alone, Pods those of all pods.
	DataServers, Pods, NamespaceServers field.ErrorList
	// Outside are those of the Services for clients outside the cluster.
	Outside field.ErrorList
}

// All are the faults in the order of the specification.
func (f Faults) All() field.ErrorList {
	return slices.Concat(f.DataServers, f.Pods, f.NamespaceServers, f.Outside)
}

// FileServer finds the values of a FileServer that can't be used.
func FileServer(spec *v1alpha1.FileServerSpec) Faults {
	path := field.NewPath("spec")
	faults := Faults{
		DataServers: slices.Concat(placement(spec.Placement, path.Child("placement")), resources(spec.Resources, path.Child("resources"))),
		Pods:        pods(spec.Pods, path.Child("pods"), naming.ServerContainer),
	}
	if namespaceServers := spec.NamespaceServers; namespaceServers != nil {
		path := path.Child("namespaceServers")
		faults.NamespaceServers = slices.Concat(placement(namespaceServers.Placement, path.Child("placement")), resources(namespaceServers.Resources, path.Child("resources")))
	}
	if balancer := spec.Network.LoadBalancer; balancer != nil {
		faults.Outside = outside(balancer, path.Child("network", "loadBalancer"))
	}
	return faults
}

// Families finds the values of a FileServer that can't be used where Services can have addresses of these families; none: it is not known.
func Families(spec *v1alpha1.FileServerSpec, families []corev1.IPFamily) (faults field.ErrorList) {
	balancer := spec.Network.LoadBalancer
	if balancer == nil || balancer.IPFamilyPolicy != corev1.IPFamilyPolicyRequireDualStack || len(families) != 1 {
		return nil
	}
	return append(faults, field.Invalid(field.NewPath("spec", "network", "loadBalancer", "ipFamilyPolicy"), balancer.IPFamilyPolicy, fmt.Sprintf(
		"Services of this cluster have %s addresses only: use PreferDualStack, or have the API server give Services addresses of both families", families[0])))
}

// Annotations of Services whose values the API server reads (pkg/apis/core/validation, validateService).
const (
	sourceRangesAnnotation  = "service.beta.kubernetes.io/load-balancer-source-ranges"
	topologyModeAnnotation  = "service.kubernetes.io/topology-mode"
	topologyHintsAnnotation = "service.kubernetes.io/topology-aware-hints"
)

func outside(balancer *v1alpha1.LoadBalancer, path *field.Path) field.ErrorList {
	faults := labels(balancer.Labels, path.Child("labels"))
	path = path.Child("annotations")
	faults = append(faults, annotations(balancer.Annotations, path)...)
	// Beside spec.loadBalancerSourceRanges it is not looked at.
	if text := strings.TrimSpace(balancer.Annotations[sourceRangesAnnotation]); text != "" && len(balancer.SourceRanges) == 0 {
		for network := range strings.SplitSeq(text, ",") {
			// The schema has the same rule for sourceRanges, and the API server for both from Kubernetes 1.36 on.
			const isStrict = true
			faults = append(faults, validation.IsValidCIDRForLegacyField(path.Key(sourceRangesAnnotation), strings.TrimSpace(network), isStrict, nil)...)
		}
	}
	mode, hasMode := balancer.Annotations[topologyModeAnnotation]
	if hints, hasHints := balancer.Annotations[topologyHintsAnnotation]; hasMode && hasHints && mode != hints {
		faults = append(faults, field.Invalid(path.Key(topologyModeAnnotation), mode, "it must be equal to the annotation "+topologyHintsAnnotation+" if both are set: leave that out"))
	}
	return faults
}

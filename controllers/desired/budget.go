package desired

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/howdah/howdah/internal/naming"
)

// dataServerBudget lets a drain take one data server at a time: each stops its own directories only.
func dataServerBudget(in FileServerInput) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return budget(in, naming.DataServerAccount(in.name()), naming.SelectDataServers(in.name()))
}

// namespaceServerBudget lets a drain take one namespace server at a time.
func namespaceServerBudget(in FileServerInput) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return budget(in, naming.NamespaceServers(in.name()), naming.SelectNamespaceServers(in.name()))
}

func budget(in FileServerInput, name string, selector map[string]string) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(name, in.namespace()).
		WithLabels(labels(selector)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			// A server that does not serve keeps no node from being drained, and no pod of its own from being replaced.
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)))
}

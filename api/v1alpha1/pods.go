package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// PodSettings applies to every pod that is created for an object.
type PodSettings struct {
	// labels are added to the pods. Howdah's own labels can't be replaced.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('howdah.io/') && k != 'app.kubernetes.io/name' && k != 'app.kubernetes.io/component' && k != 'app.kubernetes.io/managed-by')",message="labels of howdah.io and app.kubernetes.io/name, component and managed-by are Howdah's: pods are found by them"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the pods.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('howdah.io/'))",message="annotations of howdah.io are Howdah's"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// imagePullSecrets name Secrets in the same Kubernetes namespace with credentials for pulling the images.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:XValidation:rule="self.all(s, has(s.name) && s.name != '')",message="each of imagePullSecrets needs the name of a Secret"
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// priorityClassName names the PriorityClass of the pods.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="priorityClassName must be the name of a PriorityClass: lower-case letters, digits, '-' and '.'"
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// Placement selects the nodes for pods.
type Placement struct {
	// nodeSelector lists the labels that a node must have.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations lets pods run on tainted nodes.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.operator) || t.operator in ['', 'Exists', 'Equal', 'Lt', 'Gt'])",message="a toleration's operator must be Exists or Equal"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.operator) || t.operator != 'Exists' || !has(t.value) || t.value == '')",message="a toleration's value goes with the operator Equal; with Exists leave it out"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.effect) || t.effect in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="a toleration's effect must be NoSchedule, PreferNoSchedule or NoExecute; unset means all"
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// nodeAffinity is the node affinity of the pods, for rules that nodeSelector can't express.
	// +optional
	NodeAffinity *corev1.NodeAffinity `json:"nodeAffinity,omitempty"`

	// topologyKey is the node label over whose values pods are spread if possible; unset means kubernetes.io/hostname.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="topologyKey must be the key of a node label, for example topology.kubernetes.io/zone"
	// +optional
	TopologyKey string `json:"topologyKey,omitempty"`
}

package v1alpha1

// FileServerReference names a FileServer.
type FileServerReference struct {
	// name is the name of the FileServer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="name must be the name of a FileServer: lower-case letters, digits and '-'"
	// +required
	Name string `json:"name,omitempty"`

	// namespace is the Kubernetes namespace of the FileServer; unset means the namespace of the referring object. The
	// FileServer's spec.allowedNamespaces must allow references from other namespaces.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a Kubernetes namespace: lower-case letters, digits and '-'"
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// FileShareReference names a FileShare in the same Kubernetes namespace.
type FileShareReference struct {
	// name is the name of the FileShare.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be the name of a FileShare: lower-case letters, digits and '-'"
	// +required
	Name string `json:"name,omitempty"`
}

// SnapshotReference names a FileShareSnapshot in the same Kubernetes namespace.
type SnapshotReference struct {
	// name is the name of the FileShareSnapshot.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be the name of a FileShareSnapshot: lower-case letters, digits and '-'"
	// +required
	Name string `json:"name,omitempty"`
}

// ClaimReference names a PersistentVolumeClaim.
type ClaimReference struct {
	// namespace is the Kubernetes namespace of the claim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the claim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`
}

// SecretReference names a Secret in the same Kubernetes namespace.
type SecretReference struct {
	// name is the name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="name must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name,omitempty"`
}

// CephClusterReference names a CephCluster of Rook in the same Kubernetes namespace.
type CephClusterReference struct {
	// name is the name of the CephCluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="name must be the name of a CephCluster: lower-case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name,omitempty"`
}

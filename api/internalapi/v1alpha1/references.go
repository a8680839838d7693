package v1alpha1

// DataServerReference names a DataServer in the same Kubernetes namespace.
type DataServerReference struct {
	// name is the name of the DataServer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`
}

// FileServerReference names a FileServer in the same Kubernetes namespace.
type FileServerReference struct {
	// name is the name of the FileServer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	Name string `json:"name,omitempty"`
}

// FileShareReference names a FileShare in the same Kubernetes namespace.
type FileShareReference struct {
	// name is the name of the FileShare.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name,omitempty"`
}

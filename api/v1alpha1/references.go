package v1alpha1

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
	// +required
	Name string `json:"name,omitempty"`
}

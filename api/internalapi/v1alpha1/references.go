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

// FileShareReference names a FileShare.
type FileShareReference struct {
	// name is the share's key among the shares of its FileServer (naming.ShareKey): the name of the FileShare, or
	// NAMESPACE.NAME if the FileShare is in another Kubernetes namespace than this object. Neither name has a dot. The
	// share's directory on the volumes and its exports have this name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=114
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name,omitempty"`
}

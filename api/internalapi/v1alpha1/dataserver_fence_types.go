package v1alpha1

// FenceRequest names clients of Ceph that remain from an earlier start of a data server.
type FenceRequest struct {
	// id is different for each request.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	ID string `json:"id,omitempty"`

	// addresses are the addresses of these clients in Ceph's format: address, port and a number that no later client
	// has. The steward blocks those that watch the data server's own recovery records, and no others.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +required
	Addresses []string `json:"addresses,omitempty"`
}

// FenceAnswer is a steward's answer to a FenceRequest.
type FenceAnswer struct {
	// id is the ID of the request.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	ID string `json:"id,omitempty"`

	// fault is why the request failed; unset if it succeeded.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Fault string `json:"fault,omitempty"`
}

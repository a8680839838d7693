package v1alpha1

// CephFileSystem is the location of the data and the data server's records in Ceph.
type CephFileSystem struct {
	// monitors are the addresses of the monitors with ports.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=atomic
	// +required
	Monitors []string `json:"monitors,omitempty"`

	// fsid is the ID of the cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	FSID string `json:"fsid,omitempty"`

	// fileSystem is the name of the Ceph file system.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	FileSystem string `json:"fileSystem,omitempty"`

	// recoveryPool is the pool with the recovery records and the Export_Ids. Each data server has its own RADOS
	// namespace there.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	RecoveryPool string `json:"recoveryPool,omitempty"`

	// recoveryUser is the cephx user that may write the recovery records.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	RecoveryUser string `json:"recoveryUser,omitempty"`

	// identity is the FileServer's storage identity, from which the RADOS namespace of the recovery records is made.
	// Unset: serverScope is used.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Identity string `json:"identity,omitempty"`

	// secretName is the Secret with the shares' directories and the users' keys, which the pod mounts. It is here for
	// messages.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	SecretName string `json:"secretName,omitempty"`

	// stewardName names the Steward that writes this Secret, makes and removes the shares' directories, and fences
	// clients. Unset: everything in the Secret was made in advance, and no clients are fenced.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	StewardName string `json:"stewardName,omitempty"`
}

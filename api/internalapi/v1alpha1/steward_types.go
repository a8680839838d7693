package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Steward is the configuration and state of a FileServer's steward: the operator writes the spec, the steward the
// status. Only the steward has the credential for making the shares' directories in the storage (ShareStorage). It
// gives data servers the keys that they need, in a Secret. The object has the name of its FileServer. Users may read it
// and must not change it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=stewards
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="FileServer",type=string,JSONPath=`.spec.fileServerRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Steward struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the desired state of the steward.
	// +required
	Spec StewardSpec `json:"spec,omitzero"`
	// status is what the steward reports.
	// +optional
	Status StewardStatus `json:"status,omitempty,omitzero"`
}

// StewardSpec is the desired state of a steward.
// +kubebuilder:validation:XValidation:rule="self.fileServerRef == oldSelf.fileServerRef && self.fileServerUID == oldSelf.fileServerUID",message="fileServerRef and fileServerUID can't be changed: names in the storage are made from them"
type StewardSpec struct {
	// fileServerRef names the FileServer.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// fileServerUID is the FileServer's storage identity (v1alpha1.StorageIdentity), which is part of the names of
	// everything that the steward makes. Before there were storage identities it was the UID.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	FileServerUID string `json:"fileServerUID,omitempty"`

	// ceph is the Ceph file system in which the steward makes directories.
	// +required
	Ceph StewardCeph `json:"ceph,omitzero"`

	// fences are pods of data servers whose Ceph clients must be blocked, and stay blocked as long as the entry exists.
	// The operator adds an entry when a node is lost, and removes it when the pod has certainly ended; if its Node is deleted, 30 days later.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=podUID
	// +optional
	Fences []PodFence `json:"fences,omitempty"`
}

// PodFence requests that the Ceph clients of a data server's pod are blocked.
type PodFence struct {
	// podUID is the UID of the pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	PodUID string `json:"podUID,omitempty"`

	// dataServerName is the name of the data server, and of the pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	DataServerName string `json:"dataServerName,omitempty"`

	// nodeName is the node of the pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	NodeName string `json:"nodeName,omitempty"`

	// bootID is the boot ID of the node when it was lost. Another one means that the pod has ended. Unset: the node was
	// deleted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	BootID string `json:"bootID,omitempty"`

	// sinceTime is when the data server stopped answering.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`

	// requestTime is when the operator requested the fence.
	// +required
	RequestTime *metav1.Time `json:"requestTime,omitempty"`

	// message is why the operator requested the fence.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// StewardCeph is where in Ceph the steward makes directories, and how data servers get their keys.
type StewardCeph struct {
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

	// recoveryPool is the pool with the recovery records of data servers. For each DataServer the steward makes a user
	// that may write its own records.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	RecoveryPool string `json:"recoveryPool,omitempty"`

	// provisioningSecretName is the Secret with the credential, which the steward's pod mounts. It is here for
	// messages.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ProvisioningSecretName string `json:"provisioningSecretName,omitempty"`

	// sharesSecretName is the Secret that the steward writes and data servers mount. The operator creates it empty.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	SharesSecretName string `json:"sharesSecretName,omitempty"`
}

// StewardStatus is what the steward reports.
// +kubebuilder:validation:MinProperties=1
type StewardStatus struct {
	// conditions are Ready: Ceph accepts the credential, the cluster is the right one, and data servers have what they
	// need.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the steward uses.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// secretRevision changes when the steward writes the Secret that data servers mount. The operator copies it to an
	// annotation of their pods, which makes kubelets update the mounted Secret at once. It is not derived from the
	// content of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	SecretRevision string `json:"secretRevision,omitempty"`

	// fences are the answers to spec.fences.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=podUID
	// +optional
	Fences []PodFenceAnswer `json:"fences,omitempty"`

	// clients are the Ceph clients of data servers that the steward last saw: those that watch a data server's recovery
	// records. It is here so that another steward can fence them when Ceph does not list them any more.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=dataServerName
	// +optional
	Clients []DataServerClients `json:"clients,omitempty"`
}

// PodFenceAnswer is the answer to a PodFence.
type PodFenceAnswer struct {
	// podUID is that of the request.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	PodUID string `json:"podUID,omitempty"`

	// requestTime is that of the request.
	// +required
	RequestTime *metav1.Time `json:"requestTime,omitempty"`

	// addresses are the blocked Ceph clients: address, port and a number that no later client has. Those that had shares
	// are added when the metadata servers have blocked them, while the next pod mounts the shares.
	// +kubebuilder:validation:MaxItems=8192
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// time is when Ceph confirmed that the clients that the pod had then are blocked. Unset: it has not.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// fault is why the last attempt failed; unset if it succeeded.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Fault string `json:"fault,omitempty"`
}

// DataServerClients are the Ceph clients of a data server.
type DataServerClients struct {
	// dataServerName is the name of the data server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	DataServerName string `json:"dataServerName,omitempty"`

	// addresses are in Ceph's format.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +required
	Addresses []string `json:"addresses,omitempty"`
}

// StewardList is a list of Stewards.
// +kubebuilder:object:root=true
type StewardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Steward `json:"items"`
}

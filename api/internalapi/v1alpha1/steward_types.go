package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Steward is what the steward of a FileServer is told, and what it says: the operator writes the spec, the steward the status. The steward
// is the one program that has the credential with which places for shares are made in the storage (ShareStorage), and gives data servers
// the keys that they need, in a Secret. It has the name of its FileServer. Users read it, and don't write it.
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
	// spec is what the operator wants of the steward.
	// +required
	Spec StewardSpec `json:"spec,omitzero"`
	// status is what the steward reports.
	// +optional
	Status StewardStatus `json:"status,omitempty,omitzero"`
}

// StewardSpec is what the operator wants of a steward.
// +kubebuilder:validation:XValidation:rule="self.fileServerRef == oldSelf.fileServerRef && self.fileServerUID == oldSelf.fileServerUID",message="fileServerRef and fileServerUID can't be changed: names in the storage are made from them"
type StewardSpec struct {
	// fileServerRef names the FileServer.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// fileServerUID is the FileServer's storage identity (v1alpha1.StorageIdentity), which was its UID before there were identities: what the
	// steward makes has it in its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	FileServerUID string `json:"fileServerUID,omitempty"`

	// ceph is the Ceph file system that places are made in.
	// +required
	Ceph StewardCeph `json:"ceph,omitzero"`
}

// StewardCeph is where in Ceph places are made, and how data servers learn of them.
type StewardCeph struct {
	// monitors are addresses with ports.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=atomic
	// +required
	Monitors []string `json:"monitors,omitempty"`

	// fsid is the cluster's identity.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	FSID string `json:"fsid,omitempty"`

	// fileSystem is the name of the Ceph file system.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	FileSystem string `json:"fileSystem,omitempty"`

	// recoveryPool has the recovery records of data servers. For each DataServer the steward makes the user that may write its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	RecoveryPool string `json:"recoveryPool,omitempty"`

	// provisioningSecretName is the Secret with the credential, which the steward's pod mounts: for messages.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ProvisioningSecretName string `json:"provisioningSecretName,omitempty"`

	// sharesSecretName is the Secret that the steward writes and data servers mount. The operator makes it, empty.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	SharesSecretName string `json:"sharesSecretName,omitempty"`
}

// StewardStatus is what the steward reports.
// +kubebuilder:validation:MinProperties=1
type StewardStatus struct {
	// conditions are Ready: Ceph takes the credential, is the cluster that is meant, and data servers have been given what they need.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the steward works by.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// secretRevision changes whenever the steward has written the Secret that data servers mount. The operator writes it on their pods,
	// which has kubelets bring the Secret at once. It is not made from what is in the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	SecretRevision string `json:"secretRevision,omitempty"`
}

// StewardList is a list of Stewards.
// +kubebuilder:object:root=true
type StewardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Steward `json:"items"`
}

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShareStorage is the place of one share in its FileServer's storage, where Howdah makes that place: a subvolume of Ceph with a user of its
// own. The operator writes the spec, the FileServer's steward makes what it asks for and writes the status. A FileServer whose storage needs
// nothing made for a share (storage.volumes, or a Secret with directories that are there already) has none. Users read it, and don't write it.
//
// Deleting it ends the share's account, and its data too where dataPolicy is Delete; the finalizer keeps it until the status says that this
// is done. It is deleted after the share's exports are gone.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sharestorages,shortName=ssto
// +kubebuilder:printcolumn:name="Share",type=string,JSONPath=`.spec.fileShareRef.name`
// +kubebuilder:printcolumn:name="FileServer",type=string,JSONPath=`.spec.fileServerRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.status.path`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ShareStorage struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is what the operator wants of the place.
	// +required
	Spec ShareStorageSpec `json:"spec,omitzero"`
	// status is what the steward reports.
	// +optional
	Status ShareStorageStatus `json:"status,omitempty,omitzero"`
}

// ShareStorageSpec is what the operator wants of a share's place.
// +kubebuilder:validation:XValidation:rule="self.fileServerRef == oldSelf.fileServerRef && self.fileShareRef == oldSelf.fileShareRef",message="fileServerRef and fileShareRef can't be changed: the object's name is made from them"
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source)",message="source can't be changed: the place may have been begun with it"
type ShareStorageSpec struct {
	// fileServerRef names the FileServer.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// fileShareRef names the FileShare.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// dataPolicy tells what happens to the data when this object is deleted. It is Retain as long as the share lives, so that no accident
	// with this object can cost data: only the deletion of a share with reclaimPolicy Delete sets Delete.
	// +required
	DataPolicy DataPolicy `json:"dataPolicy,omitempty"`

	// quotaBytes is how much the share may hold, in bytes; unset: as much as there is.
	// +kubebuilder:validation:Minimum=1
	// +optional
	QuotaBytes int64 `json:"quotaBytes,omitempty"`

	// source is the snapshot that the place is to begin as a copy of; unset: it begins empty. It counts until the place is there for the first
	// time (status.path), and for nothing after that.
	// +optional
	Source StorageSource `json:"source,omitempty,omitzero"`
}

// StorageSource is a snapshot of a share of the same FileServer.
type StorageSource struct {
	// fileShareRef names the FileShare that it is of, which may be gone while the snapshot is there.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// snapshotName is its name in the storage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	SnapshotName string `json:"snapshotName,omitempty"`
}

// Conditions of a ShareStorage.
const (
	// StorageRemoved: the object is being deleted, and the steward is done with it. Until it is deleted it has Ready: the place is there,
	// and data servers are given its user's key.
	StorageRemoved = "Removed"
)

// ShareStorageStatus is what the steward reports.
// +kubebuilder:validation:MinProperties=1
type ShareStorageStatus struct {
	// conditions are Ready, and Removed once a deleted place is gone, or its account alone where the data is retained.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the steward has carried out.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// path is the share's directory in the file system. Once it is set the place was there and may have data: the steward never makes
	// it again, empty, if it is missed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`

	// cloneBeginTime is when the steward was about to have the source copied, and had seen that nothing was in this place. What is found there
	// without it is somebody else's, or an earlier share's, and is neither served nor removed.
	// +optional
	CloneBeginTime *metav1.Time `json:"cloneBeginTime,omitempty"`

	// user is the share's user, which can use nothing but that directory.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	User string `json:"user,omitempty"`

	// quotaBytes is the quota that the storage keeps the share to, in bytes; 0: none.
	// +kubebuilder:validation:Minimum=0
	// +optional
	QuotaBytes *int64 `json:"quotaBytes,omitempty"`

	// usedBytes is what the share holds, in bytes, at most some minutes ago.
	// +kubebuilder:validation:Minimum=0
	// +optional
	UsedBytes *int64 `json:"usedBytes,omitempty"`
}

// ShareStorageList is a list of ShareStorages.
// +kubebuilder:object:root=true
type ShareStorageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShareStorage `json:"items"`
}

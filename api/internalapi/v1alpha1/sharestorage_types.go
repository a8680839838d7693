package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShareStorage is the directory of one share in its FileServer's storage, where Howdah makes it: a subvolume of Ceph
// with its own user. The operator writes the spec. The FileServer's steward makes the subvolume and writes the status.
// A FileServer whose storage needs nothing made for a share (storage.volumes, or a Secret with existing directories)
// has no ShareStorages. Users may read it and must not change it.
//
// Deleting it removes the share's account and, if dataPolicy is Delete, its data. The finalizer keeps it until the
// status shows that this is done. The operator deletes it after the share's exports are gone.
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
	// spec is the desired state.
	// +required
	Spec ShareStorageSpec `json:"spec,omitzero"`
	// status is what the steward reports.
	// +optional
	Status ShareStorageStatus `json:"status,omitempty,omitzero"`
}

// ShareStorageSpec is the desired state of a share's directory in the storage.
// +kubebuilder:validation:XValidation:rule="self.fileServerRef == oldSelf.fileServerRef && self.fileShareRef == oldSelf.fileShareRef",message="fileServerRef and fileShareRef can't be changed: the object's name is made from them"
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source)",message="source can't be changed: the copy may have started"
type ShareStorageSpec struct {
	// fileServerRef names the FileServer.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// fileShareRef names the FileShare.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// dataPolicy is what happens to the data when this object is deleted. It is Retain while the share exists, so that
	// an accidental deletion of this object removes no data. Only the deletion of a share with reclaimPolicy Delete
	// sets it to Delete.
	// +required
	DataPolicy DataPolicy `json:"dataPolicy,omitempty"`

	// quotaBytes is the maximum size of the share's data, in bytes; unset: no limit.
	// +kubebuilder:validation:Minimum=1
	// +optional
	QuotaBytes int64 `json:"quotaBytes,omitempty"`

	// source is the snapshot that is copied into the new directory; unset: the directory starts empty. It has no effect
	// once the directory exists (status.path).
	// +optional
	Source StorageSource `json:"source,omitempty,omitzero"`
}

// StorageSource is a snapshot of a share of the same FileServer.
type StorageSource struct {
	// fileShareRef names the FileShare of the snapshot. The FileShare may be deleted while the snapshot exists.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// snapshotName is the name of the snapshot in the storage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	SnapshotName string `json:"snapshotName,omitempty"`
}

// Conditions of a ShareStorage.
const (
	// StorageRemoved: the object is being deleted, and the steward has removed what it made. Before the deletion the
	// condition is Ready: the directory exists, and data servers have the key of its user.
	StorageRemoved = "Removed"
)

// ShareStorageStatus is what the steward reports.
// +kubebuilder:validation:MinProperties=1
type ShareStorageStatus struct {
	// conditions are Ready, and Removed once the directory, or with Retain only its account, is removed.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the steward has applied.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// path is the share's directory in the file system. Once it is set, the directory existed and may have data. The
	// steward never makes it again if it is missing.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`

	// cloneBeginTime is when the steward was about to start the copy of the source, after it had checked that the
	// directory did not exist. A directory that exists although cloneBeginTime is unset was made by others or for an
	// earlier share, and is neither served nor removed.
	// +optional
	CloneBeginTime *metav1.Time `json:"cloneBeginTime,omitempty"`

	// user is the share's user, which can access only that directory.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	User string `json:"user,omitempty"`

	// quotaBytes is the quota that the storage enforces, in bytes; 0: none.
	// +kubebuilder:validation:Minimum=0
	// +optional
	QuotaBytes *int64 `json:"quotaBytes,omitempty"`

	// usedBytes is the size of the share's data, in bytes, at most a few minutes old.
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

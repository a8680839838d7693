package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShareSnapshot is a snapshot of a share in the storage. The operator creates it for a FileShareSnapshot, in the
// namespace of the FileServer. The FileServer's steward makes the snapshot and writes the status.
//
// Deleting it removes the snapshot. The finalizer keeps it until the status shows that the steward has removed the
// snapshot. Snapshots without an object are not removed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sharesnapshots,shortName=ssnap
// +kubebuilder:printcolumn:name="Share",type=string,JSONPath=`.spec.fileShareRef.name`
// +kubebuilder:printcolumn:name="Snapshot",type=string,JSONPath=`.spec.snapshotName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Made",type=date,JSONPath=`.status.creationTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ShareSnapshot struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the desired state.
	// +required
	Spec ShareSnapshotSpec `json:"spec,omitzero"`
	// status is what the steward reports.
	// +optional
	Status ShareSnapshotStatus `json:"status,omitempty,omitzero"`
}

// ShareSnapshotSpec is the desired state of a snapshot.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec can't be changed: a snapshot belongs to one share and one moment"
type ShareSnapshotSpec struct {
	// fileServerRef names the FileServer.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// fileServerUID is the FileServer's storage identity (v1alpha1.StorageIdentity), from which names in the storage
	// are made. Before there were storage identities it was the UID.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	FileServerUID string `json:"fileServerUID,omitempty"`

	// fileShareRef names the FileShare.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// snapshotName is the name of the snapshot in the storage and of the FileShareSnapshot.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	SnapshotName string `json:"snapshotName,omitempty"`
}

// Conditions of a ShareSnapshot.
const (
	// SnapshotRemoved: the object is being deleted, and the steward has removed the snapshot. Before the deletion the
	// condition is Ready.
	SnapshotRemoved = "Removed"
)

// ShareSnapshotStatus is what the steward reports of a snapshot.
// +kubebuilder:validation:MinProperties=1
type ShareSnapshotStatus struct {
	// conditions are Ready, and Removed once a deleted snapshot is removed.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// beginTime is when the steward was first about to make the snapshot, after it had checked that none of this name
	// existed. A snapshot that exists although beginTime is unset was made by others, and is not changed.
	// +optional
	BeginTime *metav1.Time `json:"beginTime,omitempty"`

	// creationTime is the time of the snapshot, as the storage reports it.
	// +optional
	CreationTime *metav1.Time `json:"creationTime,omitempty"`

	// path is the path of the snapshot below any directory of the share.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Path string `json:"path,omitempty"`

	// sizeBytes is the approximate size of the share's content at that time.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SizeBytes *int64 `json:"sizeBytes,omitempty"`
}

// ShareSnapshotList is a list of ShareSnapshots.
// +kubebuilder:object:root=true
type ShareSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShareSnapshot `json:"items"`
}

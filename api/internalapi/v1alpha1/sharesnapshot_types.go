package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShareSnapshot is a snapshot of a share in the storage: the operator makes it for a FileShareSnapshot, in the namespace of the FileServer; the
// FileServer's steward makes the snapshot and writes the status.
//
// Deleting it is the removal: the finalizer keeps it until the status says that the steward has removed the snapshot. That an object is missing removes nothing.
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
	// spec is what the operator wants.
	// +required
	Spec ShareSnapshotSpec `json:"spec,omitzero"`
	// status is what the steward reports.
	// +optional
	Status ShareSnapshotStatus `json:"status,omitempty,omitzero"`
}

// ShareSnapshotSpec is what the operator wants of a snapshot.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nothing of a ShareSnapshot can be changed: it is of one share and one moment"
type ShareSnapshotSpec struct {
	// fileServerRef names the FileServer.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// fileServerUID is its storage identity (v1alpha1.StorageIdentity): names in the storage are made from it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	FileServerUID string `json:"fileServerUID,omitempty"`

	// fileShareRef names the FileShare.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// snapshotName is the snapshot's name in the storage, and that of the FileShareSnapshot.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	SnapshotName string `json:"snapshotName,omitempty"`
}

// Conditions of a ShareSnapshot.
const (
	// SnapshotRemoved: the object is being deleted, and the steward is done with it. Until it is deleted it has Ready.
	SnapshotRemoved = "Removed"
)

// ShareSnapshotStatus is what the steward reports of a snapshot.
// +kubebuilder:validation:MinProperties=1
type ShareSnapshotStatus struct {
	// conditions are Ready, and Removed once a deleted snapshot is gone.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// beginTime is when the steward was about to make the snapshot for the first time, and had seen that there was none of its name. One that is
	// found without it is somebody else's, and is not touched.
	// +optional
	BeginTime *metav1.Time `json:"beginTime,omitempty"`

	// creationTime is the moment of the snapshot, as the storage says.
	// +optional
	CreationTime *metav1.Time `json:"creationTime,omitempty"`

	// path is where users find it, below any directory of the share.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Path string `json:"path,omitempty"`

	// sizeBytes is about how much the share had in it then.
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

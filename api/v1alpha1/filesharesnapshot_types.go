package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileShareSnapshot is the content of a FileShare at one moment, stored with the share. Every user who can read the
// share can read it. Only deleting this object deletes the snapshot in the storage; the object exists until the storage
// has deleted it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=fsnap,categories=nfs
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="FileShare",type=string,JSONPath=`.spec.fileShareRef.name`
// +kubebuilder:printcolumn:name="Made",type=date,JSONPath=`.status.readyTime`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.status.path`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label of at most 63 characters (no dots): users find the snapshot under this name"
type FileShareSnapshot struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the desired state.
	// +required
	Spec FileShareSnapshotSpec `json:"spec,omitzero"`
	// Reason for the default: see FileShare.

	// status is the observed state.
	// +kubebuilder:default={observedGeneration: 0}
	// +optional
	Status FileShareSnapshotStatus `json:"status,omitempty,omitzero"`
}

// FileShareSnapshotSpec is the desired state of a FileShareSnapshot.
// +kubebuilder:validation:XValidation:rule="self.fileShareRef == oldSelf.fileShareRef",message="fileShareRef can't be changed: a snapshot belongs to one share; create another snapshot"
type FileShareSnapshotSpec struct {
	// fileShareRef names the FileShare, in this Kubernetes namespace.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`
}

// FileShareSnapshotStatus is the observed state of a FileShareSnapshot.
// +kubebuilder:validation:MinProperties=1
type FileShareSnapshotStatus struct {
	// conditions are Ready, and Reconciling or Stalled while they are true.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the operator last processed completely.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// readyTime is the time of the snapshot, by the storage's clock. It is set once, when the snapshot exists.
	// +optional
	ReadyTime *metav1.Time `json:"readyTime,omitempty"`

	// path is the path of the snapshot below any mounted directory of the share: .snap/_NAME_NUMBER. Directory listings
	// do not show .snap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Path string `json:"path,omitempty"`

	// sizeBytes is the approximate size of the share's content at that time. The snapshot itself takes less: only what
	// was changed or removed since.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SizeBytes *int64 `json:"sizeBytes,omitempty"`
}

// FileShareSnapshotList is a list of FileShareSnapshots.
// +kubebuilder:object:root=true
type FileShareSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FileShareSnapshot `json:"items"`
}

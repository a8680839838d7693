package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Failover is what the operator may do when a data server stops answering because its node is lost.
// +kubebuilder:validation:MinProperties=1
type Failover struct {
	// fencing is how the operator makes sure that the lost data server can't write any more, before it starts the data
	// server on another node. None, the default: the operator does not do this; the data server waits for its node, or
	// for an administrator. Storage: Ceph refuses the clients of the lost data server (blocklist); this needs
	// storage.ceph with accounts that Howdah makes, and an operator that is installed with failover allowed. API clients
	// must tolerate new values.
	// +kubebuilder:default=None
	// +optional
	Fencing FailoverFencing `json:"fencing,omitempty"`
}

// FailoverFencing is how a lost data server is kept from writing.
// +kubebuilder:validation:Enum=None;Storage
type FailoverFencing string

// Ways to keep a lost data server from writing.
const (
	// FailoverFencingNone means that there is no failover to another node.
	FailoverFencingNone FailoverFencing = "None"
	// FailoverFencingStorage means that the storage refuses the lost data server.
	FailoverFencingStorage FailoverFencing = "Storage"
)

// ServerFailover is a failover of a data server to another node.
type ServerFailover struct {
	// count is the number of failovers of this data server since the FileServer was created, including this one.
	// +kubebuilder:validation:Minimum=1
	// +required
	Count int32 `json:"count,omitempty"`

	// completed is the number of these failovers after which the data server served again. Unset means none.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Completed int32 `json:"completed,omitempty"`

	// nodeName is the node that was lost.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	NodeName string `json:"nodeName,omitempty"`

	// podUID is the UID of the pod that ran there.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	PodUID string `json:"podUID,omitempty"`

	// message is why the failover began, and the evidence that the lost data server can't write any more.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// sinceTime is when the data server stopped answering.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`

	// detectedTime is when the operator decided, and requested the fence.
	// +optional
	DetectedTime *metav1.Time `json:"detectedTime,omitempty"`

	// fencedTime is when the storage had fenced the lost data server.
	// +optional
	FencedTime *metav1.Time `json:"fencedTime,omitempty"`

	// podDeletedTime is when the pod on the lost node was deleted.
	// +optional
	PodDeletedTime *metav1.Time `json:"podDeletedTime,omitempty"`

	// servingTime is when the data server served on another node.
	// +optional
	ServingTime *metav1.Time `json:"servingTime,omitempty"`

	// durationSeconds is the time from sinceTime to servingTime, in seconds: how long the directories of the data server
	// were not served.
	// +kubebuilder:validation:Minimum=0
	// +optional
	DurationSeconds *int32 `json:"durationSeconds,omitempty"`
}

// FailoverRefusal is why a data server that does not answer is not started on another node.
type FailoverRefusal struct {
	// reason is a word for programs. API clients must tolerate new values.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Reason string `json:"reason,omitempty"`

	// message is for people.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Message string `json:"message,omitempty"`
}

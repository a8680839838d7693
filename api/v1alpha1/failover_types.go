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
	// storage.ceph with accounts that Howdah makes, and an operator that is installed with failover allowed. Power: the
	// machine is known to be off, because its Node has the taint node.kubernetes.io/out-of-service or
	// node.cloudprovider.kubernetes.io/shutdown, or the storage of its volumes refuses it, because NetworkFences of
	// csi-addons say so; this needs storage.volumes, volumes that other nodes can use, and an operator that is installed
	// with failover of volumes allowed. API clients must tolerate new values.
	// +kubebuilder:default=None
	// +optional
	Fencing FailoverFencing `json:"fencing,omitempty"`
}

// FailoverFencing is how a lost data server is kept from writing.
// +kubebuilder:validation:Enum=None;Storage;Power
type FailoverFencing string

// Ways to keep a lost data server from writing.
const (
	// FailoverFencingNone means that there is no failover to another node.
	FailoverFencingNone FailoverFencing = "None"
	// FailoverFencingStorage means that the storage refuses the lost data server.
	FailoverFencingStorage FailoverFencing = "Storage"
	// FailoverFencingPower means that the machine of the lost data server is known to be off, or refused by the storage.
	FailoverFencingPower FailoverFencing = "Power"
)

// FailoverEvidence is why a lost data server can't write any more. API clients must tolerate new values.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
type FailoverEvidence string

// Evidences of a failover.
const (
	// FailoverEvidenceStorageFenced means that the storage refuses the data server.
	FailoverEvidenceStorageFenced FailoverEvidence = "StorageFenced"
	// FailoverEvidenceOutOfServiceTaint means that the Node has the taint node.kubernetes.io/out-of-service.
	FailoverEvidenceOutOfServiceTaint FailoverEvidence = "OutOfServiceTaint"
	// FailoverEvidenceShutdownTaint means that the Node has the taint node.cloudprovider.kubernetes.io/shutdown.
	FailoverEvidenceShutdownTaint FailoverEvidence = "ShutdownTaint"
	// FailoverEvidenceNetworkFence means that NetworkFences of csi-addons have the storage of all its volumes refuse all
	// addresses of its node.
	FailoverEvidenceNetworkFence FailoverEvidence = "NetworkFence"
)

// ServedBoot is where a data server served: its pod, and one boot of the node that the pod ran on.
type ServedBoot struct {
	// podUID is the UID of the pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	PodUID string `json:"podUID,omitempty"`

	// nodeUID is the UID of the Node.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	NodeUID string `json:"nodeUID,omitempty"`

	// bootID is the node's boot ID, as its kubelet reports it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	BootID string `json:"bootID,omitempty"`
}

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

	// networkAddresses are the addresses of that node to which the server's Service led
	// (spec.network.hostNetwork.addressesIn). Clients there are lost with it.
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	// +listType=atomic
	// +optional
	NetworkAddresses []string `json:"networkAddresses,omitempty"`

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

	// evidence is why the lost data server can't write any more: StorageFenced, OutOfServiceTaint, ShutdownTaint or
	// NetworkFence. Unset while it is not known.
	// +optional
	Evidence FailoverEvidence `json:"evidence,omitempty"`

	// sinceTime is when the data server stopped answering.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`

	// detectedTime is when the operator decided, and requested the fence.
	// +optional
	DetectedTime *metav1.Time `json:"detectedTime,omitempty"`

	// fencedTime is when the storage had fenced the lost data server, or when the operator saw that its machine is off
	// or refused by the storage.
	// +optional
	FencedTime *metav1.Time `json:"fencedTime,omitempty"`

	// podDeletedTime is when the pod on the lost node was deleted.
	// +optional
	PodDeletedTime *metav1.Time `json:"podDeletedTime,omitempty"`

	// volumesDetachedTime is when the volumes of the data server were not attached to the lost node any more.
	// +optional
	VolumesDetachedTime *metav1.Time `json:"volumesDetachedTime,omitempty"`

	// stoppedTime is when the failover was given up before its pod was deleted, because its reason was gone: the node or
	// the data server came back, or failover was switched off.
	// +optional
	StoppedTime *metav1.Time `json:"stoppedTime,omitempty"`

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

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileServerStatus is what the operator sees of a FileServer.
// +kubebuilder:validation:MinProperties=1
type FileServerStatus struct {
	// conditions are Ready, ServersAvailable, NamespaceServersAvailable, StorageAvailable, ConfigApplied.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the last complete pass.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// storageIdentity is what the names of the FileServer's subvolume group, subvolumes and users in Ceph are made from; unset where Howdah makes
	// none. Keep it with the specification (spec.storage.ceph.identity): with it another cluster finds the data.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	StorageIdentity string `json:"storageIdentity,omitempty"`

	// replicas is the effective number of data servers wanted.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// selector finds the pods of the data servers, for the scale subresource.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Selector string `json:"selector,omitempty"`

	// readyReplicas is the number of data servers that serve.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// address is the address of the front door: the one that clients mount.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Address string `json:"address,omitempty"`

	// nodeAddresses is how many addresses the cluster's nodes are known to have. Clients from there, and from
	// spec.additionalNodeNetworks, are the Nodes of access rules.
	// +kubebuilder:validation:Minimum=0
	// +optional
	NodeAddresses *int32 `json:"nodeAddresses,omitempty"`

	// servers lists the data servers.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Servers []FileServerServerStatus `json:"servers,omitempty"`

	// moves counts directories that change their data servers, which takes storage that all of them have (storage.ceph).
	// +optional
	Moves DirectoryMoves `json:"moves,omitempty,omitzero"`

	// namespaceServers is what the namespace servers say of themselves.
	// +optional
	NamespaceServers NamespaceServersStatus `json:"namespaceServers,omitempty,omitzero"`

	// capacity sums up the volumes of all data servers.
	// +optional
	Capacity FileServerCapacity `json:"capacity,omitempty,omitzero"`
}

// FileServerServerStatus is one data server as the operator sees it.
type FileServerServerStatus struct {
	// name is the name of the DataServer and of its pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`

	// nodeName is the node that the server runs on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// address is the address that referrals to this server carry.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Address string `json:"address,omitempty"`

	// state is Serving, or what the server waits for. Clients must tolerate new values.
	// +required
	State ServerState `json:"state,omitempty"`

	// configRevision is the generation of the DataServer that the server has loaded.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ConfigRevision *int64 `json:"configRevision,omitempty"`

	// connections are those of NFS clients. A client has as many as its mount option nconnect says. There may be as many
	// as spec.nfs.maxConnections says, or as follows from the memory of spec.resources.
	// +optional
	Connections FileServerConnections `json:"connections,omitempty,omitzero"`

	// directories is the number of share directories that the server owns.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Directories *int32 `json:"directories,omitempty"`

	// drain is there while the server is to be idle: it is in spec.drain.servers, or above spec.replicas.
	// +optional
	Drain ServerDrain `json:"drain,omitempty,omitzero"`
}

// DirectoryMoves counts directories that change their data servers.
type DirectoryMoves struct {
	// pending is how many are still to move: those of data servers that are to be idle, and those that a move was asked for.
	// +kubebuilder:validation:Minimum=0
	// +required
	Pending *int32 `json:"pending,omitempty"`

	// done is how many have moved since the FileServer was made.
	// +kubebuilder:validation:Minimum=0
	// +required
	Done *int64 `json:"done,omitempty"`
}

// ServerDrain tells how far a data server is that is to be idle.
type ServerDrain struct {
	// state is Emptying while the server owns directories, WaitingForClients while clients may still have it mounted, then Drained.
	// Clients must tolerate new values.
	// +required
	State DrainState `json:"state,omitempty"`

	// emptySinceTime is since when the server has owned no directories.
	// +optional
	EmptySinceTime *metav1.Time `json:"emptySinceTime,omitempty"`
}

// DrainState tells how far a data server is that is to be idle.
// +kubebuilder:validation:Enum=Emptying;WaitingForClients;Drained
type DrainState string

// States of a data server that is to be idle.
const (
	// DrainEmptying: it still owns directories.
	DrainEmptying DrainState = "Emptying"
	// DrainWaiting: it owns none, and clients may still have it mounted.
	DrainWaiting DrainState = "WaitingForClients"
	// DrainDone: no client is connected any more, or they were waited for long enough.
	DrainDone DrainState = "Drained"
)

// NamespaceServersStatus is what the namespace servers say of themselves, all of them together.
// +kubebuilder:validation:MinProperties=1
type NamespaceServersStatus struct {
	// connections are those of NFS clients, at most a minute ago. There may be as many as follows from the memory of
	// spec.namespaceServers.resources, on each namespace server.
	// +optional
	Connections FileServerConnections `json:"connections,omitempty,omitzero"`
}

// FileServerConnections are TCP connections of NFS clients.
type FileServerConnections struct {
	// used is how many there are, to an eighth.
	// +kubebuilder:validation:Minimum=0
	// +required
	Used *int32 `json:"used,omitempty"`

	// limit is how many there may be.
	// +kubebuilder:validation:Minimum=1
	// +required
	Limit int32 `json:"limit,omitempty"`
}

// ManyConnections tells whether so many connections are worth a warning: 80 % of the limit.
func ManyConnections(used, limit int32) bool { return limit > 0 && int64(used)*5 >= int64(limit)*4 }

// CoarseConnections is what to report of so many connections. What was reported earlier stays while the number differs by
// an eighth of it or less, on the same side of the threshold that users are warned at: a status is not written for every mount.
func CoarseConnections(earlier, used, limit int32) int32 {
	if ManyConnections(earlier, limit) != ManyConnections(used, limit) {
		return used
	}
	if difference := used - earlier; max(difference, -difference) <= earlier/8 {
		return earlier
	}
	return used
}

// ServerState tells how far a data server is.
// +kubebuilder:validation:Enum=Pending;Starting;Serving;Unavailable
type ServerState string

// States of a data server.
const (
	// ServerPending: no pod runs.
	ServerPending ServerState = "Pending"
	// ServerStarting: the pod runs and ganesha does not answer yet.
	ServerStarting ServerState = "Starting"
	// ServerServing: ganesha answers with its identity.
	ServerServing ServerState = "Serving"
	// ServerUnavailable: the server served before and does not now.
	ServerUnavailable ServerState = "Unavailable"
)

// FileServerCapacity sums up volumes, in bytes.
type FileServerCapacity struct {
	// totalBytes is the size of all file systems in bytes.
	// +kubebuilder:validation:Minimum=0
	// +required
	TotalBytes *int64 `json:"totalBytes,omitempty"`

	// usedBytes is what is used of them in bytes.
	// +kubebuilder:validation:Minimum=0
	// +required
	UsedBytes *int64 `json:"usedBytes,omitempty"`
}

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileServerStatus is the observed state of a FileServer.
// +kubebuilder:validation:MinProperties=1
type FileServerStatus struct {
	// conditions are Ready, ServersAvailable, NamespaceServersAvailable, StorageAvailable, ConfigApplied,
	// ServersUpdated, and OutsideAddressesAvailable if spec.network.loadBalancer is set.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the operator last processed completely.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// storageIdentity is the ID from which the names of the FileServer's subvolume group, subvolumes and users in Ceph
	// are made. It is unset if Howdah makes none. Keep it together with the specification: another cluster finds the
	// data with it (spec.storage.ceph.identity).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	StorageIdentity string `json:"storageIdentity,omitempty"`

	// replicas is the desired number of data servers.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// selector selects the pods of the data servers, for the scale subresource.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Selector string `json:"selector,omitempty"`

	// readyReplicas is the number of data servers that serve.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// address is the address of the namespace servers, which clients mount.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Address string `json:"address,omitempty"`

	// outsideAddresses are the addresses or host names of the namespace servers for clients outside the cluster, which
	// mount one of them (spec.network.loadBalancer).
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	OutsideAddresses []string `json:"outsideAddresses,omitempty"`

	// nodeAddresses is the number of known addresses of the cluster's nodes. These addresses and
	// spec.additionalNodeNetworks are the Nodes of access rules.
	// +kubebuilder:validation:Minimum=0
	// +optional
	NodeAddresses *int32 `json:"nodeAddresses,omitempty"`

	// servers lists the data servers.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Servers []FileServerServerStatus `json:"servers,omitempty"`

	// moves counts directories that move to other data servers.
	// +optional
	Moves DirectoryMoves `json:"moves,omitempty,omitzero"`

	// namespaceServers is what the namespace servers report.
	// +optional
	NamespaceServers NamespaceServersStatus `json:"namespaceServers,omitempty,omitzero"`

	// volumeSize is the size that each claim of a data server has at least: the least that one asks for or has.
	// spec.storage.volumes.size can be set back to it after an increase that volumes can't follow. Unset with
	// storage.ceph, and while there are no claims.
	// +optional
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty"`

	// capacity is the total of the volumes of all data servers. A file system that several volumes are on counts once.
	// +optional
	Capacity FileServerCapacity `json:"capacity,omitempty,omitzero"`
}

// FileServerServerStatus is the observed state of one data server.
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

	// address is the address of the server in referrals.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Address string `json:"address,omitempty"`

	// nodeAddress is the address of the server's node to which its Service leads
	// (spec.network.hostNetwork.addressesIn). Unset: it leads to the pod's address, or to none at the moment.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +optional
	NodeAddress string `json:"nodeAddress,omitempty"`

	// outsideAddresses are the addresses or host names of the server in referrals for clients outside the cluster
	// (spec.network.loadBalancer).
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	OutsideAddresses []string `json:"outsideAddresses,omitempty"`

	// state is Serving, or what the server waits for. API clients must tolerate new values.
	// +required
	State ServerState `json:"state,omitempty"`

	// configRevision is the generation of the DataServer that the server has loaded.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ConfigRevision *int64 `json:"configRevision,omitempty"`

	// connections are the TCP connections of NFS clients. A client has as many as its mount option nconnect says. The
	// limit is spec.nfs.maxConnections, or follows from the memory in spec.resources.
	// +optional
	Connections FileServerConnections `json:"connections,omitempty,omitzero"`

	// directories is the number of share directories that the server owns.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Directories *int32 `json:"directories,omitempty"`

	// capacity is the total of the server's own volumes; unset with storage.ceph.
	// +optional
	Capacity FileServerCapacity `json:"capacity,omitempty,omitzero"`

	// fill is how full the fullest of the server's own volumes is, by bytes or inodes; unset below 80 %. API clients
	// must tolerate new values.
	// +optional
	Fill VolumeFill `json:"fill,omitempty"`

	// lastEnd is the last time that the server stopped serving because something was killed or a pod was replaced, at
	// most a minute late.
	// +optional
	LastEnd ServerEnd `json:"lastEnd,omitempty,omitzero"`

	// restartPending are the options of spec.nfs that the server uses from its next start, because nfs-ganesha reads
	// them only when it starts. Until then it uses the earlier values.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	RestartPending []string `json:"restartPending,omitempty"`

	// drain exists while the server is to be idle: it is in spec.drain.servers, or above spec.replicas.
	// +optional
	Drain ServerDrain `json:"drain,omitempty,omitzero"`

	// lastFailover is the last failover of the server to another node.
	// +optional
	LastFailover ServerFailover `json:"lastFailover,omitempty,omitzero"`

	// servedBoot is where the server served last, while its Node had no taint that says that the machine is off. Only with
	// failover.fencing Power: such a taint counts later for this boot only.
	// +optional
	ServedBoot ServedBoot `json:"servedBoot,omitempty,omitzero"`

	// failoverRefusal is why the server, which does not answer, is not started on another node.
	// +optional
	FailoverRefusal FailoverRefusal `json:"failoverRefusal,omitempty,omitzero"`
}

// DirectoryMoves counts directories that move to other data servers.
type DirectoryMoves struct {
	// pending is the number of directories still to move: those of data servers that are to be idle, and those of
	// requested moves.
	// +kubebuilder:validation:Minimum=0
	// +required
	Pending *int32 `json:"pending,omitempty"`

	// done is the number of directories that have moved since the FileServer was created.
	// +kubebuilder:validation:Minimum=0
	// +required
	Done *int64 `json:"done,omitempty"`
}

// ServerDrain is how far the drain of a data server is.
type ServerDrain struct {
	// state is Emptying while the server owns directories, then WaitingForClients while clients may have it mounted,
	// then Drained. API clients must tolerate new values.
	// +required
	State DrainState `json:"state,omitempty"`

	// emptySinceTime is the time since which the server owns no directories.
	// +optional
	EmptySinceTime *metav1.Time `json:"emptySinceTime,omitempty"`
}

// DrainState is how far the drain of a data server is.
// +kubebuilder:validation:Enum=Emptying;WaitingForClients;Drained
type DrainState string

// States of a data server that is to be idle.
const (
	// DrainEmptying: it still owns directories.
	DrainEmptying DrainState = "Emptying"
	// DrainWaiting: it owns none, and clients may still have it mounted.
	DrainWaiting DrainState = "WaitingForClients"
	// DrainDone: no client is connected, or spec.drain.timeoutSeconds have passed.
	DrainDone DrainState = "Drained"
)

// NamespaceServersStatus is what all namespace servers together report.
// +kubebuilder:validation:MinProperties=1
type NamespaceServersStatus struct {
	// connections are the TCP connections of NFS clients, at most one minute old. The limit of each namespace server
	// follows from the memory in spec.namespaceServers.resources.
	// +optional
	Connections FileServerConnections `json:"connections,omitempty,omitzero"`
}

// FileServerConnections are TCP connections of NFS clients.
type FileServerConnections struct {
	// used is the number of connections, accurate to 1/8.
	// +kubebuilder:validation:Minimum=0
	// +required
	Used *int32 `json:"used,omitempty"`

	// limit is the maximum number of connections.
	// +kubebuilder:validation:Minimum=1
	// +required
	Limit int32 `json:"limit,omitempty"`
}

// ManyConnections reports whether the number of connections is at least 80 % of the limit, which deserves a warning.
func ManyConnections(used, limit int32) bool { return limit > 0 && int64(used)*5 >= int64(limit)*4 }

// CoarseConnections returns the number of connections to report. It is the earlier reported number as long as the
// difference is at most 1/8 and both are on the same side of the warning threshold (ManyConnections), so that not every
// mount causes a write of the status.
func CoarseConnections(earlier, used, limit int32) int32 {
	if ManyConnections(earlier, limit) != ManyConnections(used, limit) {
		return used
	}
	if difference := used - earlier; max(difference, -difference) <= earlier/8 {
		return earlier
	}
	return used
}

// ServerState is the state of a data server.
// +kubebuilder:validation:Enum=Pending;Starting;Serving;Unavailable
type ServerState string

// States of a data server.
const (
	// ServerPending: its pod does not run.
	ServerPending ServerState = "Pending"
	// ServerStarting: its pod runs, and ganesha does not answer yet.
	ServerStarting ServerState = "Starting"
	// ServerServing: ganesha answers with its identity.
	ServerServing ServerState = "Serving"
	// ServerUnavailable: the server served before and does not serve now.
	ServerUnavailable ServerState = "Unavailable"
)

// VolumeFill is how full a volume is.
// +kubebuilder:validation:Enum=Above80;Above90;Above95;Full
type VolumeFill string

// Levels of a volume, by what is used of the space or the inodes that clients can have.
const (
	// FillAbove80: 80 % are used.
	FillAbove80 VolumeFill = "Above80"
	// FillAbove90: 90 % are used.
	FillAbove90 VolumeFill = "Above90"
	// FillAbove95: 95 % are used. New directories go to other volumes, if there are any.
	FillAbove95 VolumeFill = "Above95"
	// FillFull: less is free than a client writes at once (1 MiB), or no inode: writes end with "No space left on device".
	FillFull VolumeFill = "Full"
)

// fillRanks orders the levels.
var fillRanks = map[VolumeFill]int{FillAbove80: 1, FillAbove90: 2, FillAbove95: 3, FillFull: 4}

// Rank orders levels: a fuller one has a greater rank. It is 0 for no level, or an unknown one.
func (f VolumeFill) Rank() int { return fillRanks[f] }

// FileServerCapacity is the total of volumes, in bytes.
type FileServerCapacity struct {
	// totalBytes is the total size of the file systems in bytes.
	// +kubebuilder:validation:Minimum=0
	// +required
	TotalBytes *int64 `json:"totalBytes,omitempty"`

	// usedBytes is the used space of the file systems in bytes.
	// +kubebuilder:validation:Minimum=0
	// +required
	UsedBytes *int64 `json:"usedBytes,omitempty"`

	// freeBytes is the space of the file systems that clients can still use, in bytes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	FreeBytes *int64 `json:"freeBytes,omitempty"`

	// provisionedBytes is the size that the claims have in Kubernetes, in bytes. It is more than totalBytes if claims
	// share a file system, and can be less where a class does not keep a volume to its size. Whether the storage behind
	// the volumes has as much is known to that storage only.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ProvisionedBytes *int64 `json:"provisionedBytes,omitempty"`
}

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// DataServer is one data server. The operator writes the spec, the server's supervisor the status (what ganesha has
// loaded). The generation is the revision of the configuration. The exports are in ShareExports, one for each share.
// Users may read it and must not change it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dsrv
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="FileServer",type=string,JSONPath=`.spec.fileServerRef.name`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.address`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type DataServer struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the desired state of the server.
	// +required
	Spec DataServerSpec `json:"spec,omitzero"`
	// status is what the supervisor reports.
	// +optional
	Status DataServerStatus `json:"status,omitempty,omitzero"`
}

// DataServerSpec is the desired state of a data server.
type DataServerSpec struct {
	// fileServerRef names the FileServer that the server belongs to.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// address is the address at which clients in the cluster and namespace servers reach the server. Referrals have it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Address string `json:"address,omitempty"`

	// outsideAddresses are the addresses or host names at which clients outside the cluster reach the server. Referrals
	// for clients that came through the namespace servers' outside address have them.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	OutsideAddresses []string `json:"outsideAddresses,omitempty"`

	// serverScope is ganesha's Server_Scope: the UID of the FileServer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	// +required
	ServerScope string `json:"serverScope,omitempty"`

	// leaseSeconds is ganesha's Lease_Lifetime in seconds.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=120
	// +required
	LeaseSeconds int32 `json:"leaseSeconds,omitempty"`

	// graceSeconds is ganesha's Grace_Period in seconds.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=180
	// +required
	GraceSeconds int32 `json:"graceSeconds,omitempty"`

	// maxConnections is ganesha's RPC_Max_Connections; unset means 4096.
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=65536
	// +optional
	MaxConnections int32 `json:"maxConnections,omitempty"`

	// volumes is the number of volumes, which are mounted at /volumes/0, /volumes/1 and so on; 1 if the data is in
	// Ceph.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +required
	Volumes int32 `json:"volumes,omitempty"`

	// ceph is the location of the data if it is in Ceph. It is the same for every data server of the FileServer.
	// +optional
	Ceph CephFileSystem `json:"ceph,omitempty,omitzero"`

	// sharedFileSystemPolicy is what to do with a volume that has no file system of its own; unset means Forbid.
	// +kubebuilder:validation:Enum=Forbid;Allow
	// +optional
	SharedFileSystemPolicy v1alpha1.SharedFileSystemPolicy `json:"sharedFileSystemPolicy,omitempty"`

	// lostVolumes are volumes of this server whose data is given up. Another volume may take the place of each.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	LostVolumes []VolumeIdentity `json:"lostVolumes,omitempty"`

	// newDirectories is Forbid if the server must get no new directories, because it is in maintenance or to be
	// removed. Unset: it may get new directories.
	// +optional
	NewDirectories NewDirectories `json:"newDirectories,omitempty"`

	// nodeNetworks is the meaning of the word Nodes in access rules: the addresses of the cluster's nodes, combined
	// into networks where they are adjacent, and the FileServer's additionalNodeNetworks. The list is in each
	// DataServer and not in every ShareExport, so that a new node costs one write for each server. Namespace servers
	// read it here too.
	// +kubebuilder:validation:MaxItems=16384
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=atomic
	// +optional
	NodeNetworks []string `json:"nodeNetworks,omitempty"`

	// lostNodeAddresses are the addresses of the node from which a failover took the server, until its clients have had
	// a grace period since. Clients at these addresses are gone with the node, so the grace period, which is longer
	// after an outage, is not longer for them.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	// +listType=atomic
	// +optional
	LostNodeAddresses []string `json:"lostNodeAddresses,omitempty"`

	// nodeAddresses are the addresses of the node that the server runs on, as clients there have them. In Ceph and only
	// while a share of the FileServer has hot directories. Namespace servers send such a client to this server first.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	// +listType=atomic
	// +optional
	NodeAddresses []string `json:"nodeAddresses,omitempty"`

	// zoneNetworks are the addresses of the nodes in the zone of the server's node (topology.kubernetes.io/zone),
	// combined into networks where they are adjacent. Under the same conditions as nodeAddresses, and only if the
	// FileServer's servers are in several zones. Namespace servers prefer this server for such clients.
	// +kubebuilder:validation:MaxItems=8192
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=atomic
	// +optional
	ZoneNetworks []string `json:"zoneNetworks,omitempty"`

	// moves are the directories that are copied to this server's volumes, or from them. It follows from spec.move of
	// the ShareDirectories, which data servers may not read.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=id
	// +optional
	Moves []MoveTask `json:"moves,omitempty"`

	// directoryLimits is the maximum number of directories of the FileServer's shares. Namespace servers read it here.
	// +optional
	DirectoryLimits DirectoryLimits `json:"directoryLimits,omitempty,omitzero"`
}

// DirectoryLimits is the maximum number of directories of several shares together.
type DirectoryLimits struct {
	// total applies to all shares.
	// +kubebuilder:validation:Minimum=1
	// +required
	Total int32 `json:"total,omitempty"`

	// perNamespace applies to the shares of each Kubernetes namespace except the FileServer's own.
	// +kubebuilder:validation:Minimum=1
	// +required
	PerNamespace int32 `json:"perNamespace,omitempty"`
}

// NewDirectories is whether a data server may get new directories.
// +kubebuilder:validation:Enum=Forbid
type NewDirectories string

// NewDirectoriesForbid means that the server gets no new directories.
const NewDirectoriesForbid NewDirectories = "Forbid"

// RefusesNewDirectories reports whether the server must get no new directories.
func (s *DataServer) RefusesNewDirectories() bool {
	return s.Spec.NewDirectories == NewDirectoriesForbid
}

// HoldsPort reports whether the server has reported that it starts or serves: connections of its clients wait at its port then, or are served.
func (s *DataServer) HoldsPort() bool {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && (ready.Status == metav1.ConditionTrue || ready.Reason == ReasonStarting)
}

const (
	// MaxNodeNetworks is the maximum number of nodeNetworks in a DataServer, about 300 kB.
	MaxNodeNetworks = 16384
	// MaxNodeAddresses is that of nodeAddresses.
	MaxNodeAddresses = 64
	// MaxZoneNetworks is that of zoneNetworks, about 150 kB.
	MaxZoneNetworks = 8192
)

// DataServerStatus is what the supervisor reports.
// +kubebuilder:validation:MinProperties=1
type DataServerStatus struct {
	// conditions are Ready (ganesha answers with its identity and has loaded observedGeneration), GraceEnded (clients
	// no longer reclaim what they had open before ganesha's start) and, for storage that reports its health,
	// StorageHealthy.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that ganesha has loaded.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// nodeName is the node that the server runs on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// podIP is the address of the server's current pod.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=43
	// +optional
	PodIP string `json:"podIP,omitempty"`

	// podUID is the UID of the server's current pod. On the node's network its address is that of the pod before.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PodUID string `json:"podUID,omitempty"`

	// firstPort is the first of the pod's ports on its node's network. Unset means that it has a network of its own.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	FirstPort int32 `json:"firstPort,omitempty"`

	// networkAddresses are the addresses of the pod's node in spec.network.hostNetwork.addressesIn of the FileServer: one of
	// each family. The server's Service leads there. Unset: it leads to podIP.
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	// +listType=atomic
	// +optional
	NetworkAddresses []string `json:"networkAddresses,omitempty"`

	// lastEnd is the last time that the server stopped serving because ganesha or the supervisor was killed, or the pod
	// was replaced.
	// +optional
	LastEnd *v1alpha1.ServerEnd `json:"lastEnd,omitempty"`

	// restartPending are the fields of the specification whose values the running ganesha does not have, because it reads
	// them only when it starts: leaseSeconds, graceSeconds, maxConnections. observedGeneration does not wait for them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	RestartPending []string `json:"restartPending,omitempty"`

	// unreachable is set while the server does not answer NFS at its address. The leader of the namespace servers
	// writes and removes it. It checks every second; the kubelet of a failed node is only noticed after most of a
	// minute.
	// +optional
	Unreachable Unreachable `json:"unreachable,omitempty,omitzero"`

	// volumeIDs are the identities of the volumes that have the server's data. Each volume has its identity in a
	// marker, which is written at first use and recorded here before anything is served from the volume. A volume
	// without a marker, or with another identity, is refused until spec.lostVolumes has the identity recorded here.
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=16
	// +optional
	VolumeIDs []VolumeIdentity `json:"volumeIDs,omitempty"`

	// volumes is the used space of the volumes, at most 60 s old.
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Volumes []VolumeUsage `json:"volumes,omitempty"`

	// shares are the shares that have a directory on the volumes: the first 4 bytes of the SHA-256 of each share's
	// name, sorted, in base64. It is written before a new share is served, so it is valid while the server is down.
	// Unset: not known.
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=43692
	// +optional
	Shares *string `json:"shares,omitempty"`

	// lastExportNumber is the highest number that an export ever had; the Export_Id is its lower 16 bits. It is written
	// before the export is served, so a number is not used again after volumes were restored from an older copy.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +optional
	LastExportNumber *int64 `json:"lastExportNumber,omitempty"`

	// moves is how far the moves of spec.moves are.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=id
	// +optional
	Moves []MoveReport `json:"moves,omitempty"`

	// connections are the TCP connections of NFS clients.
	// +optional
	Connections Connections `json:"connections,omitempty,omitzero"`

	// fence requests that the FileServer's steward blocks Ceph clients that remain from the data server's previous
	// start, before ganesha starts again.
	// +optional
	Fence FenceRequest `json:"fence,omitempty,omitzero"`

	// fenced is the steward's answer to fence. Only the steward writes it.
	// +optional
	Fenced FenceAnswer `json:"fenced,omitempty,omitzero"`
}

// Connections are TCP connections of NFS clients.
type Connections struct {
	// used is the number of connections, accurate to 1/8.
	// +kubebuilder:validation:Minimum=0
	// +required
	Used *int32 `json:"used,omitempty"`

	// limit is the maximum number of connections.
	// +kubebuilder:validation:Minimum=1
	// +required
	Limit int32 `json:"limit,omitempty"`
}

// Unreachable is since when a data server does not answer, and which namespace server found this.
type Unreachable struct {
	// sinceTime is when the first request without an answer was sent.
	// +required
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`

	// seenBy is the name of the namespace server that gets no answer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	SeenBy string `json:"seenBy,omitempty"`
}

// DataServerList is a list of DataServers.
// +kubebuilder:object:root=true
type DataServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DataServer `json:"items"`
}

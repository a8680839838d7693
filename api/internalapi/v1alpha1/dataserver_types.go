package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// DataServer is the object of one data server: its operator writes the spec, its instance manager the
// status (what ganesha has loaded). Its generation is the configuration revision. What it exports is in
// ShareExports, one for each share. Users read it, and don't write it.
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
	// spec is what the operator wants of the server.
	// +required
	Spec DataServerSpec `json:"spec,omitzero"`
	// status is what the instance manager reports.
	// +optional
	Status DataServerStatus `json:"status,omitempty,omitzero"`
}

// DataServerSpec is what the operator wants of a data server.
type DataServerSpec struct {
	// fileServerRef names the FileServer that the server belongs to.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// address is the one address that clients reach the server at; referrals carry it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Address string `json:"address,omitempty"`

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

	// volumes is the number of volumes, mounted at /volumes/0, /volumes/1, and so on; 1 if the data is in Ceph.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +required
	Volumes int32 `json:"volumes,omitempty"`

	// ceph is where the data is if it is not on volumes: the same for every data server of the FileServer.
	// +optional
	Ceph CephFileSystem `json:"ceph,omitempty,omitzero"`

	// sharedFileSystemPolicy says what to do with a volume that is not a file system of its own; unset means Forbid.
	// +kubebuilder:validation:Enum=Forbid;Allow
	// +optional
	SharedFileSystemPolicy v1alpha1.SharedFileSystemPolicy `json:"sharedFileSystemPolicy,omitempty"`

	// lostVolumes are volumes of this server whose data is given up: another volume may take the place of each.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	LostVolumes []VolumeIdentity `json:"lostVolumes,omitempty"`

	// newDirectories is Elsewhere if none are to come to this server: it is in maintenance, or is to go. Unset: they may.
	// +optional
	NewDirectories NewDirectories `json:"newDirectories,omitempty"`

	// nodeNetworks are what the word Nodes in access rules stands for: the addresses of the cluster's nodes, put together to networks
	// where they lie side by side, and the FileServer's additionalNodeNetworks. They are here, once for each data server, and not in every
	// ShareExport, so that a new node costs a write for each server. Namespace servers read them here, too.
	// +kubebuilder:validation:MaxItems=16384
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=atomic
	// +optional
	NodeNetworks []string `json:"nodeNetworks,omitempty"`

	// directoryLimits is how many directories the FileServer's shares may have. Namespace servers read it here.
	// +optional
	DirectoryLimits DirectoryLimits `json:"directoryLimits,omitempty,omitzero"`
}

// DirectoryLimits is how many directories shares may have together.
type DirectoryLimits struct {
	// total is for all shares.
	// +kubebuilder:validation:Minimum=1
	// +required
	Total int32 `json:"total,omitempty"`

	// perNamespace is for the shares of each Kubernetes namespace but the FileServer's own.
	// +kubebuilder:validation:Minimum=1
	// +required
	PerNamespace int32 `json:"perNamespace,omitempty"`
}

// NewDirectories says whether new directories may come to a data server.
// +kubebuilder:validation:Enum=Elsewhere
type NewDirectories string

// NewDirectoriesElsewhere keeps new directories away.
const NewDirectoriesElsewhere NewDirectories = "Elsewhere"

// TakesNone tells whether new directories are to go elsewhere.
func (s *DataServer) TakesNone() bool { return s.Spec.NewDirectories == NewDirectoriesElsewhere }

// MaxNodeNetworks is how many networks a DataServer can have: some 300 kB of an object.
const MaxNodeNetworks = 16384

// CephFileSystem is where in Ceph the data is, and the data server's records.
type CephFileSystem struct {
	// monitors are addresses with ports.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=atomic
	// +required
	Monitors []string `json:"monitors,omitempty"`

	// fsid is the cluster's identity.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	FSID string `json:"fsid,omitempty"`

	// fileSystem is the name of the Ceph file system.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	FileSystem string `json:"fileSystem,omitempty"`

	// recoveryPool has the recovery records and the Export_Ids, in a RADOS namespace of the data server's own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	RecoveryPool string `json:"recoveryPool,omitempty"`

	// recoveryUser may write them.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	RecoveryUser string `json:"recoveryUser,omitempty"`

	// identity is the FileServer's storage identity: the RADOS namespace of the records is made from it. Unset: from serverScope.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Identity string `json:"identity,omitempty"`

	// secretName is the Secret with the shares' directories and the users' keys, which the pod mounts: for messages.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	SecretName string `json:"secretName,omitempty"`

	// stewardName names the Steward that writes this Secret, makes and removes the shares' directories, and fences. Unset: somebody made
	// all that is in the Secret, and nobody fences.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	StewardName string `json:"stewardName,omitempty"`
}

// DataServerStatus is what the instance manager reports.
// +kubebuilder:validation:MinProperties=1
type DataServerStatus struct {
	// conditions are Ready (ganesha answers, with its identity, and has loaded observedGeneration) and, on storage that can tell,
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

	// podIP is the address of the server's present pod.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=43
	// +optional
	PodIP string `json:"podIP,omitempty"`

	// unreachable is set while the server does not answer NFS at its address. The elected namespace server writes
	// it and takes it away: it asks every second, and the kubelet of a dead node says nothing for most of a minute.
	// +optional
	Unreachable Unreachable `json:"unreachable,omitempty,omitzero"`

	// volumeIDs tell which volumes the server has its data on. Each volume has its identity in a marker, which is written when it is first
	// used and is here before anything is served from it. A volume without a marker, or with another identity, is refused until
	// spec.lostVolumes has the identity that is here.
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=16
	// +optional
	VolumeIDs []VolumeIdentity `json:"volumeIDs,omitempty"`

	// volumes tells how full the volumes are, at most 60 s ago.
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Volumes []VolumeUsage `json:"volumes,omitempty"`

	// shares tells which shares have a directory on the volumes: the first 4 bytes of the SHA-256 of each one's name, sorted, in
	// base64. It is written before a new share is served, so that it holds while the server is away. Unset: not known.
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=43692
	// +optional
	Shares *string `json:"shares,omitempty"`

	// lastExportNumber is the greatest number that was ever given to an export; its Export_Id is what 16 bits hold of it. It is
	// written before the export is served: volumes that are restored from an older copy can't bring a number back.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +optional
	LastExportNumber *int64 `json:"lastExportNumber,omitempty"`

	// connections are those of NFS clients.
	// +optional
	Connections Connections `json:"connections,omitempty,omitzero"`

	// fence asks the FileServer's steward to shut out of Ceph what is left of the data server's last start, before ganesha starts again.
	// +optional
	Fence FenceRequest `json:"fence,omitempty,omitzero"`

	// fenced is the steward's answer to fence; the steward writes it, and nobody else.
	// +optional
	Fenced FenceAnswer `json:"fenced,omitempty,omitzero"`
}

// FenceRequest names clients of Ceph that ended with an earlier start of a data server.
type FenceRequest struct {
	// id is another one for each request.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	ID string `json:"id,omitempty"`

	// addresses are those clients, as Ceph names them: address, port and a number that no later client has. The steward shuts out those
	// that watch the data server's own recovery records, and no others.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +required
	Addresses []string `json:"addresses,omitempty"`
}

// FenceAnswer is what a steward says to a FenceRequest.
type FenceAnswer struct {
	// id is that of the request.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	ID string `json:"id,omitempty"`

	// fault is why it was not done; unset if it was.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Fault string `json:"fault,omitempty"`
}

// Connections are TCP connections of NFS clients.
type Connections struct {
	// used is how many there are, to an eighth.
	// +kubebuilder:validation:Minimum=0
	// +required
	Used *int32 `json:"used,omitempty"`

	// limit is how many there may be.
	// +kubebuilder:validation:Minimum=1
	// +required
	Limit int32 `json:"limit,omitempty"`
}

// Unreachable tells since when a data server does not answer, and who asked.
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

// VolumeIdentity names a volume.
type VolumeIdentity struct {
	// index is the volume's number, from 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	// +required
	Index *int32 `json:"index,omitempty"`

	// id is the identity in the volume's marker.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	ID string `json:"id,omitempty"`
}

// VolumeUsage tells how full a volume is.
type VolumeUsage struct {
	// index is the volume's number, from 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	// +required
	Index *int32 `json:"index,omitempty"`

	// totalBytes is the size of the file system in bytes.
	// +kubebuilder:validation:Minimum=0
	// +required
	TotalBytes *int64 `json:"totalBytes,omitempty"`

	// usedBytes is what is used of it in bytes, in steps of 1/64 of the size so that
	// status does not change with every write.
	// +kubebuilder:validation:Minimum=0
	// +required
	UsedBytes *int64 `json:"usedBytes,omitempty"`

	// sharedFileSystem says what else is on the volume's file system; unset if it is one of its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	SharedFileSystem string `json:"sharedFileSystem,omitempty"`
}

// DataServerList is a list of DataServers.
// +kubebuilder:object:root=true
type DataServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DataServer `json:"items"`
}

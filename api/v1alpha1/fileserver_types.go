package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileServer is a set of NFS data servers spread over nodes, each with volumes
// of its own or all on one Ceph file system, and the namespace servers that join them into one tree behind one address.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=fsrv,categories=nfs
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Servers",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="metadata.name must be at most 40 characters: pod, Service and label names are made from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label that starts with a letter (no dots): Service names are made from it"
type FileServer struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is what the user wants.
	// +required
	Spec FileServerSpec `json:"spec,omitzero"`
	// Why there is a default: kstatus, by which Flux and others wait, takes an object without any status for Current.

	// status is what the operator sees.
	// +kubebuilder:default={observedGeneration: 0}
	// +optional
	Status FileServerStatus `json:"status,omitempty,omitzero"`
}

// FileServerSpec is what the user wants of a FileServer.
type FileServerSpec struct {
	// replicas is the number of data servers. Unset means one for each eligible node,
	// following the nodes as they come; data servers are never removed while they own directories. Lowered, it is refused while a server
	// that would go owns some, as its data is on its volumes; with storage.ceph their directories go to the others first, and it is
	// waited for their clients (drain).
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// storage says where the data lives.
	// +required
	Storage FileServerStorage `json:"storage,omitzero"`

	// placement says which nodes data servers run on.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// drain says which data servers are in maintenance, and how long servers that are to be idle wait for their clients.
	// +optional
	Drain *Drain `json:"drain,omitempty"`

	// pods is for the pods of data servers and of namespace servers.
	// +optional
	Pods *PodSettings `json:"pods,omitempty"`

	// frontDoor configures the namespace servers, which answer at the address that clients mount.
	// +kubebuilder:default={}
	// +optional
	FrontDoor *FrontDoor `json:"frontDoor,omitempty"`

	// nfs tunes the NFS protocol.
	// +kubebuilder:default={}
	// +optional
	NFS *NFSOptions `json:"nfs,omitempty"`

	// keyGeneration counts the secrets of the servers: the keys with which data servers sign file handles, and the certificates
	// by which data servers and namespace servers know each other. Raise it by one for new ones: the pods restart one
	// after the other, and what the generation before it signed is still taken, so clients notice nothing. Handles
	// and certificates of earlier generations are refused; who has such a handle must mount again.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="keyGeneration can't go back: keys that were replaced stay replaced"
	// +optional
	KeyGeneration int32 `json:"keyGeneration,omitempty"`

	// resources are the compute resources of each data server's container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// allowedNamespaces says whose FileShares the FileServer serves; unset means those of its own Kubernetes namespace.
	// Where it is taken back from a namespace, its shares are no longer served; their data stays on the volumes.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`

	// additionalNodeNetworks are addresses and networks that count as the cluster's nodes in access rules of shares, besides those that
	// Kubernetes tells of its nodes. They are for network plugins that give nodes addresses of which Kubernetes knows nothing. Pods'
	// addresses don't belong here: whatever is in it may use every share that lets nodes in.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c) || isIP(c))",message="additionalNodeNetworks must be addresses (10.0.0.7) or networks (10.0.0.0/8); names of hosts can't be used"
	// +listType=set
	// +optional
	AdditionalNodeNetworks []string `json:"additionalNodeNetworks,omitempty"`
}

// Drain is for data servers that are to be idle: in maintenance, or on their way out because spec.replicas was lowered.
type Drain struct {
	// servers are the names of data servers in maintenance. They run on and get no new directories. With storage.ceph the directories
	// that they have go to the others; status.servers tells when one is idle. With storage.volumes directories stay where their data is.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^[a-z][-a-z0-9]*-[0-9]+$'))",message="drain.servers are names of data servers as status.servers has them: training-1"
	// +listType=set
	// +optional
	Servers []string `json:"servers,omitempty"`

	// limitSeconds is how long after its last directory has gone a data server is kept for clients that have not unmounted it, in
	// seconds; unset means 3600. Then a server that is to go goes, and who still has a file open there waits for it for ever.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +optional
	LimitSeconds *int32 `json:"limitSeconds,omitempty"`
}

// AllowedNamespaces says which Kubernetes namespaces may have FileShares on a FileServer, as a Gateway's
// allowedRoutes.namespaces does for routes. The FileServer's own namespace always may.
// +kubebuilder:validation:XValidation:rule="(has(self.from) && self.from == 'Selector') == has(self.selector)",message="selector goes with from: Selector, and that needs one; from: All allows every namespace"
type AllowedNamespaces struct {
	// from tells how namespaces are chosen; unset means Same. Clients must tolerate new values.
	// +kubebuilder:default=Same
	// +optional
	From NamespacesFrom `json:"from,omitempty"`

	// selector chooses namespaces by their labels, if from is Selector. Every namespace has the label
	// kubernetes.io/metadata.name, by which it can be named.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="an empty selector would choose every namespace; write from: All if that is meant"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="matchExpressions need an operator: In or NotIn with values, Exists or DoesNotExist without"
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// NamespacesFrom tells how Kubernetes namespaces are chosen.
// +kubebuilder:validation:Enum=Same;All;Selector
type NamespacesFrom string

// Ways to choose namespaces.
const (
	// NamespacesFromSame allows the FileServer's own namespace alone.
	NamespacesFromSame NamespacesFrom = "Same"
	// NamespacesFromAll allows every namespace.
	NamespacesFromAll NamespacesFrom = "All"
	// NamespacesFromSelector allows the namespaces that have the labels of a selector.
	NamespacesFromSelector NamespacesFrom = "Selector"
)

// FileServerStorage is a union of the storage back ends; exactly one is set, and it can't be exchanged later.
// +kubebuilder:validation:ExactlyOneOf=volumes;ceph
// +kubebuilder:validation:XValidation:rule="has(self.volumes) == has(oldSelf.volumes)",message="storage can't change from volumes to ceph or back: the data is where it is; make another FileServer and copy"
type FileServerStorage struct {
	// volumes gives every data server PersistentVolumes of its own.
	// +optional
	Volumes VolumesStorage `json:"volumes,omitempty,omitzero"`

	// ceph keeps all shares in a Ceph file system, which every data server reaches.
	// +optional
	Ceph CephStorage `json:"ceph,omitempty,omitzero"`
}

// CephStorage keeps all shares in a Ceph file system: each data server can serve each directory.
// +kubebuilder:validation:ExactlyOneOf=external;rook
// +kubebuilder:validation:XValidation:rule="has(self.rook) == has(oldSelf.rook)",message="storage.ceph can't change from external to rook or back: the shares' directories are where they are; make another FileServer and copy"
type CephStorage struct {
	// external is a Ceph cluster that somebody else runs. Each share has a directory and a user of its own there, which somebody made, or Howdah.
	// +optional
	External ExternalCeph `json:"external,omitempty,omitzero"`

	// rook is a Ceph cluster that Rook runs, in the FileServer's Kubernetes namespace. Howdah asks Rook for an account and a subvolume
	// group, follows its monitors, and makes a directory and a user for each share.
	// +optional
	Rook RookCeph `json:"rook,omitempty,omitzero"`
}

// RookCeph names a Ceph cluster of Rook's and what of it to use.
// +kubebuilder:validation:XValidation:rule="self.clusterRef == oldSelf.clusterRef",message="clusterRef can't be changed: the data is in that cluster; make another FileServer and copy"
// +kubebuilder:validation:XValidation:rule="self.fileSystem == oldSelf.fileSystem",message="fileSystem can't be changed: the data is in that one; make another FileServer if it was never right"
// +kubebuilder:validation:XValidation:rule="self.recoveryPool == oldSelf.recoveryPool",message="recoveryPool can't be changed: what clients hold is remembered there; make another FileServer if it was never right"
type RookCeph struct {
	// clusterRef names the CephCluster. It is in the Kubernetes namespace of the FileServer, as everything is that Rook makes for a cluster;
	// shares and volumes of other namespaces come by spec.allowedNamespaces.
	// +required
	ClusterRef CephClusterReference `json:"clusterRef,omitzero"`

	// fileSystem is the name of the CephFilesystem; of a cluster that is external to Rook, of the file system in Ceph.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="fileSystem is the name that kubectl get cephfilesystems prints: letters, digits, dots, dashes and underscores"
	// +required
	FileSystem string `json:"fileSystem,omitempty"`

	// createFileSystem has the CephFilesystem made once, if there is none of the name. From then on it is yours: it is neither changed nor
	// deleted by Howdah, and one that was there and is missed is not made again, empty. Unset: it must exist.
	// +optional
	CreateFileSystem RookFileSystem `json:"createFileSystem,omitempty,omitzero"`

	// recoveryPool is the RADOS pool in which data servers remember their clients across restarts, each in a RADOS namespace of its own:
	// the FileServer's UID and the server's number. It is not one of the file system's pools. A CephBlockPool makes such a pool; several
	// FileServers can have the same.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="recoveryPool is the name that kubectl get cephblockpools, or ceph osd pool ls, prints: letters, digits, dots, dashes and underscores"
	// +required
	RecoveryPool string `json:"recoveryPool,omitempty"`
}

// ExternalCeph names a Ceph cluster and what of it to use.
// +kubebuilder:validation:XValidation:rule="self.fsid == oldSelf.fsid",message="fsid can't be changed: the data is in that cluster; make another FileServer if it was never right"
// +kubebuilder:validation:XValidation:rule="self.fileSystem == oldSelf.fileSystem",message="fileSystem can't be changed: the data is in that one; make another FileServer if it was never right"
// +kubebuilder:validation:XValidation:rule="self.recoveryPool == oldSelf.recoveryPool",message="recoveryPool can't be changed: what clients hold is remembered there; make another FileServer if it was never right"
// +kubebuilder:validation:XValidation:rule="has(self.recoveryUser) == has(oldSelf.recoveryUser) && (!has(self.recoveryUser) || self.recoveryUser == oldSelf.recoveryUser)",message="recoveryUser can't be changed: data servers that run go on as that user; make another FileServer if it was never right"
// +kubebuilder:validation:XValidation:rule="has(self.sharesSecretRef) != has(self.provisioningSecretRef)",message="exactly one of sharesSecretRef (directories and users that are there already) and provisioningSecretRef (Howdah makes them) must be set"
// +kubebuilder:validation:XValidation:rule="has(self.sharesSecretRef) == has(self.recoveryUser)",message="recoveryUser goes with sharesSecretRef; with provisioningSecretRef Howdah makes a user for each data server"
// +kubebuilder:validation:XValidation:rule="has(self.provisioningSecretRef) == has(oldSelf.provisioningSecretRef)",message="sharesSecretRef and provisioningSecretRef can't be exchanged: the shares' directories are where they are; make another FileServer and copy"
type ExternalCeph struct {
	// monitors are the addresses of the monitors with their ports: 10.0.0.1:3300, or [fd00::1]:3300. They can be changed: data servers
	// that run learn of new monitors from Ceph itself, and use these for shares that come later and when they start.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(m, m.matches('^([0-9.]+|[[][0-9a-fA-F:.]+[]]):[1-9][0-9]{0,4}$') && isIP(m.substring(0, m.lastIndexOf(':')).replace('[', '').replace(']', '')) && int(m.substring(m.lastIndexOf(':') + 1)) < 65536)",message="a monitor is an IP address with a port: 10.0.0.1:3300 or [fd00::1]:3300; names of hosts can't be used"
	// +listType=atomic
	// +required
	Monitors []string `json:"monitors,omitempty"`

	// fsid is the cluster's identity, as ceph fsid prints it. A cluster with another one is not used.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="fsid is what ceph fsid prints: 6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c"
	// +required
	FSID string `json:"fsid,omitempty"`

	// fileSystem is the name of the Ceph file system, as ceph fs ls prints it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="fileSystem is the name that ceph fs ls prints: letters, digits, dots, dashes and underscores"
	// +required
	FileSystem string `json:"fileSystem,omitempty"`

	// recoveryPool is the RADOS pool in which data servers remember their clients across restarts, each in a RADOS namespace of its own:
	// the FileServer's UID and the server's number. It is not one of the file system's pools.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="recoveryPool is the name that ceph osd pool ls prints: letters, digits, dots, dashes and underscores"
	// +required
	RecoveryPool string `json:"recoveryPool,omitempty"`

	// recoveryUser is the cephx user, without "client.", that may read and write there: mon 'allow r',
	// osd 'allow rwx pool=POOL namespace=UID-*'. Its key is in the Secret of sharesSecretRef, with which it is required. With
	// provisioningSecretRef it must be unset: each data server gets a user of its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="recoveryUser is the name of a cephx user without \"client.\": letters, digits, dashes and underscores"
	// +optional
	RecoveryUser string `json:"recoveryUser,omitempty"`

	// sharesSecretRef names a Secret of this namespace with an entry SHARE.json, {"path": ..., "user": ...}, for each share, and
	// an entry client.USER.keyring for each user, that of recoveryUser included. Each share has a directory and a user of its own.
	// The Secret may come later, and get more entries at any time; only data servers read it.
	// +optional
	SharesSecretRef SecretReference `json:"sharesSecretRef,omitempty,omitzero"`

	// provisioningSecretRef names a Secret of this namespace with a cephx user (userID, without "client.") and its key (userKey), as
	// which Howdah makes a subvolume and a user for each share, and a user for the recovery records of each data server. The Secret may
	// come later and can be replaced; only one pod reads it, the FileServer's steward.
	// +optional
	ProvisioningSecretRef SecretReference `json:"provisioningSecretRef,omitempty,omitzero"`
}

// RookFileSystem is what to say of a CephFilesystem that is made: one active metadata server with a standby that follows it, a pool for
// metadata and one for data. Who wants more makes it.
type RookFileSystem struct {
	// replicatedSize is how many copies there are of everything.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +required
	ReplicatedSize int32 `json:"replicatedSize,omitempty"`

	// failureDomain is what no two copies share: host, or another level of Ceph's CRUSH map, such as rack or zone. Unset means host.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="failureDomain is a level of the CRUSH map: osd, host, rack, zone, …"
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`
}

// VolumesStorage backs each data server with PersistentVolumeClaims.
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="storageClassName can't be changed: volumes can't move to another class"
// +kubebuilder:validation:XValidation:rule="self.perServer == oldSelf.perServer",message="perServer can't be changed: directories are placed on volumes"
// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self.size)) || !isQuantity(string(oldSelf.size)) || quantity(string(self.size)).compareTo(quantity(string(oldSelf.size))) >= 0",message="size can't shrink: volumes can only grow"
// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self.size)) || quantity(string(self.size)).compareTo(quantity('16Mi')) >= 0",message="size must be at least 16Mi"
type VolumesStorage struct {
	// storageClassName names the StorageClass of the claims. Unset means the cluster's default class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`

	// size is the size of each volume. It can grow where the StorageClass allows expansion; it can't shrink.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="size must be a number with a unit of Kubernetes and no space: 100Gi, 1.5Ti, 10G (not \"10 GB\")"
	// +required
	Size *resource.Quantity `json:"size,omitempty"`

	// perServer is the number of volumes of each data server; unset means 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +optional
	PerServer int32 `json:"perServer,omitempty"`

	// sharedFileSystemPolicy says what to do with a volume that is not a file system of its own but, for example, a directory
	// of the node's disk, as local-path provisioners make. Forbid, the default: nothing is exported from it. Allow: it is used, for
	// trusted clients and trials: if a file handle is ever forged or leaks with its key, clients can reach the rest of that file
	// system, the node's own files included, and size and free space are those of all of it.
	// +kubebuilder:default=Forbid
	// +optional
	SharedFileSystemPolicy SharedFileSystemPolicy `json:"sharedFileSystemPolicy,omitempty"`
}

// SharedFileSystemPolicy says what to do with volumes that are not file systems of their own.
// +kubebuilder:validation:Enum=Forbid;Allow
type SharedFileSystemPolicy string

// What to do with volumes that are not file systems of their own.
const (
	// SharedFileSystemForbid exports nothing from them.
	SharedFileSystemForbid SharedFileSystemPolicy = "Forbid"
	// SharedFileSystemAllow uses them.
	SharedFileSystemAllow SharedFileSystemPolicy = "Allow"
)

// FrontDoor configures the namespace servers: small stateless NFSv4.1
// servers that answer directories and refer clients to the data servers.
type FrontDoor struct {
	// placement says which nodes namespace servers run on.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// replicas is the number of namespace servers; unset means 2.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// maxWaitSeconds is how long a client that enters a directory is put off while the directory's data server does not
	// serve; then the client's mount fails. Unset: for as long as the client waits, as a hard mount does.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	MaxWaitSeconds int32 `json:"maxWaitSeconds,omitempty"`

	// resources are the compute resources of each namespace server's container. Unset means requests of 10m CPU and 64Mi
	// memory, and a limit of 512Mi memory. What clients may make it hold (connections, sessions, replies) follows the limit.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// NFSOptions tunes the NFS protocol.
// +kubebuilder:validation:XValidation:rule="!has(self.graceSeconds) || !has(self.leaseSeconds) || self.graceSeconds >= self.leaseSeconds",message="graceSeconds must be at least leaseSeconds, or clients can't reclaim their state after a restart (RFC 8881 section 8.4.2)"
type NFSOptions struct {
	// leaseSeconds is the lease of client state in seconds (ganesha: Lease_Lifetime); unset means 10, with storage.ceph 6.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=120
	// +optional
	LeaseSeconds int32 `json:"leaseSeconds,omitempty"`

	// graceSeconds is how long a restarted data server waits for clients to reclaim their
	// state, in seconds, at the most (ganesha: Grace_Period); unset means twice the lease, and at least 20, with storage.ceph 12.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=180
	// +optional
	GraceSeconds int32 `json:"graceSeconds,omitempty"`

	// maxConnections is how many TCP connections each data server takes (ganesha: RPC_Max_Connections); more are refused. A
	// client has as many as its mount option nconnect says, to every server that it has entered a directory of. Unset means
	// as many as the memory of spec.resources is good for, which status.servers shows.
	// +kubebuilder:validation:Minimum=64
	// +kubebuilder:validation:Maximum=65536
	// +optional
	MaxConnections int32 `json:"maxConnections,omitempty"`
}

// FileServerList is a list of FileServers.
// +kubebuilder:object:root=true
type FileServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FileServer `json:"items"`
}

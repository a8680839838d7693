package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileShare is a directory tree in the namespace of a FileServer.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=fshare,categories=nfs
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="FileServer",type=string,JSONPath=`.spec.fileServerRef.name`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`
// +kubebuilder:printcolumn:name="Layout",type=string,JSONPath=`.spec.layout`
// +kubebuilder:printcolumn:name="Directories",type=integer,JSONPath=`.status.directories.count`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.quota.used`
// +kubebuilder:printcolumn:name="Quota",type=string,JSONPath=`.status.quota.size`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50",message="metadata.name must be at most 50 characters: names of objects and volumes are made from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label (no dots): the share's directory on the volumes has this name"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.matches('^data-[0-9]+-.+-[0-9]+$')",message="metadata.name must not have the form data-N-NAME-N: claims of data servers have such names"
type FileShare struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the desired state.
	// +required
	Spec FileShareSpec `json:"spec,omitzero"`
	// Reason for the default: kstatus, which Flux and others use to wait, considers an object without any status Current.

	// status is the observed state.
	// +kubebuilder:default={observedGeneration: 0}
	// +optional
	Status FileShareStatus `json:"status,omitempty,omitzero"`
}

// FileShareSpec is the desired state of a FileShare.
// +kubebuilder:validation:XValidation:rule="self.fileServerRef == oldSelf.fileServerRef",message="fileServerRef can't be changed: the data is on that FileServer's volumes"
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path can't be changed: clients have it mounted; create another share"
// +kubebuilder:validation:XValidation:rule="self.layout == oldSelf.layout",message="layout can't be changed: it decides where data is stored; create another share"
// +kubebuilder:validation:XValidation:rule="self.depth == oldSelf.depth",message="depth can't be changed: it decides how directories are placed; create another share"
// +kubebuilder:validation:XValidation:rule="has(self.claimRef) == has(oldSelf.claimRef) && (!has(self.claimRef) || self.claimRef == oldSelf.claimRef)",message="claimRef can't be changed: it is set when the share is created"
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source)",message="source can't be changed: it is the initial content of the share; create another share"
// +kubebuilder:validation:XValidation:rule="self.layout != 'Single' || (self.depth == 1 && !has(self.directories))",message="depth and directories are for layout Distributed: a Single share is one directory on one server"
// +kubebuilder:validation:XValidation:rule="self.layout != 'Single' || !has(self.hotDirectories) || self.hotDirectories.all(h, !has(h.paths))",message="hotDirectories[].paths is for layout Distributed: a Single share is one directory; leave paths out"
// +kubebuilder:validation:XValidation:rule="!has(self.findHotDirectories) || !has(self.hotDirectories) || self.hotDirectories.all(h, has(h.paths))",message="findHotDirectories finds nothing: an entry of hotDirectories without paths has all directories hot; remove that entry, or findHotDirectories"
// +kubebuilder:validation:XValidation:rule="!has(self.ignoreDataOn) || self.ignoreDataOn.all(s, s.matches('^[a-z].*-(0|[1-9][0-9]*)$') && s.substring(0, s.lastIndexOf('-')) == self.fileServerRef.name)",message="ignoreDataOn are data servers of spec.fileServerRef: NAME-0, NAME-1",fieldPath=".ignoreDataOn"
type FileShareSpec struct {
	// fileServerRef names the FileServer, in this Kubernetes namespace or in one that allows shares of this namespace.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// path is the path of the share in the FileServer's tree: "/name" or "/name/name". The path of one share must not
	// lie in the path of another.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}){1,2}$')",message="path must be /NAME or /NAME/NAME, each of at most 63 letters, digits, '_', '.' and '-', the first a letter, a digit or '_': for example /data or /team/data"
	// +required
	Path string `json:"path,omitempty"`

	// layout is how the share's data is distributed; unset means Distributed. API clients must tolerate new values.
	// +kubebuilder:default=Distributed
	// +optional
	Layout ShareLayout `json:"layout,omitempty"`

	// depth is the number of directory levels below the share's root at which directories are distributed over the data
	// servers; unset means 1. Directories above that level exist only in the namespace and contain only directories.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +optional
	Depth int32 `json:"depth,omitempty"`

	// directories are created with the share. Each has as many path elements as depth. Shell brace expressions are
	// expanded: "train/{0..15}", "{train,valid}/{00..07}". Clients create more with mkdir. A directory that is removed
	// from this list is deleted only if it is empty.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9_{][A-Za-z0-9_{},./=+@:-]*$') && !self.split('/').exists(e, e == '..' || e == '.' || e == '')",message="a directory must be a path below the share (no '/' first or last, no '.' or '..') of letters, digits and _ . - = + @ :, with braces for several: train/{0..15}"
	// +kubebuilder:validation:items:XValidation:rule="!self.contains('/.howdah')",message="names that begin with .howdah are those of Howdah's own directories: use another name"
	// +listType=set
	// +optional
	Directories []string `json:"directories,omitempty"`

	// hotDirectories are directories that several data servers serve at the same time. Each client is sent to one of
	// them and stays there, so that many clients read one directory faster than one data server can send. It requires
	// storage that all data servers share. On other storage the condition HotDirectoriesServed is False and the share
	// is not Ready, but it is served. The first entry that has a directory applies. Unset: only the owner of a directory
	// serves it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	HotDirectories []HotDirectories `json:"hotDirectories,omitempty"`

	// findHotDirectories has other directories become hot, too, while many clients use them, and have one data server
	// again when they cool down. At most 16 directories are hot at a time because they were found. As hotDirectories, it
	// requires storage that all data servers share. Unset: only hotDirectories are hot.
	// +optional
	FindHotDirectories HotDirectorySearch `json:"findHotDirectories,omitempty,omitzero"`

	// maxDirectories is the maximum number of directories of the share at its depth and above, declared or made by
	// clients; unset means 10000. Beyond it, mkdir fails with "Disk quota exceeded". Each directory is an API object.
	// +kubebuilder:default=10000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxDirectories int32 `json:"maxDirectories,omitempty"`

	// quota limits the space of the share's files. If the storage can't enforce it, the condition QuotaEnforced is
	// False and the share is not Ready, but it is served without a limit. Unset: no limit but the capacity of the
	// storage.
	// +optional
	Quota ShareQuota `json:"quota,omitempty,omitzero"`

	// uid is the numeric user ID of the owner of the share's root and declared directories; unset means 0.
	// A change applies to the root, and to directories that are declared later.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +optional
	UID *int64 `json:"uid,omitempty"`

	// gid is the numeric group ID of the share's root and declared directories; unset means 0.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +optional
	GID *int64 `json:"gid,omitempty"`

	// mode is the permission bits of the share's root and declared directories, in octal; unset means "0755".
	// +kubebuilder:default="0755"
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^0?[0-7]{3,4}$')",message="mode must be octal permission bits in quotes, for example \"0755\" or \"2775\""
	// +optional
	Mode string `json:"mode,omitempty"`

	// access are the access rules. The first rule that contains the client's address applies; a client in no rule does
	// not see the share. Unset means clients: [Nodes]: the cluster's nodes, and so pods with the share's claim, may
	// read and write, and root is not squashed.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.clients.all(c, c == 'Nodes' || isCIDR(c) || isIP(c)))",message="clients must be addresses (10.0.0.7), networks (10.0.0.0/8) or the word Nodes, which stands for all nodes of the cluster; host names can't be used"
	// +listType=atomic
	// +optional
	Access []AccessRule `json:"access,omitempty"`

	// reclaimPolicy is what happens to the data when the share is deleted; unset means Retain. API clients must
	// tolerate new values.
	// +kubebuilder:default=Retain
	// +optional
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy,omitempty"`

	// ignoreDataOn names data servers (FILESERVER-N) that no longer have data of this share, or whose data of it is
	// given up. The share's directories are placed without an inventory of these servers, and never on them. Use it for
	// data servers that never come back.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	IgnoreDataOn []string `json:"ignoreDataOn,omitempty"`

	// acceptedLosses are IDs of losses whose directories are given up. The condition JunctionsResolved shows the ID
	// while directories are missing on their data servers. Declared directories of the loss are made again, empty;
	// others are removed from the share. Each loss has its own ID, so an entry accepts no later loss. An entry can be
	// removed when the loss is resolved.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=16
	// +kubebuilder:validation:items:MaxLength=16
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[0-9a-f]{16}$')",message="an entry is the ID of a loss: 16 hexadecimal digits, as shown in the condition JunctionsResolved"
	// +listType=set
	// +optional
	AcceptedLosses []string `json:"acceptedLosses,omitempty"`

	// source is the initial content of the share; unset: empty. It requires storage with snapshots; on other storage
	// the share is not served, and its conditions say so.
	// +optional
	Source ShareSource `json:"source,omitempty,omitzero"`

	// claimRef names the PersistentVolumeClaim for which a StorageClass of Howdah made the share; the provisioner sets
	// it. The claim has its own PersistentVolume and may be in any Kubernetes namespace. Unset: the share comes with a
	// claim of the same name.
	// +optional
	ClaimRef ClaimReference `json:"claimRef,omitempty,omitzero"`
}

// HotDirectories are directories of a share that several data servers serve.
type HotDirectories struct {
	// paths are directories at the share's depth, with brace expressions as in spec.directories. They need not exist
	// yet. All entries of a share together can name 128. Unset: all directories of the share.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9_{][A-Za-z0-9_{},./=+@:-]*$') && !self.split('/').exists(e, e == '..' || e == '.' || e == '')",message="a path must be a path below the share (no '/' first or last, no '.' or '..') of letters, digits and _ . - = + @ :, with braces for several: train/{0..15}"
	// +kubebuilder:validation:items:XValidation:rule="!self.contains('/.howdah')",message="names that begin with .howdah are those of Howdah's own directories: use another name"
	// +listType=set
	// +optional
	Paths []string `json:"paths,omitempty"`

	// dataServers is the number of data servers that serve each of the directories, including its owner. If the
	// FileServer has fewer, all of them serve it.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=64
	// +required
	DataServers int32 `json:"dataServers,omitempty"`
}

// HotDirectorySearch is when a directory of a share is found to be hot.
type HotDirectorySearch struct {
	// clients is how many clients must use a directory at the same time: different addresses that one namespace server
	// sent there in the last 15 minutes; unset means 8. An hour after there were that many for the last time, the
	// directory is no longer hot.
	// +kubebuilder:default=8
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=256
	// +optional
	Clients int32 `json:"clients,omitempty"`

	// dataServers is the number of data servers that serve a directory that was found, including its owner. If the
	// FileServer has fewer, all of them serve it.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=64
	// +required
	DataServers int32 `json:"dataServers,omitempty"`
}

// DefaultHotClients is spec.findHotDirectories.clients if it is unset.
const DefaultHotClients = 8

// ShareSource is the initial content of a share.
type ShareSource struct {
	// snapshotRef names a FileShareSnapshot in this Kubernetes namespace, of a share on the same FileServer with the
	// same layout and depth. The storage copies its content. After that the share and the snapshot are independent.
	// +required
	SnapshotRef SnapshotReference `json:"snapshotRef,omitzero"`
}

// ShareQuota limits the space of a share's files.
// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self.size)) || quantity(string(self.size)).compareTo(quantity('4Mi')) >= 0 && quantity(string(self.size)).compareTo(quantity('1Ei')) <= 0",message="size must be from 4Mi to 1Ei"
type ShareQuota struct {
	// size is the maximum total size of the share's files, in steps of 4Mi. Writes beyond it fail with "Disk quota
	// exceeded", and df shows it. It can be changed while clients write. A size below the used space is refused, and
	// the quota is not changed.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="size must be a Kubernetes quantity, without a space: 100Gi, 1.5Ti, 10G (not \"10 GB\")"
	// +required
	Size *resource.Quantity `json:"size,omitempty"`
}

// MinQuotaBytes is the smallest quota, in bytes: the granularity in which Ceph reports quotas.
const MinQuotaBytes = 4 << 20

// ShareLayout is how the data of a share is distributed.
// +kubebuilder:validation:Enum=Distributed;Single
type ShareLayout string

// Layouts of a share.
const (
	// LayoutDistributed distributes the directories at the share's depth over the data servers.
	LayoutDistributed ShareLayout = "Distributed"
	// LayoutSingle keeps the whole share on one data server.
	LayoutSingle ShareLayout = "Single"
)

// ReclaimPolicy is what happens to a share's data when the share is deleted.
// +kubebuilder:validation:Enum=Retain;Delete
type ReclaimPolicy string

// Reclaim policies.
const (
	// ReclaimRetain keeps the data; a share of the same name finds it again.
	ReclaimRetain ReclaimPolicy = "Retain"
	// ReclaimDelete removes the share's directory from every volume.
	ReclaimDelete ReclaimPolicy = "Delete"
)

// AccessRule gives clients access to a share by address.
type AccessRule struct {
	// clients are CIDRs, single addresses, or the word Nodes, which stands for the addresses of the cluster's nodes and
	// the FileServer's spec.additionalNodeNetworks. Pods that use a claim connect from the address of their node; pod
	// addresses are not in Nodes. For all clients use 0.0.0.0/0 and ::/0.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=set
	// +required
	Clients []string `json:"clients,omitempty"`

	// accessType is ReadWrite or ReadOnly; unset means ReadWrite. API clients must tolerate new values.
	// +optional
	AccessType AccessType `json:"accessType,omitempty"`

	// squash is which users are mapped to the anonymous user (65534); unset means None. API clients must tolerate new
	// values.
	// +optional
	Squash Squash `json:"squash,omitempty"`

	// sourcePorts is which source ports clients may use; unset means Any. Reserved ports are below 1024. If a client
	// machine allows only root to use them (the default of Linux outside of containers), only its kernel and root can
	// access the share. Programs in pods with a network of their own can use them as well. The NFS client of Linux uses
	// ports 665 to 1023. API clients must tolerate new values.
	// +optional
	SourcePorts SourcePorts `json:"sourcePorts,omitempty"`
}

// ClientNodes is the entry of an access rule's clients that stands for the addresses of the cluster's nodes.
const ClientNodes = "Nodes"

// SourcePorts is which source ports a client may use (ganesha: PrivilegedPort).
// +kubebuilder:validation:Enum=Any;Reserved
type SourcePorts string

// Source ports.
const (
	// SourcePortsAny accepts clients from every port.
	SourcePortsAny SourcePorts = "Any"
	// SourcePortsReserved accepts clients only from ports below 1024.
	SourcePortsReserved SourcePorts = "Reserved"
)

// AccessType is what a client may do (ganesha: Access_Type).
// +kubebuilder:validation:Enum=ReadWrite;ReadOnly
type AccessType string

// Access types.
const (
	// AccessReadWrite lets clients read and write.
	AccessReadWrite AccessType = "ReadWrite"
	// AccessReadOnly lets clients read.
	AccessReadOnly AccessType = "ReadOnly"
)

// Squash is which users are mapped to the anonymous user (65534).
// +kubebuilder:validation:Enum=None;Root;All
type Squash string

// Squash values, as ganesha's Squash option.
const (
	// SquashNone maps no user.
	SquashNone Squash = "None"
	// SquashRoot maps root (UID 0).
	SquashRoot Squash = "Root"
	// SquashAll maps every user.
	SquashAll Squash = "All"
)

// FileShareList is a list of FileShares.
// +kubebuilder:object:root=true
type FileShareList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FileShare `json:"items"`
}

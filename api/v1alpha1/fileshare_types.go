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
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.matches('^data-[0-9]+-.+-[0-9]+$')",message="metadata.name must not be data-N-NAME-N: claims of data servers are named so, and this share's claim would take the name of one"
type FileShare struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is what the user wants.
	// +required
	Spec FileShareSpec `json:"spec,omitzero"`
	// Why there is a default: kstatus, by which Flux and others wait, takes an object without any status for Current.

	// status is what the operator sees.
	// +kubebuilder:default={observedGeneration: 0}
	// +optional
	Status FileShareStatus `json:"status,omitempty,omitzero"`
}

// FileShareSpec is what the user wants of a FileShare.
// +kubebuilder:validation:XValidation:rule="self.fileServerRef == oldSelf.fileServerRef",message="fileServerRef can't be changed: the data lives on that FileServer's volumes"
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path can't be changed: clients have it mounted; make a new share"
// +kubebuilder:validation:XValidation:rule="self.layout == oldSelf.layout",message="layout can't be changed: data lies on the volumes by it; make a new share"
// +kubebuilder:validation:XValidation:rule="self.depth == oldSelf.depth",message="depth can't be changed: directories are placed by it; make a new share"
// +kubebuilder:validation:XValidation:rule="has(self.claimRef) == has(oldSelf.claimRef) && (!has(self.claimRef) || self.claimRef == oldSelf.claimRef)",message="claimRef can't be changed: whether a share has a ready-made claim is decided when it is made"
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source)",message="source can't be changed: it says what the share had in it when it was made; make a new share"
// +kubebuilder:validation:XValidation:rule="self.layout != 'Single' || (self.depth == 1 && !has(self.directories))",message="depth and directories are for layout Distributed: a Single share is one directory on one server"
type FileShareSpec struct {
	// fileServerRef names the FileServer, in this Kubernetes namespace or in one whose FileServer allows shares of this one.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// path is the place of the share in the FileServer's tree: "/name" or "/name/name".
	// Paths of shares must not lie in one another.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}){1,2}$')",message="path must be /NAME or /NAME/NAME, each of at most 63 letters, digits, '_', '.' and '-', the first a letter, a digit or '_': for example /data or /team/data"
	// +required
	Path string `json:"path,omitempty"`

	// layout tells how the share's data is laid out; unset means Distributed. Clients must tolerate new values.
	// +kubebuilder:default=Distributed
	// +optional
	Layout ShareLayout `json:"layout,omitempty"`

	// depth is the number of directory levels below the share's root at which directories
	// are spread over the data servers; unset means 1. Directories above that level exist in the namespace only
	// and hold nothing but directories.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +optional
	Depth int32 `json:"depth,omitempty"`

	// directories are made at once, each with as many path elements as depth. Shell brace
	// expressions are expanded: "train/{0..15}", "{train,valid}/{00..07}". Clients create more with plain mkdir.
	// A directory that leaves this list is removed only if it is empty.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9_{][A-Za-z0-9_{},./=+@:-]*$') && !self.split('/').exists(e, e == '..' || e == '.' || e == '')",message="a directory must be a path below the share (no '/' first or last, no '.' or '..') of letters, digits and _ . - = + @ :, with braces for several: train/{0..15}"
	// +listType=set
	// +optional
	Directories []string `json:"directories,omitempty"`

	// maxDirectories is how many directories the share can have at its depth and above it, declared and made
	// by clients; unset means 10000. mkdir of one more is refused with "Disk quota exceeded". Each costs an API object.
	// +kubebuilder:default=10000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxDirectories int32 `json:"maxDirectories,omitempty"`

	// quota bounds what the share's files may take. Where the storage can't keep a share to it the share says so (QuotaEnforced) and is
	// not Ready; it is served all the same, without a bound. Unset: the share may fill what the storage has.
	// +optional
	Quota ShareQuota `json:"quota,omitempty,omitzero"`

	// uid is the numeric user id that owns the share's root and its declared directories; unset means 0.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +optional
	UID *int64 `json:"uid,omitempty"`

	// gid is the numeric group id of the share's root and of its declared directories; unset means 0.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +optional
	GID *int64 `json:"gid,omitempty"`

	// mode is the permission of the share's root and of its declared directories, in octal; unset means "0755".
	// +kubebuilder:default="0755"
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^0?[0-7]{3,4}$')",message="mode must be octal permission bits in quotes, for example \"0755\" or \"2775\""
	// +optional
	Mode string `json:"mode,omitempty"`

	// access lists who may use the share and how; the first rule that has the client's address counts,
	// and a client in no rule does not see the share. Unset means clients: [Nodes]: the cluster's nodes may
	// read and write, which is what pods with the share's claim need, and root is not squashed.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.clients.all(c, c == 'Nodes' || isCIDR(c) || isIP(c)))",message="clients must be addresses (10.0.0.7), networks (10.0.0.0/8) or the word Nodes, which stands for all nodes of the cluster; names of hosts can't be used"
	// +listType=atomic
	// +optional
	Access []AccessRule `json:"access,omitempty"`

	// reclaimPolicy tells what happens to the data on the volumes when the share is deleted; unset means Retain.
	// Clients must tolerate new values.
	// +kubebuilder:default=Retain
	// +optional
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy,omitempty"`

	// ignoreDataOn names data servers (FILESERVER-N) whose data of this share is given up, or known not to be: directories are
	// placed, and not on them, although nobody can look whether they have them. For data servers that never come back.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	IgnoreDataOn []string `json:"ignoreDataOn,omitempty"`

	// acceptedLosses are losses of directories that are given up: those that the condition JunctionsResolved names while directories are missing
	// on their data servers. Of those directories the declared ones are made again, empty, and the others leave the share. Each loss has an
	// ID of its own, so an entry accepts no later one. It can be removed afterwards.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=16
	// +kubebuilder:validation:items:MaxLength=16
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[0-9a-f]{16}$')",message="a loss is named by 16 hexadecimal digits, as the condition JunctionsResolved prints them"
	// +listType=set
	// +optional
	AcceptedLosses []string `json:"acceptedLosses,omitempty"`

	// source is what the share has in it when it is made; unset: nothing. Only storage that has snapshots can do that: with any other the share says so,
	// and is not served.
	// +optional
	Source ShareSource `json:"source,omitempty,omitzero"`

	// claimRef names the PersistentVolumeClaim that the share was made for, by a StorageClass of Howdah, which writes this. The claim has a
	// PersistentVolume of its own, and may be in any Kubernetes namespace. Unset: a ready-made claim of the share's name comes with it.
	// +optional
	ClaimRef ClaimReference `json:"claimRef,omitempty,omitzero"`
}

// ShareSource is what a new share has in it.
type ShareSource struct {
	// snapshotRef names a FileShareSnapshot of this Kubernetes namespace, of a share on the same FileServer with the same layout and depth. The
	// storage copies all that is in it; afterwards the two have nothing to do with each other.
	// +required
	SnapshotRef SnapshotReference `json:"snapshotRef,omitzero"`
}

// ShareQuota bounds what a share's files may take.
// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self.size)) || quantity(string(self.size)).compareTo(quantity('4Mi')) >= 0 && quantity(string(self.size)).compareTo(quantity('1Ei')) <= 0",message="size must be from 4Mi to 1Ei"
type ShareQuota struct {
	// size is how much the files of the share may take together: writes beyond it end with "Disk quota exceeded", and df shows it, in steps
	// of 4Mi. It can be raised and lowered while clients write; lowering it below what is used is refused, and the quota stays as it was.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="size must be a number with a unit of Kubernetes and no space: 100Gi, 1.5Ti, 10G (not \"10 GB\")"
	// +required
	Size *resource.Quantity `json:"size,omitempty"`
}

// MinQuotaBytes is the smallest quota, in bytes: the step in which Ceph shows one.
const MinQuotaBytes = 4 << 20

// ShareLayout tells how the data of a share is laid out.
// +kubebuilder:validation:Enum=Distributed;Single
type ShareLayout string

// Layouts of a share.
const (
	// LayoutDistributed spreads the directories at the share's depth over the data servers.
	LayoutDistributed ShareLayout = "Distributed"
	// LayoutSingle keeps the whole share on one data server.
	LayoutSingle ShareLayout = "Single"
)

// ReclaimPolicy tells what happens to a share's data when the share is deleted.
// +kubebuilder:validation:Enum=Retain;Delete
type ReclaimPolicy string

// Reclaim policies.
const (
	// ReclaimRetain keeps the data; a share of the same name finds it again.
	ReclaimRetain ReclaimPolicy = "Retain"
	// ReclaimDelete removes the share's directory from every volume.
	ReclaimDelete ReclaimPolicy = "Delete"
)

// AccessRule gives clients by address a way to use a share.
type AccessRule struct {
	// clients are CIDRs, single addresses, or the word Nodes, which stands for the addresses of the cluster's nodes and the FileServer's
	// spec.additionalNodeNetworks. Pods that use a claim are seen by the address of their node; pods' own addresses are
	// not among Nodes. For everybody: 0.0.0.0/0 and ::/0.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=set
	// +required
	Clients []string `json:"clients,omitempty"`

	// accessType is ReadWrite or ReadOnly; unset means ReadWrite. Clients must tolerate new values.
	// +optional
	AccessType AccessType `json:"accessType,omitempty"`

	// squash tells which users are mapped to nobody (65534); unset means None. Clients must tolerate new values.
	// +optional
	Squash Squash `json:"squash,omitempty"`

	// ports tells which source ports clients may come from; unset means Any. Reserved ones are below 1024: a client
	// machine that keeps them for root (Linux' default outside of containers) speaks NFS by its kernel alone. Linux' NFS client uses
	// 665 to 1023. Clients must tolerate new values.
	// +optional
	Ports SourcePorts `json:"ports,omitempty"`
}

// ClientNodes is the client of an access rule that stands for the addresses of the cluster's nodes.
const ClientNodes = "Nodes"

// SourcePorts tells which source ports a client may come from, as ganesha's PrivilegedPort does.
// +kubebuilder:validation:Enum=Any;Reserved
type SourcePorts string

// Source ports.
const (
	// PortsAny takes clients from every port.
	PortsAny SourcePorts = "Any"
	// PortsReserved takes clients from ports below 1024 only.
	PortsReserved SourcePorts = "Reserved"
)

// AccessType tells what a client may do, as ganesha's Access_Type does.
// +kubebuilder:validation:Enum=ReadWrite;ReadOnly
type AccessType string

// Access types.
const (
	// AccessReadWrite lets clients read and write.
	AccessReadWrite AccessType = "ReadWrite"
	// AccessReadOnly lets clients read.
	AccessReadOnly AccessType = "ReadOnly"
)

// Squash tells which users are mapped to nobody.
// +kubebuilder:validation:Enum=None;Root;All
type Squash string

// Squash values, as ganesha's Squash option.
const (
	// SquashNone maps nobody.
	SquashNone Squash = "None"
	// SquashRoot maps uid 0.
	SquashRoot Squash = "Root"
	// SquashAll maps everybody.
	SquashAll Squash = "All"
)

// FileShareStatus is what the operator sees of a FileShare.
// +kubebuilder:validation:MinProperties=1
type FileShareStatus struct {
	// conditions are Ready, Placed, Exported, Inventoried, JunctionsResolved, ClaimAvailable, QuotaEnforced if there is a quota, and Cloned if there is a source.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the last complete pass.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// mount tells how to mount the share.
	// +optional
	Mount ShareMount `json:"mount,omitempty,omitzero"`

	// inventoryGeneration counts how often the data servers had to be asked what they have of the share: once when it is made, and
	// again whenever ShareDirectories were lost.
	// +kubebuilder:validation:Minimum=1
	// +optional
	InventoryGeneration int64 `json:"inventoryGeneration,omitempty"`

	// directories counts the directories of the share.
	// +optional
	Directories ShareDirectories `json:"directories,omitempty,omitzero"`

	// limitsUsed is what the share takes of spec.limits of its FileServer; unset: they have not let it in yet. What a share has it keeps.
	// +optional
	LimitsUsed ShareLimitsUsed `json:"limitsUsed,omitempty,omitzero"`

	// quota tells what the storage keeps the share to at present, and what is used. Unset where the storage keeps no share to a size.
	// +optional
	Quota ShareQuotaStatus `json:"quota,omitempty,omitzero"`
}

// ShareLimitsUsed is what a share takes of spec.limits of its FileServer.
type ShareLimitsUsed struct {
	// directories is how many directories it has or was let declare.
	// +kubebuilder:validation:Minimum=0
	// +required
	Directories *int32 `json:"directories,omitempty"`

	// accessNetworks is how many entries the clients of its access rules have.
	// +kubebuilder:validation:Minimum=0
	// +required
	AccessNetworks *int32 `json:"accessNetworks,omitempty"`
}

// ShareQuotaStatus is the quota of a share as the storage has it.
// +kubebuilder:validation:MinProperties=1
type ShareQuotaStatus struct {
	// size is the quota that is enforced; unset if none is. It differs from spec.quota.size while a change is under way or refused.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// used is what the share's files take, rounded down in steps of at most 1/64 of the quota so that status does not change with every
	// write; unset: not known yet.
	// +optional
	Used *resource.Quantity `json:"used,omitempty"`
}

// ShareMount tells how to mount a share.
type ShareMount struct {
	// address is the address of the front door.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Address string `json:"address,omitempty"`

	// path is the path to mount.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Path string `json:"path,omitempty"`

	// options are the recommended mount options.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=atomic
	// +required
	Options []string `json:"options,omitempty"`

	// command is a ready-made mount command.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Command string `json:"command,omitempty"`

	// claimName is the PersistentVolumeClaim in this namespace that a pod can use.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	ClaimName string `json:"claimName,omitempty"`
}

// ShareDirectories counts the directories of a share.
type ShareDirectories struct {
	// count is the number of directories that data servers own.
	// +kubebuilder:validation:Minimum=0
	// +required
	Count *int32 `json:"count,omitempty"`

	// ready is how many of them exist on their owner.
	// +kubebuilder:validation:Minimum=0
	// +required
	Ready *int32 `json:"ready,omitempty"`

	// perServer tells how many directories each data server owns.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	PerServer []ServerDirectories `json:"perServer,omitempty"`
}

// ServerDirectories is the number of directories of a share on one data server.
type ServerDirectories struct {
	// name is the name of the data server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`

	// count is the number of directories.
	// +kubebuilder:validation:Minimum=0
	// +required
	Count *int32 `json:"count,omitempty"`
}

// FileShareList is a list of FileShares.
// +kubebuilder:object:root=true
type FileShareList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FileShare `json:"items"`
}

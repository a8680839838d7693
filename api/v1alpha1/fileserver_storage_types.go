package v1alpha1

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// StorageIdentity is what names in Ceph are made from: that of the specification, or else of the status. While neither is there it is the
// FileServer's UID, as it was before there were identities.
func StorageIdentity(fs *FileServer) string {
	return cmp.Or(fs.Spec.Storage.Ceph.Identity, fs.Status.StorageIdentity, string(fs.UID))
}

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
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.identity) || has(self.identity) && self.identity == oldSelf.identity",message="identity can't be changed: the data has it in its names; make another FileServer"
// +kubebuilder:validation:XValidation:rule="has(self.rook) == has(oldSelf.rook)",message="storage.ceph can't change from external to rook or back: the shares' directories are where they are; make another FileServer and copy"
type CephStorage struct {
	// external is a Ceph cluster that somebody else runs. Each share has a directory and a user of its own there, which somebody made, or Howdah.
	// +optional
	External ExternalCeph `json:"external,omitempty,omitzero"`

	// rook is a Ceph cluster that Rook runs, in the FileServer's Kubernetes namespace. Howdah asks Rook for an account and a subvolume
	// group, follows its monitors, and makes a directory and a user for each share.
	// +optional
	Rook RookCeph `json:"rook,omitempty,omitzero"`

	// identity is what the names of the FileServer's subvolume group, subvolumes and users in Ceph are made from. Unset, status.storageIdentity
	// has it: a FileServer that is made again under its name in the same Kubernetes namespace has the same, and finds its data. Set it to have
	// the data of a FileServer of another name, namespace or cluster, which must not run any more. It can't be changed.
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="identity is a UUID, as status.storageIdentity of the FileServer that had the data shows it"
	// +optional
	Identity string `json:"identity,omitempty"`
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

	// lostVolumes are volumes whose data is given up: a new one, or another one, may take the place of each. Without it a data server that
	// had a volume refuses an empty one in its place, and one with another identity (VolumeRefused); the message says what to write here.
	// An entry is for the volume with that identity alone, so it accepts no later loss. It can be removed once the data server is Ready.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=claimName
	// +listMapKey=volumeID
	// +optional
	LostVolumes []LostVolume `json:"lostVolumes,omitempty"`
}

// LostVolume is a volume whose data is given up.
type LostVolume struct {
	// claimName names the claim that was bound to the volume: data-VOLUME-FILESERVER-N.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^data-[0-9]+-[a-z0-9-]+-[0-9]+$')",message="claimName is the name of a data server's claim, as kubectl get pvc prints it: data-0-training-0"
	// +required
	ClaimName string `json:"claimName,omitempty"`

	// volumeID is the identity of the lost volume, as the condition StorageAvailable and status.volumeIDs of the DataServer have it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="volumeID is the identity of the lost volume as the condition StorageAvailable prints it: 6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c"
	// +required
	VolumeID string `json:"volumeID,omitempty"`
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

package v1alpha1

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// StorageIdentity returns the ID from which names in Ceph are made: that of the specification, or else that of the
// status, or else the FileServer's UID, which FileServers from before storage identities use.
func StorageIdentity(fs *FileServer) string {
	return cmp.Or(fs.Spec.Storage.Ceph.Identity, fs.Status.StorageIdentity, string(fs.UID))
}

// FileServerStorage is a union of the storage back ends. Exactly one is set, and it can't change.
// +kubebuilder:validation:ExactlyOneOf=volumes;ceph
// +kubebuilder:validation:XValidation:rule="has(self.volumes) == has(oldSelf.volumes)",message="storage can't change between volumes and ceph: create another FileServer and copy the data"
type FileServerStorage struct {
	// volumes gives every data server PersistentVolumes of its own.
	// +optional
	Volumes VolumesStorage `json:"volumes,omitempty,omitzero"`

	// ceph keeps all shares in a Ceph file system, which every data server reaches.
	// +optional
	Ceph CephStorage `json:"ceph,omitempty,omitzero"`
}

// CephStorage keeps all shares in a Ceph file system. Every data server can serve every directory.
// +kubebuilder:validation:ExactlyOneOf=external;rook
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.identity) || has(self.identity) && self.identity == oldSelf.identity",message="identity can't be changed: names in Ceph contain it; create another FileServer"
// +kubebuilder:validation:XValidation:rule="has(self.rook) == has(oldSelf.rook)",message="storage.ceph can't change between external and rook: create another FileServer and copy the data"
type CephStorage struct {
	// external is a Ceph cluster that Howdah and Rook do not manage. Each share has its own directory and user there,
	// made in advance or by Howdah.
	// +optional
	External ExternalCeph `json:"external,omitempty,omitzero"`

	// rook is a Ceph cluster that Rook manages, in the FileServer's Kubernetes namespace. Howdah requests an account
	// and a subvolume group from Rook, follows changes of the monitors, and makes a directory and a user for each
	// share.
	// +optional
	Rook RookCeph `json:"rook,omitempty,omitzero"`

	// identity is the ID from which the names of the FileServer's subvolume group, subvolumes and users in Ceph are
	// made. Unset: status.storageIdentity; a FileServer that is created again with the same name and Kubernetes
	// namespace has the same one and finds its data. Set it to use the data of a FileServer with another name,
	// namespace or cluster, which must no longer run. It can't be changed.
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="identity is a UUID, as status.storageIdentity of the FileServer that had the data shows it"
	// +optional
	Identity string `json:"identity,omitempty"`
}

// RookCeph names a Ceph cluster that Rook manages, and what to use of it.
// +kubebuilder:validation:XValidation:rule="self.clusterRef == oldSelf.clusterRef",message="clusterRef can't be changed: the data is in that cluster; create another FileServer and copy the data"
// +kubebuilder:validation:XValidation:rule="self.fileSystem == oldSelf.fileSystem",message="fileSystem can't be changed: the data is in it; to correct it, create another FileServer"
// +kubebuilder:validation:XValidation:rule="self.recoveryPool == oldSelf.recoveryPool",message="recoveryPool can't be changed: it has the records of clients' locks; to correct it, create another FileServer"
// +kubebuilder:validation:XValidation:rule="!has(self.createFileSystem) || !format.dns1123Subdomain().validate(self.fileSystem).hasValue()",message="with createFileSystem, fileSystem is the name of the object CephFilesystem, too: use lower-case letters, digits, '-' and '.', the first and last a letter or digit",fieldPath=".fileSystem"
type RookCeph struct {
	// clusterRef names the CephCluster. It must be in the Kubernetes namespace of the FileServer, as all objects of
	// Rook for a cluster are. Use spec.allowedNamespaces for shares in other namespaces.
	// +required
	ClusterRef CephClusterReference `json:"clusterRef,omitzero"`

	// fileSystem is the name of the CephFilesystem. If the cluster is external to Rook, it is the name of the file
	// system in Ceph.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="fileSystem is the name that kubectl get cephfilesystems prints: letters, digits, dots, dashes and underscores"
	// +required
	FileSystem string `json:"fileSystem,omitempty"`

	// createFileSystem creates the CephFilesystem once if it does not exist. After that Howdah neither changes nor
	// deletes it, and does not create it again if it is missing. Unset: the CephFilesystem must exist.
	// +optional
	CreateFileSystem RookFileSystem `json:"createFileSystem,omitempty,omitzero"`

	// recoveryPool is the RADOS pool for the recovery records of data servers (the clients to expect after a restart).
	// Each data server has its own RADOS namespace there: the FileServer's storage identity and the server's number. It
	// must not be a pool of the file system. A CephBlockPool creates such a pool. Several FileServers can share it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="recoveryPool is the name that kubectl get cephblockpools, or ceph osd pool ls, prints: letters, digits, dots, dashes and underscores"
	// +required
	RecoveryPool string `json:"recoveryPool,omitempty"`
}

// ExternalCeph names a Ceph cluster and what to use of it.
// +kubebuilder:validation:XValidation:rule="self.fsid == oldSelf.fsid",message="fsid can't be changed: the data is in that cluster; to correct it, create another FileServer"
// +kubebuilder:validation:XValidation:rule="self.fileSystem == oldSelf.fileSystem",message="fileSystem can't be changed: the data is in it; to correct it, create another FileServer"
// +kubebuilder:validation:XValidation:rule="self.recoveryPool == oldSelf.recoveryPool",message="recoveryPool can't be changed: it has the records of clients' locks; to correct it, create another FileServer"
// +kubebuilder:validation:XValidation:rule="has(self.recoveryUser) == has(oldSelf.recoveryUser) && (!has(self.recoveryUser) || self.recoveryUser == oldSelf.recoveryUser)",message="recoveryUser can't be changed: running data servers keep using it; to correct it, create another FileServer"
// +kubebuilder:validation:XValidation:rule="has(self.sharesSecretRef) != has(self.provisioningSecretRef)",message="exactly one of sharesSecretRef (directories and users exist already) and provisioningSecretRef (Howdah makes them) must be set"
// +kubebuilder:validation:XValidation:rule="has(self.sharesSecretRef) == has(self.recoveryUser)",message="recoveryUser goes with sharesSecretRef; with provisioningSecretRef Howdah makes a user for each data server"
// +kubebuilder:validation:XValidation:rule="has(self.provisioningSecretRef) == has(oldSelf.provisioningSecretRef)",message="storage.ceph.external can't change between sharesSecretRef and provisioningSecretRef: create another FileServer and copy the data"
type ExternalCeph struct {
	// monitors are the addresses of the monitors with ports: 10.0.0.1:3300 or [fd00::1]:3300. They can be changed.
	// Running data servers learn new monitors from Ceph, and use this list when they start and for new shares.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(m, m.matches('^([0-9.]+|[[][0-9a-fA-F:.]+[]]):[1-9][0-9]{0,4}$') && isIP(m.substring(0, m.lastIndexOf(':')).replace('[', '').replace(']', '')) && int(m.substring(m.lastIndexOf(':') + 1)) < 65536)",message="a monitor is an IP address with a port: 10.0.0.1:3300 or [fd00::1]:3300; host names can't be used"
	// +listType=atomic
	// +required
	Monitors []string `json:"monitors,omitempty"`

	// fsid is the ID of the cluster, as ceph fsid prints it. A cluster with another ID is not used.
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

	// recoveryPool is the RADOS pool for the recovery records of data servers (the clients to expect after a restart).
	// Each data server has its own RADOS namespace there: the FileServer's storage identity (with sharesSecretRef its
	// UID) and the server's number. It must not be a pool of the file system.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="recoveryPool is the name that ceph osd pool ls prints: letters, digits, dots, dashes and underscores"
	// +required
	RecoveryPool string `json:"recoveryPool,omitempty"`

	// recoveryUser is the cephx user, without "client.", that may read and write recovery records: mon 'allow r', osd
	// 'allow rwx pool=POOL namespace=UID-*'. It is required with sharesSecretRef, whose Secret has its key. It must be
	// unset with provisioningSecretRef, because Howdah then makes a user for each data server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="recoveryUser is the name of a cephx user without \"client.\": letters, digits, dashes and underscores"
	// +optional
	RecoveryUser string `json:"recoveryUser,omitempty"`

	// sharesSecretRef names a Secret in this namespace with directories and users that exist already. It has an entry
	// SHARE.json, {"path": ..., "user": ...}, for each share, and an entry client.USER.keyring for each user, including
	// recoveryUser. Each share has its own directory and user. The Secret may be created later, and entries may be
	// added at any time. Only data servers read it.
	// +optional
	SharesSecretRef SecretReference `json:"sharesSecretRef,omitempty,omitzero"`

	// provisioningSecretRef names a Secret in this namespace with a cephx user (userID, without "client.") and its key
	// (userKey). With it Howdah makes a subvolume and a user for each share, and a user for the recovery records of
	// each data server. The Secret may be created later and can be replaced. Only one pod reads it: the FileServer's
	// steward.
	// +optional
	ProvisioningSecretRef SecretReference `json:"provisioningSecretRef,omitempty,omitzero"`
}

// RookFileSystem configures a CephFilesystem that Howdah creates: one active metadata server with a hot standby, one
// metadata pool and one data pool. For anything else, create the CephFilesystem yourself.
type RookFileSystem struct {
	// replicatedSize is the number of copies of all data and metadata.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +required
	ReplicatedSize int32 `json:"replicatedSize,omitempty"`

	// failureDomain is the level of Ceph's CRUSH map that no two copies share: host, or another such as rack or zone.
	// Unset means host.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="failureDomain is a level of the CRUSH map: osd, host, rack, zone, …"
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`
}

// VolumesStorage gives each data server PersistentVolumeClaims.
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="storageClassName can't be changed: volumes can't move to another class"
// +kubebuilder:validation:XValidation:rule="self.perServer == oldSelf.perServer",message="perServer can't be changed: directories are placed on volumes"
// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self.size)) || quantity(string(self.size)).compareTo(quantity('16Mi')) >= 0",message="size must be at least 16Mi"
type VolumesStorage struct {
	// storageClassName names the StorageClass of the claims. Unset means the cluster's default class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="storageClassName must be the name of a StorageClass: lower-case letters, digits, '-' and '.'"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`

	// size is the size of each volume. It can be increased if the StorageClass allows expansion. It can't be reduced below
	// what the volumes have (status.volumeSize). So a size that the class refuses can be set back.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="size must be a Kubernetes quantity, without a space: 100Gi, 1.5Ti, 10G (not \"10 GB\")"
	// +required
	Size *resource.Quantity `json:"size,omitempty"`

	// perServer is the number of volumes of each data server; unset means 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +optional
	PerServer int32 `json:"perServer,omitempty"`

	// sharedFileSystemPolicy is what to do with a volume that has no file system of its own, for example a directory on
	// the node's disk, as local-path provisioners make. Forbid, the default: nothing is exported from it. Allow: it is
	// used. Allow is for trusted clients and trials: with a forged file handle or a leaked key, clients can reach the
	// rest of that file system, including the node's own files. Size and free space are those of the whole file system.
	// +kubebuilder:default=Forbid
	// +optional
	SharedFileSystemPolicy SharedFileSystemPolicy `json:"sharedFileSystemPolicy,omitempty"`

	// lostVolumes are volumes whose data is given up. Another volume may take the place of each. Without an entry, a
	// data server that had a volume refuses an empty volume, or one with another identity, in its place
	// (VolumeRefused); the message has the entry to write here. An entry is valid only for the volume with that
	// identity, so it accepts no later loss. Remove it when the data server is Ready.
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

	// volumeID is the identity of the lost volume, as shown in the condition StorageAvailable and in status.volumeIDs
	// of the DataServer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="volumeID is the identity of the lost volume as the condition StorageAvailable prints it: 6f0c2a9e-3b1d-4c55-9a77-0d6f7f0a1b2c"
	// +required
	VolumeID string `json:"volumeID,omitempty"`
}

// SharedFileSystemPolicy is what to do with volumes that have no file system of their own.
// +kubebuilder:validation:Enum=Forbid;Allow
type SharedFileSystemPolicy string

// What to do with volumes that have no file system of their own.
const (
	// SharedFileSystemForbid exports nothing from them.
	SharedFileSystemForbid SharedFileSystemPolicy = "Forbid"
	// SharedFileSystemAllow uses them.
	SharedFileSystemAllow SharedFileSystemPolicy = "Allow"
)

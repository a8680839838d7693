package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShareDirectory says that a directory of a share exists, and which data server and volume own it. Its name is made
// from the share and the path (naming.Directory), so that creating it is the lock that makes a path unique.
// Losing it is not losing data: it is written again from what is on the volumes.
// Users read it, and don't write it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sharedirectories,shortName=sdir
// +kubebuilder:printcolumn:name="Share",type=string,JSONPath=`.spec.fileShareRef.name`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.dataServerRef.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ShareDirectory struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec says which directory it is and who owns it.
	// +required
	Spec ShareDirectorySpec `json:"spec,omitzero"`
	// status says how far it is.
	// +optional
	Status ShareDirectoryStatus `json:"status,omitempty,omitzero"`
}

// ShareDirectorySpec is one directory of a share.
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path && self.fileShareRef == oldSelf.fileShareRef && self.fileServerRef == oldSelf.fileServerRef",message="fileServerRef, fileShareRef and path can't be changed: the object's name is made from them"
// +kubebuilder:validation:XValidation:rule="has(self.dataServerRef) == has(self.volume)",message="dataServerRef and volume go together"
// +kubebuilder:validation:XValidation:rule="has(self.identity) == has(oldSelf.identity) && (!has(self.identity) || self.identity == oldSelf.identity)",message="identity can't be changed: clients' file handles are made from it"
type ShareDirectorySpec struct {
	// fileServerRef names the FileServer.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// fileShareRef names the FileShare.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// path is the directory's path below the share's root, without a leading slash;
	// "." is the share's root: a junction if the share's layout is Single, else there once a client changed the root's
	// attributes or removed something from it. Names are any that NFS clients may give.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '.' || !self.split('/').exists(e, e == '' || e == '.' || e == '..')",message="path must be relative, without empty, '.' or '..' elements"
	// +required
	Path string `json:"path,omitempty"`

	// dataServerRef names the data server that owns the directory. Unset: the directory is above the
	// share's depth and exists in the namespace only.
	// +optional
	DataServerRef DataServerReference `json:"dataServerRef,omitempty,omitzero"`

	// volume is the owner's volume that holds the directory.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	// +optional
	Volume *int32 `json:"volume,omitempty"`

	// identity is what the directory's file handle is made from, if the directory is older than this object: it was renamed.
	// Unset: the object's UID.
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Identity string `json:"identity,omitempty"`

	// uid is the numeric user id of the owner. Of a directory that a data server owns it is the one that it was made with.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +required
	UID *int64 `json:"uid,omitempty"`

	// gid is the numeric group id, as with uid.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +required
	GID *int64 `json:"gid,omitempty"`

	// mode is the permission in octal, as with uid.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^0?[0-7]{3,4}$`
	// +required
	Mode string `json:"mode,omitempty"`

	// renamedFrom is the path that the directory had before: it exists under one of the two names until status.state is
	// Ready. It is in the spec because it must be there from the first write on: without it, a crash would leave a
	// directory that looks as if it were to be made.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	RenamedFrom string `json:"renamedFrom,omitempty"`

	// shareAttributes are, in the root of a share that is not of layout Single, what the share's own spec said when a client
	// changed the root's. As long as the share still says the same, uid, gid and mode here count; after that, what it says.
	// +optional
	ShareAttributes ShareAttributes `json:"shareAttributes,omitempty,omitzero"`

	// removal is WhenEmpty if the directory is to be removed as soon as it is empty: it has left its share's spec.directories.
	// +optional
	Removal DirectoryRemoval `json:"removal,omitempty"`
}

// ShareAttributes are the attributes that a FileShare gives its root.
type ShareAttributes struct {
	// uid is the numeric user id.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +required
	UID *int64 `json:"uid,omitempty"`
	// gid is the numeric group id.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +required
	GID *int64 `json:"gid,omitempty"`
	// mode is the permission in octal.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^0?[0-7]{3,4}$`
	// +required
	Mode string `json:"mode,omitempty"`
}

// DirectoryRemoval says when a directory is to be removed.
// +kubebuilder:validation:Enum=WhenEmpty
type DirectoryRemoval string

// RemovalWhenEmpty has the keeper of the namespace servers remove the directory when it is empty.
const RemovalWhenEmpty DirectoryRemoval = "WhenEmpty"

// ShareDirectoryStatus says how far a directory is.
// +kubebuilder:validation:MinProperties=1
type ShareDirectoryStatus struct {
	// state tells how far the directory is. Unset: Renaming if spec.renamedFrom is set, else Creating if a data server
	// owns it, else Ready (what exists in the namespace only exists with this object).
	// +optional
	State DirectoryState `json:"state,omitempty"`

	// observedGeneration is the generation whose uid, gid and mode the copies have that data servers keep of a directory
	// above the share's depth. Unset: the first.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// modifiedTime is when something in the directory was last made, removed or renamed, or what a client set it to. What
	// was made in it after changedTime counts, too. Unset: when this object was made.
	// +optional
	ModifiedTime *metav1.MicroTime `json:"modifiedTime,omitempty"`

	// changedTime is when the directory's attributes last changed. Unset: when this object was made.
	// +optional
	ChangedTime *metav1.MicroTime `json:"changedTime,omitempty"`

	// accessedTime is what a client set it to. Unset: as modifiedTime.
	// +optional
	AccessedTime *metav1.MicroTime `json:"accessedTime,omitempty"`

	// missingTime is since when a directory with state Missing is known not to be on its owner. Unset: it was not looked for yet.
	// +optional
	MissingTime *metav1.Time `json:"missingTime,omitempty"`

	// lossID names the look at the owner's volume that missed the directory. All that it missed have the same, and what is missed later has
	// another. A FileShare whose spec.acceptedLosses has it gives the directory up.
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=16
	// +optional
	LossID string `json:"lossID,omitempty"`

	// rootID is, of the root of a share of layout Single, the identity that its owner's copy has (ShareExport, status.rootIDs): another one is
	// not this root, but an empty directory in its place.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RootID string `json:"rootID,omitempty"`

	// removalRefusedTime is since when the directory is known to hold data although spec.removal is WhenEmpty.
	// +optional
	RemovalRefusedTime *metav1.Time `json:"removalRefusedTime,omitempty"`
}

// DirectoryState tells how far a directory is.
// +kubebuilder:validation:Enum=Creating;Ready;Missing;Removing;Renaming
type DirectoryState string

// States of a directory.
const (
	// DirectoryCreating: the object exists, and the directory is not known to exist on its owner. Completed by a namespace server.
	DirectoryCreating DirectoryState = "Creating"
	// DirectoryReady: exists on its owner; the namespace refers to it.
	DirectoryReady DirectoryState = "Ready"
	// DirectoryMissing: it was on its owner, and is not, or was not looked for yet. It stays in the namespace, and clients that enter it wait. It
	// is Ready again when it is found, and is made again, or goes, when the user gives it up.
	DirectoryMissing DirectoryState = "Missing"
	// DirectoryRemoving: a removal was begun, or a rename to another name; it ends with the object gone, or Ready if the directory is
	// still there.
	DirectoryRemoving DirectoryState = "Removing"
	// DirectoryRenaming: the new name of a directory whose rename was begun; renamedFrom is the old.
	DirectoryRenaming DirectoryState = "Renaming"
)

// State is how far the directory is, by status or by what no status means.
func (d *ShareDirectory) State() DirectoryState {
	switch {
	case d.Status.State != "":
		return d.Status.State
	case d.Spec.RenamedFrom != "":
		return DirectoryRenaming
	case d.Spec.DataServerRef.Name != "":
		return DirectoryCreating
	default:
		return DirectoryReady
	}
}

// ShareDirectoryList is a list of ShareDirectories.
// +kubebuilder:object:root=true
type ShareDirectoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShareDirectory `json:"items"`
}

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShareDirectory records that a directory of a share exists, and which data server and volume own it. Its name is made
// from the share and the path (naming.Directory), so creating it is the lock that makes a path unique. No data is lost
// if it is deleted: it is written again from what is on the volumes. Users may read it and must not change it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sharedirectories,shortName=sdir
// +kubebuilder:printcolumn:name="Share",type=string,JSONPath=`.spec.fileShareRef.name`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.dataServerRef.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.dataServerRef) && has(oldSelf.spec.dataServerRef) && self.spec.dataServerRef != oldSelf.spec.dataServerRef || has(self.spec.identity) == has(oldSelf.spec.identity) && (!has(self.spec.identity) || self.spec.identity == oldSelf.spec.identity) || has(oldSelf.status) && has(oldSelf.status.replacedBy) && has(self.spec.identity) && self.spec.identity == oldSelf.status.replacedBy.identity",message="spec.identity changes only with the owner, or when another directory takes this one's place: clients' file handles are made from it"
type ShareDirectory struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is which directory it is and its owner.
	// +required
	Spec ShareDirectorySpec `json:"spec,omitzero"`
	// status is the state of the directory.
	// +optional
	Status ShareDirectoryStatus `json:"status,omitempty,omitzero"`
}

// ShareDirectorySpec is one directory of a share.
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path && self.fileShareRef == oldSelf.fileShareRef && self.fileServerRef == oldSelf.fileServerRef",message="fileServerRef, fileShareRef and path can't be changed: the object's name is made from them"
// +kubebuilder:validation:XValidation:rule="has(self.dataServerRef) == has(self.volume)",message="dataServerRef and volume go together"
type ShareDirectorySpec struct {
	// fileServerRef names the FileServer.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// fileShareRef names the FileShare.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// path is the directory's path below the share's root, without a leading slash. "." is the share's root: a junction
	// if the share's layout is Single; otherwise it exists once a client has changed the root's attributes or removed
	// something from it. Names are any that NFS clients may give.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '.' || !self.split('/').exists(e, e == '' || e == '.' || e == '..')",message="path must be relative, without empty, '.' or '..' elements"
	// +required
	Path string `json:"path,omitempty"`

	// dataServerRef names the data server that owns the directory. Unset: the directory is above the share's depth and
	// exists only in the namespace.
	// +optional
	DataServerRef DataServerReference `json:"dataServerRef,omitempty,omitzero"`

	// volume is the owner's volume that has the directory.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	// +optional
	Volume *int32 `json:"volume,omitempty"`

	// identity is the ID from which the directory's file handle is made, if the directory is older than this object
	// because it was renamed, or if it was moved between volumes. Unset: the object's UID.
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Identity string `json:"identity,omitempty"`

	// uid is the numeric user ID of the owner. For a directory that a data server owns, it is the one at creation.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +required
	UID *int64 `json:"uid,omitempty"`

	// gid is the numeric group ID, as uid.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +required
	GID *int64 `json:"gid,omitempty"`

	// mode is the permission bits in octal, as uid.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^0?[0-7]{3,4}$`
	// +required
	Mode string `json:"mode,omitempty"`

	// renamedFrom is the previous path of the directory. The directory exists under one of the two paths until
	// status.state is Ready. It is in the spec because the first write must have it: otherwise a crash would leave a
	// directory that looks as if it was still to be made.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	RenamedFrom string `json:"renamedFrom,omitempty"`

	// shareAttributes are, in the root of a Distributed share, the root attributes in the share's spec when a client
	// changed those of the root. While the share's spec has the same values, uid, gid and mode of this object apply;
	// after a change of the share's spec, those of the share's spec apply.
	// +optional
	ShareAttributes ShareAttributes `json:"shareAttributes,omitempty,omitzero"`

	// move is set while the directory is copied to the volume of another data server. Only the operator writes it.
	// +optional
	Move DirectoryMove `json:"move,omitempty,omitzero"`

	// movedTime is when the directory was last copied to its owner. It is not frozen again for some seconds then: what a
	// client waits for since the last freeze must end before.
	// +optional
	MovedTime *metav1.Time `json:"movedTime,omitempty"`

	// removal is WhenEmpty if the directory is to be removed as soon as it is empty, because it was removed from its
	// share's spec.directories.
	// +optional
	Removal DirectoryRemoval `json:"removal,omitempty"`
}

// DirectoryMove is the move of a directory from the volume of one data server to that of another.
type DirectoryMove struct {
	// id is different for each move. Data servers keep the copy under this name.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	// +required
	ID string `json:"id,omitempty"`

	// source is where the directory is before the move.
	// +required
	Source DirectoryPlace `json:"source,omitzero"`

	// target is where the directory is after the move.
	// +required
	Target DirectoryPlace `json:"target,omitzero"`

	// step is what the two data servers are to do.
	// +required
	Step MoveStep `json:"step,omitempty"`

	// stepTime is since when.
	// +required
	StepTime *metav1.Time `json:"stepTime,omitempty"`

	// attempt counts how often the directory was frozen. What data servers report of an earlier attempt counts for
	// nothing.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// sequence counts the steps. Data servers do not go back to an earlier one.
	// +kubebuilder:validation:Minimum=1
	// +required
	Sequence int64 `json:"sequence,omitempty"`

	// refusals are the data servers that were targets of this move before, and had too little room for the directory.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Refusals []MoveRefusal `json:"refusals,omitempty"`
}

// MoveRefusal is a data server that had too little room for a directory.
type MoveRefusal struct {
	// dataServerRef names the data server.
	// +required
	DataServerRef DataServerReference `json:"dataServerRef,omitzero"`

	// refusedTime is when the operator learned of it. The data server is asked again some minutes later at the earliest.
	// +required
	RefusedTime *metav1.Time `json:"refusedTime,omitempty"`
}

// DirectoryPlace is a volume of a data server.
type DirectoryPlace struct {
	// dataServerRef names the data server.
	// +required
	DataServerRef DataServerReference `json:"dataServerRef,omitzero"`

	// volume is the number of the volume.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	// +required
	Volume *int32 `json:"volume,omitempty"`
}

// MoveStep is what the data servers of a move are to do.
// +kubebuilder:validation:Enum=Copying;Freezing;Thawing;Placing;Leaving
type MoveStep string

// Steps of a move.
const (
	// MoveCopying: the target copies the directory again and again while clients use it on the source.
	MoveCopying MoveStep = "Copying"
	// MoveFreezing: the source makes clients of the directory wait; the target copies the rest, and compares.
	MoveFreezing MoveStep = "Freezing"
	// MoveThawing: the source lets clients go on. Copying or the end of the move follows.
	MoveThawing MoveStep = "Thawing"
	// MovePlacing: the target puts the copy into the share. There is no way back.
	MovePlacing MoveStep = "Placing"
	// MoveLeaving: the target owns the directory; the source puts its own into the trash.
	MoveLeaving MoveStep = "Leaving"
)

// IsFrozen reports whether clients of the directory wait, or are about to: no other program may change it.
func (m *DirectoryMove) IsFrozen() bool { return m.ID != "" && m.Step != MoveCopying }

// ShareAttributes are the attributes that a FileShare gives its root.
type ShareAttributes struct {
	// uid is the numeric user ID.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +required
	UID *int64 `json:"uid,omitempty"`
	// gid is the numeric group ID.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +required
	GID *int64 `json:"gid,omitempty"`
	// mode is the permission bits in octal.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^0?[0-7]{3,4}$`
	// +required
	Mode string `json:"mode,omitempty"`
}

// DirectoryRemoval is when a directory is to be removed.
// +kubebuilder:validation:Enum=WhenEmpty
type DirectoryRemoval string

// RemovalWhenEmpty means that the leader of the namespace servers removes the directory when it is empty.
const RemovalWhenEmpty DirectoryRemoval = "WhenEmpty"

// ShareDirectoryStatus is the state of a directory.
// +kubebuilder:validation:MinProperties=1
type ShareDirectoryStatus struct {
	// state is the state of the directory. Unset: Renaming if spec.renamedFrom is set, else Creating if a data server
	// owns the directory, else Ready (a directory that exists only in the namespace exists with this object).
	// +optional
	State DirectoryState `json:"state,omitempty"`

	// observedGeneration is the generation whose uid, gid and mode are applied to the copies, on data servers, of a
	// directory above the share's depth. Unset: the first.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// modifiedTime is when something in the directory was last made, removed or renamed, or the time that a client set.
	// Entries made after changedTime count too. Unset: the creation time of this object.
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:MinLength=20
	// +kubebuilder:validation:MaxLength=40
	// +optional
	ModifiedTime string `json:"modifiedTime,omitempty"`

	// changedTime is when the directory's attributes last changed. Unset: the creation time of this object.
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:MinLength=20
	// +kubebuilder:validation:MaxLength=40
	// +optional
	ChangedTime string `json:"changedTime,omitempty"`

	// accessedTime is the time that a client set. Unset: as modifiedTime.
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:MinLength=20
	// +kubebuilder:validation:MaxLength=40
	// +optional
	AccessedTime string `json:"accessedTime,omitempty"`

	// replaces is, in state Removing, the path of an empty directory whose name this directory is being given. Unset: none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Replaces string `json:"replaces,omitempty"`

	// replacedBy is, in state Removing, the directory that is being given this one's name. This one is kept until that
	// is done. Unset: none.
	// +optional
	ReplacedBy DirectoryReplacement `json:"replacedBy,omitempty,omitzero"`

	// missingTime is since when a directory in state Missing is known not to be on its owner. Unset: it was not checked
	// yet.
	// +optional
	MissingTime *metav1.Time `json:"missingTime,omitempty"`

	// lossID identifies the check of the owner's volume that found the directory missing. All directories that the
	// check found missing have the same ID; directories found missing later have another. spec.acceptedLosses of the
	// FileShare gives them up.
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=16
	// +optional
	LossID string `json:"lossID,omitempty"`

	// rootID is, for the root of a Single share, the identity of the root on its owner (ShareExport, status.rootIDs). A
	// root with another identity is an empty directory in its place.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RootID string `json:"rootID,omitempty"`

	// hotTime is when a namespace server last had enough clients in the directory to make it hot
	// (spec.findHotDirectories of the FileShare). The leader of the namespace servers removes it when the directory has
	// cooled down. It is written at most every 20 minutes.
	// +optional
	HotTime *metav1.Time `json:"hotTime,omitempty"`

	// removalRefusedTime is since when the directory is known to have data although spec.removal is WhenEmpty.
	// +optional
	RemovalRefusedTime *metav1.Time `json:"removalRefusedTime,omitempty"`
}

// DirectoryReplacement is a directory that is being given the name of another, empty one.
type DirectoryReplacement struct {
	// path is the path that it has before.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Path string `json:"path,omitempty"`

	// identity is the ID that it keeps. When spec.identity is this one, the directory has taken the other's place.
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=64
	// +required
	Identity string `json:"identity,omitempty"`
}

// DirectoryState is the state of a directory.
// +kubebuilder:validation:Enum=Creating;Ready;Missing;Removing;Renaming
type DirectoryState string

// States of a directory.
const (
	// DirectoryCreating: the object exists; the directory is not known to exist on its owner. A namespace server makes
	// it.
	DirectoryCreating DirectoryState = "Creating"
	// DirectoryReady means that the directory exists on its owner, and the namespace refers clients to it.
	DirectoryReady DirectoryState = "Ready"
	// DirectoryMissing: the directory was on its owner and is gone, or was not checked yet. It stays in the namespace,
	// and clients that enter it wait. It becomes Ready when it is found. If the user gives it up, it is made again or
	// removed.
	DirectoryMissing DirectoryState = "Missing"
	// DirectoryRemoving: a removal or a rename to another path has started. At the end the object is deleted, or Ready
	// if the directory still exists.
	DirectoryRemoving DirectoryState = "Removing"
	// DirectoryRenaming: the new path of a directory whose rename has started; spec.renamedFrom is the old path. If it
	// takes the place of an empty directory, the status has Removing still.
	DirectoryRenaming DirectoryState = "Renaming"
	// DirectoryMoving is Ready while spec.move says that clients wait. It is never in a status: State answers it, so
	// that no other program changes the directory.
	DirectoryMoving DirectoryState = "Moving"
)

// State returns the state of the directory: that of the status, or what an unset status means.
func (d *ShareDirectory) State() DirectoryState {
	switch {
	case d.Status.State == DirectoryReady && d.Spec.Move.IsFrozen():
		return DirectoryMoving
	case d.Status.State == DirectoryRemoving && d.IsReplaced():
		return DirectoryRenaming
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

// IsReplaced reports whether another directory has taken this one's place. The object stands for that one since, in state Renaming.
func (d *ShareDirectory) IsReplaced() bool {
	return d.Status.ReplacedBy.Identity != "" && d.Spec.Identity == d.Status.ReplacedBy.Identity
}

// ShareDirectoryList is a list of ShareDirectories.
// +kubebuilder:object:root=true
type ShareDirectoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShareDirectory `json:"items"`
}

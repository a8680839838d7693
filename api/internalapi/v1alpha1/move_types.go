package v1alpha1

// MoveTask is a data server's part of a directory's move.
type MoveTask struct {
	// id is the ID of the move.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	// +required
	ID string `json:"id,omitempty"`

	// role is which part this data server has.
	// +required
	Role MoveRole `json:"role,omitempty"`

	// fileShareRef names the FileShare.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// path is the directory's path below the share's root.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Path string `json:"path,omitempty"`

	// volume is the volume of this data server.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	// +required
	Volume *int32 `json:"volume,omitempty"`

	// peer names the other data server of the move.
	// +required
	Peer DataServerReference `json:"peer,omitzero"`

	// peerAddress is the address of the other data server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PeerAddress string `json:"peerAddress,omitempty"`

	// step is what to do.
	// +required
	Step MoveStep `json:"step,omitempty"`

	// attempt is the number of the freeze.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// sequence counts the steps. A data server that was given a step does not go back to an earlier one.
	// +kubebuilder:validation:Minimum=1
	// +required
	Sequence int64 `json:"sequence,omitempty"`

	// megabytesPerSecond bounds what is copied, in 10^6 bytes; unset: no bound.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MegabytesPerSecond int32 `json:"megabytesPerSecond,omitempty"`

	// trashSeconds is how long the source keeps what it had.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TrashSeconds *int64 `json:"trashSeconds,omitempty"`

	// openFiles is Interrupt if the directory is frozen though files of it are open; unset means Wait.
	// +optional
	OpenFiles MoveOpenFiles `json:"openFiles,omitempty"`

	// execution is Suspended while nothing is to be copied; unset means Active.
	// +optional
	Execution MoveExecution `json:"execution,omitempty"`
}

// IsSuspended reports whether nothing is to be copied.
func (t *MoveTask) IsSuspended() bool { return t.Execution == MoveSuspended }

// MoveOpenFiles says what becomes of open files.
// +kubebuilder:validation:Enum=Wait;Interrupt
type MoveOpenFiles string

// Values of openFiles.
const (
	MoveOpenFilesWait      MoveOpenFiles = "Wait"
	MoveOpenFilesInterrupt MoveOpenFiles = "Interrupt"
)

// MoveExecution says whether a move goes on.
// +kubebuilder:validation:Enum=Active;Suspended
type MoveExecution string

// Values of execution.
const (
	MoveActive    MoveExecution = "Active"
	MoveSuspended MoveExecution = "Suspended"
)

// MoveRole is the part of a data server in a move.
// +kubebuilder:validation:Enum=Source;Target
type MoveRole string

// Roles of data servers in a move.
const (
	MoveSource MoveRole = "Source"
	MoveTarget MoveRole = "Target"
)

// MoveReport is how far a data server is with its part of a move.
type MoveReport struct {
	// id is the ID of the move.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=64
	// +required
	ID string `json:"id,omitempty"`

	// state is what is done.
	// +required
	State MoveState `json:"state,omitempty"`

	// attempt is the freeze that the state is of.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// sequence is the highest of the tasks that this data server had. If it is higher than that of the ShareDirectory, the
	// API's database was set back, and the move goes on from what the data servers have.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Sequence int64 `json:"sequence,omitempty"`

	// reason is NoRoom if the target refuses the directory because its volume has too little room for it; bytes and files
	// are set then.
	// +optional
	Reason MoveReason `json:"reason,omitempty"`

	// message says what failed last, or why the data server waits.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// passes is how often the target has copied what differs.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Passes int32 `json:"passes,omitempty"`

	// bytes and files are what the directory has, as the target saw it at the beginning of the last pass.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Bytes *int64 `json:"bytes,omitempty"`

	// files is the number of files and directories.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Files *int64 `json:"files,omitempty"`

	// copiedBytes is what the target has copied in all passes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	CopiedBytes *int64 `json:"copiedBytes,omitempty"`
}

// MoveReason is why a data server refuses a move.
// +kubebuilder:validation:Enum=NoRoom
type MoveReason string

// Reasons of refused moves.
const (
	// MoveNoRoom: the target's volume has too little room.
	MoveNoRoom MoveReason = "NoRoom"
)

// MoveState is how far a data server is with its part of a move.
// +kubebuilder:validation:Enum=Copying;CaughtUp;Verified;Released;Placed;Refused;Serving;InUse;Frozen;Left;Absent;Orphaned
type MoveState string

// States of a move. Copying to Refused are the target's, Serving to Orphaned the source's.
const (
	// MoveStateCopying: passes are being made.
	MoveStateCopying MoveState = "Copying"
	// MoveStateCaughtUp: the last pass was short.
	MoveStateCaughtUp MoveState = "CaughtUp"
	// MoveStateVerified: the copy is the same as the frozen directory.
	MoveStateVerified MoveState = "Verified"
	// MoveStateReleased: the source has ended the freeze by itself, so the copy is not the same any more. It was not
	// placed, and will not be for this attempt.
	MoveStateReleased MoveState = "Released"
	// MoveStatePlaced: the copy is in the share, and ganesha finds it.
	MoveStatePlaced MoveState = "Placed"
	// MoveStateRefused: the move is not possible; message says why. Nothing was changed.
	MoveStateRefused MoveState = "Refused"
	// MoveStateServing: clients use the directory.
	MoveStateServing MoveState = "Serving"
	// MoveStateInUse: files of the directory are open, so it was not frozen; clients use it.
	MoveStateInUse MoveState = "InUse"
	// MoveStateFrozen: clients wait, and nothing changes in the directory.
	MoveStateFrozen MoveState = "Frozen"
	// MoveStateLeft: the directory is in the trash, and its handles are stale.
	MoveStateLeft MoveState = "Left"
	// MoveStateAbsent: there is neither the directory nor a record of it. It has left, long ago, or it is lost.
	MoveStateAbsent MoveState = "Absent"
	// MoveStateOrphaned: the directory is frozen for a move that is in no task any more, and the target may have it.
	MoveStateOrphaned MoveState = "Orphaned"
)

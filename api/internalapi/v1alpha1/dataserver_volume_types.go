package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// VolumeIdentity identifies a volume.
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

// VolumeUsage is the used space of a volume.
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

	// usedBytes is the used space in bytes, in steps of 1/64 of the size, so that the status does not change with every
	// write.
	// +kubebuilder:validation:Minimum=0
	// +required
	UsedBytes *int64 `json:"usedBytes,omitempty"`

	// freeBytes is the space that clients can still use, in the same steps, rounded down. A part of at most 64 MiB is
	// kept for the data server's own records.
	// +kubebuilder:validation:Minimum=0
	// +optional
	FreeBytes *int64 `json:"freeBytes,omitempty"`

	// totalFiles is the number of inodes; unset if the file system has no fixed number.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TotalFiles *int64 `json:"totalFiles,omitempty"`

	// usedFiles is the number of inodes in use, in steps of 1/64 of all.
	// +kubebuilder:validation:Minimum=0
	// +optional
	UsedFiles *int64 `json:"usedFiles,omitempty"`

	// fill is how full the volume is, by bytes or inodes, whichever is more; unset below 80 %. A level is left when 2 %
	// less are used than it begins at. API clients must tolerate new values.
	// +kubebuilder:validation:Enum=Above80;Above90;Above95;Full
	// +optional
	Fill v1alpha1.VolumeFill `json:"fill,omitempty"`

	// fullTime is when the volume will be full at the rate of the last hour; unset if it does not fill, or not within
	// three days.
	// +optional
	FullTime *metav1.Time `json:"fullTime,omitempty"`

	// fileSystemID is the same for volumes that are on the same file system. It changes when the node restarts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	FileSystemID string `json:"fileSystemID,omitempty"`

	// sharedFileSystem is what else is on the volume's file system; unset if the volume has its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	SharedFileSystem string `json:"sharedFileSystem,omitempty"`
}

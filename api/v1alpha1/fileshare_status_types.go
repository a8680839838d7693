package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileShareStatus is the observed state of a FileShare.
// +kubebuilder:validation:MinProperties=1
type FileShareStatus struct {
	// conditions are Ready, Placed, Exported, Inventoried, JunctionsResolved and ClaimAvailable; QuotaEnforced if there
	// is a quota, HotDirectoriesServed if there are hotDirectories or findHotDirectories, and Cloned if there is a source.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the operator last processed completely.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// mount is how to mount the share.
	// +optional
	Mount ShareMount `json:"mount,omitempty,omitzero"`

	// inventoryGeneration is the number of inventories of the data servers that the share needed: one when it is
	// created, and one more each time that ShareDirectories were lost.
	// +kubebuilder:validation:Minimum=1
	// +optional
	InventoryGeneration int64 `json:"inventoryGeneration,omitempty"`

	// directories counts the directories of the share.
	// +optional
	Directories ShareDirectories `json:"directories,omitempty,omitzero"`

	// limitsUsed is the part of the FileServer's spec.limits that the share uses. Unset: the share is not admitted yet.
	// A share keeps what it has.
	// +optional
	LimitsUsed ShareLimitsUsed `json:"limitsUsed,omitempty,omitzero"`

	// quota is the quota that the storage enforces, and the used space. Unset if the storage can't enforce quotas.
	// +optional
	Quota ShareQuotaStatus `json:"quota,omitempty,omitzero"`
}

// ShareLimitsUsed is the part of a FileServer's spec.limits that a share uses.
type ShareLimitsUsed struct {
	// directories is the number of directories that the share has or was admitted with.
	// +kubebuilder:validation:Minimum=0
	// +required
	Directories *int32 `json:"directories,omitempty"`

	// accessNetworks is the number of clients entries in the share's access rules.
	// +kubebuilder:validation:Minimum=0
	// +required
	AccessNetworks *int32 `json:"accessNetworks,omitempty"`
}

// ShareQuotaStatus is the quota of a share in the storage.
// +kubebuilder:validation:MinProperties=1
type ShareQuotaStatus struct {
	// size is the enforced quota; unset if there is none. It differs from spec.quota.size while a change is in progress
	// or refused.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// used is the space of the share's files, rounded down to at most 1/64 of the quota, so that the status does not
	// change with every write. Unset: not known yet.
	// +optional
	Used *resource.Quantity `json:"used,omitempty"`
}

// ShareMount is how to mount a share.
type ShareMount struct {
	// address is the address of the namespace servers.
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

	// claimName is the PersistentVolumeClaim in this namespace that pods can use.
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

	// ready is the number of these directories that exist on their owners.
	// +kubebuilder:validation:Minimum=0
	// +required
	Ready *int32 `json:"ready,omitempty"`

	// perServer is the number of directories of each data server.
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

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// ShareAttachment records that a FileServer serves a FileShare of another Kubernetes namespace, as its
// spec.allowedNamespaces allows. It is in the FileServer's namespace and has everything that the namespace servers need
// of the share, so that they read no other namespace. Of shares with conflicting paths the oldest is served, and a
// share of another namespace is as old as its ShareAttachment: a share that is not allowed yet takes no path from
// served shares, and a share whose path is taken is not attached. The operator writes it.
//
// Deleting it hides the share; the finalizer keeps it until the exports are gone.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=shareattachments,shortName=satt
// +kubebuilder:printcolumn:name="Share",type=string,JSONPath=`.spec.fileShareRef.name`
// +kubebuilder:printcolumn:name="FileServer",type=string,JSONPath=`.spec.fileServerRef.name`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ShareAttachment struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is what the namespace servers need of the share.
	// +required
	Spec ShareAttachmentSpec `json:"spec,omitzero"`
}

// ShareAttachmentSpec is what namespace servers need of a share, with the FileShare's defaults filled in.
// +kubebuilder:validation:XValidation:rule="self.fileServerRef == oldSelf.fileServerRef && self.fileShareRef == oldSelf.fileShareRef && self.fileShareUID == oldSelf.fileShareUID",message="fileServerRef, fileShareRef and fileShareUID can't be changed: a share that is created again gets another ShareAttachment"
type ShareAttachmentSpec struct {
	// fileServerRef names the FileServer.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// fileShareRef names the FileShare.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// fileShareUID is the UID of the FileShare; the file handle of its root is made from it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	FileShareUID string `json:"fileShareUID,omitempty"`

	// path is the path of the share in the FileServer's tree.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Path string `json:"path,omitempty"`

	// layout is how the share's data is distributed.
	// +required
	Layout ShareLayout `json:"layout,omitempty"`

	// depth is the number of directory levels at which directories are distributed over the data servers.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +required
	Depth int32 `json:"depth,omitempty"`

	// maxDirectories is the maximum number of directories of the share at its depth and above it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +required
	MaxDirectories int32 `json:"maxDirectories,omitempty"`

	// hotDirectories are the directories that several data servers serve: spec.hotDirectories of the FileShare.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	HotDirectories []v1alpha1.HotDirectories `json:"hotDirectories,omitempty"`

	// findHotDirectories is spec.findHotDirectories of the FileShare.
	// +optional
	FindHotDirectories *v1alpha1.HotDirectorySearch `json:"findHotDirectories,omitempty"`

	// uid is the numeric user ID of the share's root.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +required
	UID *int64 `json:"uid,omitempty"`

	// gid is the numeric group ID of the share's root.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +required
	GID *int64 `json:"gid,omitempty"`

	// mode is the permission bits of the share's root, in octal.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^0?[0-7]{3,4}$`
	// +required
	Mode string `json:"mode,omitempty"`

	// access are the share's access rules, in order. The first rule that contains the client's address applies.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +required
	Access []v1alpha1.AccessRule `json:"access,omitempty"`

	// ignoreDataOn are the data servers whose data the share gives up. Nothing new is placed there.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	IgnoreDataOn []string `json:"ignoreDataOn,omitempty"`

	// namespaceUID is the UID of the share's Kubernetes namespace. The share's retained data belongs to this namespace,
	// and not to a later namespace of the same name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	NamespaceUID string `json:"namespaceUID,omitempty"`

	// acceptedLosses are the acceptedLosses of the FileShare.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=16
	// +kubebuilder:validation:items:MaxLength=16
	// +listType=set
	// +optional
	AcceptedLosses []string `json:"acceptedLosses,omitempty"`

	// inventoryGeneration is the inventoryGeneration of the FileShare's status: the inventories that the operator waits
	// for.
	// +kubebuilder:validation:Minimum=1
	// +required
	InventoryGeneration int64 `json:"inventoryGeneration,omitempty"`

	// inventory is Complete once every directory of the share on every data server has a ShareDirectory (the
	// FileShare's condition Inventoried).
	// +required
	Inventory InventoryState `json:"inventory,omitempty"`
}

// InventoryState is whether the directories of a share on all data servers are known.
// +kubebuilder:validation:Enum=Pending;Complete
type InventoryState string

// States of an inventory.
const (
	// InventoryPending: the directories on some data servers are not known yet.
	InventoryPending InventoryState = "Pending"
	// InventoryComplete: the directories on all data servers are known.
	InventoryComplete InventoryState = "Complete"
)

// ShareLayout is the layout of a FileShare: v1alpha1.ShareLayout.
// +kubebuilder:validation:Enum=Distributed;Single
type ShareLayout string

// ShareAttachmentList is a list of ShareAttachments.
// +kubebuilder:object:root=true
type ShareAttachmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShareAttachment `json:"items"`
}

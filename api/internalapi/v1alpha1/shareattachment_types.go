package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// ShareAttachment says that a FileServer serves a FileShare of another Kubernetes namespace, which its
// spec.allowedNamespaces allows. It is in the FileServer's namespace, and has what the namespace servers need of the share, so
// that they read nothing outside of it. Of shares whose paths conflict the oldest counts, and such a share is as old as its ShareAttachment:
// one that waits to be allowed takes no path from shares that are served, and one whose path is taken is not attached. The operator writes it.
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

// ShareAttachmentSpec is what namespace servers need of a share; defaults of the FileShare are spelled out.
// +kubebuilder:validation:XValidation:rule="self.fileServerRef == oldSelf.fileServerRef && self.fileShareRef == oldSelf.fileShareRef && self.fileShareUID == oldSelf.fileShareUID",message="fileServerRef, fileShareRef and fileShareUID can't be changed: a share that was made again is attached again"
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

	// path is the place of the share in the FileServer's tree.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	Path string `json:"path,omitempty"`

	// layout tells how the share's data is laid out.
	// +required
	Layout ShareLayout `json:"layout,omitempty"`

	// depth is the number of directory levels at which directories are spread over the data servers.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	// +required
	Depth int32 `json:"depth,omitempty"`

	// maxDirectories is how many directories the share can have at its depth and above it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +required
	MaxDirectories int32 `json:"maxDirectories,omitempty"`

	// uid is the numeric user id of the share's root.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +required
	UID *int64 `json:"uid,omitempty"`

	// gid is the numeric group id of the share's root.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +required
	GID *int64 `json:"gid,omitempty"`

	// mode is the permission of the share's root, in octal.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^0?[0-7]{3,4}$`
	// +required
	Mode string `json:"mode,omitempty"`

	// access are the share's access rules, in order; the first that has the client's address counts.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +required
	Access []v1alpha1.AccessRule `json:"access,omitempty"`

	// ignoreDataOn are the data servers that the share has given up: nothing new is placed there.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	IgnoreDataOn []string `json:"ignoreDataOn,omitempty"`

	// namespaceUID is the UID of the share's Kubernetes namespace: what the share leaves is that one's, and not that of a later namespace of the name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	NamespaceUID string `json:"namespaceUID,omitempty"`

	// acceptedLosses are those of the FileShare.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=16
	// +kubebuilder:validation:items:MaxLength=16
	// +listType=set
	// +optional
	AcceptedLosses []string `json:"acceptedLosses,omitempty"`

	// inventoryGeneration is that of the inventories that the operator waits for, as in the FileShare's status.
	// +kubebuilder:validation:Minimum=1
	// +required
	InventoryGeneration int64 `json:"inventoryGeneration,omitempty"`

	// inventory is Complete once no data server can have a directory of the share that has no ShareDirectory: the FileShare's
	// condition Inventoried.
	// +required
	Inventory InventoryState `json:"inventory,omitempty"`
}

// InventoryState tells whether it is known what data servers have of a share.
// +kubebuilder:validation:Enum=Pending;Complete
type InventoryState string

// States of an inventory.
const (
	// InventoryPending: some data servers have yet to be looked at.
	InventoryPending InventoryState = "Pending"
	// InventoryComplete: all that they have is known.
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

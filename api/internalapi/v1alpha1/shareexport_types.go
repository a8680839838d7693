package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// ShareExport is one share on one data server: the operator writes the spec, the data server's instance manager the
// status. The pseudo path of volume V is /<share>/<V>; the data is in /volumes/<V>/<share>.
//
// Deleting it is the removal: the finalizer keeps it until the status says that ganesha has dropped the export, and
// that the data is gone too where dataPolicy is Delete. One of a data server that is lost waits for its return.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=shareexports,shortName=sexp
// +kubebuilder:printcolumn:name="Share",type=string,JSONPath=`.spec.fileShareRef.name`
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.dataServerRef.name`
// +kubebuilder:printcolumn:name="Serving",type=string,JSONPath=`.status.conditions[?(@.type=="Serving")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Serving")].message`
type ShareExport struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is what the operator wants of the export.
	// +required
	Spec ShareExportSpec `json:"spec,omitzero"`
	// status is what the data server's instance manager reports.
	// +optional
	Status ShareExportStatus `json:"status,omitempty,omitzero"`
}

// ShareExportSpec is what the operator wants of an export.
// +kubebuilder:validation:XValidation:rule="self.fileServerRef == oldSelf.fileServerRef && self.dataServerRef == oldSelf.dataServerRef && self.fileShareRef == oldSelf.fileShareRef",message="fileServerRef, dataServerRef and fileShareRef can't be changed: the object's name is made from them"
type ShareExportSpec struct {
	// fileServerRef names the FileServer.
	// +required
	FileServerRef FileServerReference `json:"fileServerRef,omitzero"`

	// dataServerRef names the data server that exports the share.
	// +required
	DataServerRef DataServerReference `json:"dataServerRef,omitzero"`

	// fileShareRef names the FileShare.
	// +required
	FileShareRef FileShareReference `json:"fileShareRef,omitzero"`

	// uid is the numeric user id of the export's root.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +required
	UID *int64 `json:"uid,omitempty"`

	// gid is the numeric group id of the export's root.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +required
	GID *int64 `json:"gid,omitempty"`

	// mode is the permission of the export's root, in octal.
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

	// dataPolicy tells what happens to the data on the volumes when this object is deleted. It is Retain as long as the share
	// lives, so that no accident with this object can cost data: only the deletion of a share with reclaimPolicy Delete sets Delete.
	// +required
	DataPolicy DataPolicy `json:"dataPolicy,omitempty"`
}

// DataPolicy tells what happens to an export's data when it is deleted.
// +kubebuilder:validation:Enum=Retain;Delete
type DataPolicy string

// Data policies.
const (
	// DataRetain keeps the data on the volumes.
	DataRetain DataPolicy = "Retain"
	// DataDelete removes the data from the volumes.
	DataDelete DataPolicy = "Delete"
)

// Conditions of a ShareExport.
const (
	// ExportServing: ganesha serves the export as observedGeneration asks for. Whether ganesha runs at present is the DataServer's Ready.
	ExportServing = "Serving"
	// ExportRemoved: the object is being deleted, and the data server is done with it.
	ExportRemoved = "Removed"
)

// ShareExportStatus is what the instance manager reports of an export.
// +kubebuilder:validation:MinProperties=1
type ShareExportStatus struct {
	// conditions are Serving, and Removed once a deleted export is gone.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that ganesha has loaded.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// exportIDs are ganesha's Export_Ids, one for each volume in order. They are in
	// clients' file handles; their durable copy is beside the data.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	ExportIDs []int32 `json:"exportIDs,omitempty"`

	// rootIDs are the identities of the directories in which the volumes have the share, one for each volume in order; "" is not known. A
	// directory that is made again, because the volume has none, has another.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=atomic
	// +optional
	RootIDs []string `json:"rootIDs,omitempty"`

	// inventory tells what the data server has of the share. The elected namespace server writes it, after it has looked
	// at all volumes through NFS and has written a ShareDirectory for each directory that had none.
	// +optional
	Inventory ShareInventory `json:"inventory,omitempty,omitzero"`
}

// ShareInventory is what was found of a share on the volumes of a data server.
type ShareInventory struct {
	// fileShareUID is the UID of the FileShare that it was made for.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	FileShareUID string `json:"fileShareUID,omitempty"`

	// generation is the FileShare's status.inventoryGeneration that it was made for: an older one knows nothing of
	// ShareDirectories that were lost since.
	// +kubebuilder:validation:Minimum=1
	// +required
	Generation int64 `json:"generation,omitempty"`

	// occupiedVolumes are those where the root of a share of layout Single is not empty.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=15
	// +listType=set
	// +optional
	OccupiedVolumes []int32 `json:"occupiedVolumes,omitempty"`

	// misplaced are some of the directories that another data server or volume owns by their ShareDirectories: clients
	// don't see what is in these copies.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Misplaced []MisplacedDirectory `json:"misplaced,omitempty"`

	// misplacedCount is how many there are of those.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MisplacedCount *int32 `json:"misplacedCount,omitempty"`

	// leftOut are some of the directories that clients don't see because no ShareDirectory can stand for them, with the volume, the path or its
	// beginning, and why: a path is longer than 1,024 characters, or is not UTF-8.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	// +optional
	LeftOut []string `json:"leftOut,omitempty"`

	// leftOutCount is how many there are of those.
	// +kubebuilder:validation:Minimum=0
	// +optional
	LeftOutCount *int32 `json:"leftOutCount,omitempty"`
}

// MisplacedDirectory is a directory that its ShareDirectory has on another data server or volume.
type MisplacedDirectory struct {
	// volume is where it was found.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	// +required
	Volume *int32 `json:"volume,omitempty"`

	// path is the path below the share's root.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Path string `json:"path,omitempty"`
}

// ShareExportList is a list of ShareExports.
// +kubebuilder:object:root=true
type ShareExportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShareExport `json:"items"`
}

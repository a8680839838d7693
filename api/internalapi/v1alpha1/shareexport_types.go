package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// ShareExport is the export of one share by one data server. The operator writes the spec, the data server's supervisor
// the status. The pseudo path for volume V is /<share>/<V>; the data is in /volumes/<V>/<share>.
//
// Deleting it removes the export. The finalizer keeps it until the status shows that ganesha has dropped the export
// and, if dataPolicy is Delete, that the data is removed. If the data server is lost, the deletion waits for its
// return.
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
	// spec is the desired state of the export.
	// +required
	Spec ShareExportSpec `json:"spec,omitzero"`
	// status is what the data server's supervisor reports.
	// +optional
	Status ShareExportStatus `json:"status,omitempty,omitzero"`
}

// ShareExportSpec is the desired state of an export.
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

	// uid is the numeric user ID of the export's root.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +required
	UID *int64 `json:"uid,omitempty"`

	// gid is the numeric group ID of the export's root.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +required
	GID *int64 `json:"gid,omitempty"`

	// mode is the permission bits of the export's root, in octal.
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

	// dataPolicy is what happens to the data on the volumes when this object is deleted. It is Retain while the share
	// exists, so that an accidental deletion of this object removes no data. Only the deletion of a share with
	// reclaimPolicy Delete sets it to Delete.
	// +required
	DataPolicy DataPolicy `json:"dataPolicy,omitempty"`
}

// DataPolicy is what happens to an export's data when the export is deleted.
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
	// ExportServing: ganesha serves the export as of observedGeneration. The DataServer's Ready is whether ganesha
	// runs.
	ExportServing = "Serving"
	// ExportRemoved: the object is being deleted, and the data server has removed the export.
	ExportRemoved = "Removed"
)

// ShareExportStatus is what the supervisor reports of an export.
// +kubebuilder:validation:MinProperties=1
type ShareExportStatus struct {
	// conditions are Serving, and Removed once a deleted export is removed.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that ganesha has loaded.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// exportIDs are ganesha's Export_Ids, one for each volume in order. They are part of clients' file handles. Their
	// durable copy is stored with the data.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	ExportIDs []int32 `json:"exportIDs,omitempty"`

	// rootIDs are the identities of the share's root directories, one for each volume in order; "" means not known. A
	// directory that is made again has another identity.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=atomic
	// +optional
	RootIDs []string `json:"rootIDs,omitempty"`

	// inventory is which directories of the share the data server has. The leader of the namespace servers writes it
	// after it has listed all volumes through NFS and has written a ShareDirectory for each directory that had none.
	// +optional
	Inventory ShareInventory `json:"inventory,omitempty,omitzero"`
}

// ShareInventory is what was found of a share on the volumes of a data server.
type ShareInventory struct {
	// fileShareUID is the UID of the FileShare for which the inventory was made.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	FileShareUID string `json:"fileShareUID,omitempty"`

	// generation is the status.inventoryGeneration of the FileShare for which the inventory was made. An older
	// inventory does not cover ShareDirectories that were lost later.
	// +kubebuilder:validation:Minimum=1
	// +required
	Generation int64 `json:"generation,omitempty"`

	// occupiedVolumes are the volumes on which the root of a Single share is not empty.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=15
	// +listType=set
	// +optional
	OccupiedVolumes []int32 `json:"occupiedVolumes,omitempty"`

	// misplaced are some of the directories whose ShareDirectory names another data server or volume as owner. Clients
	// can't see these copies.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Misplaced []MisplacedDirectory `json:"misplaced,omitempty"`

	// misplacedCount is the number of misplaced directories.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MisplacedCount *int32 `json:"misplacedCount,omitempty"`

	// skipped are some of the directories that clients can't see because they can have no ShareDirectory: their paths
	// are longer than 1,024 characters or not UTF-8. Each entry has the volume, the path or its beginning, and the
	// cause.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	// +optional
	Skipped []string `json:"skipped,omitempty"`

	// skippedCount is the number of skipped directories.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SkippedCount *int32 `json:"skippedCount,omitempty"`
}

// MisplacedDirectory is a directory whose ShareDirectory names another data server or volume as owner.
type MisplacedDirectory struct {
	// volume is the volume on which it was found.
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

package rook

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Phases of Rook's objects (status.phase).
const (
	phaseReady   = "Ready"
	phaseFailure = "Failure"
)

// MonitorsConfigMap is where Rook writes the addresses of the monitors (pkg/operator/ceph/cluster/mon, EndpointConfigMapName).
const MonitorsConfigMap = "rook-ceph-mon-endpoints"

func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "ceph.rook.io", Version: "v1", Kind: name}
}

// The kinds that are read.
var (
	ClusterKind    = kind("CephCluster")
	FileSystemKind = kind("CephFilesystem")
	GroupKind      = kind("CephFilesystemSubVolumeGroup")
	ClientKind     = kind("CephClient")
)

// Cluster is a CephCluster, as far as it is read.
type Cluster struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		External struct {
			Enable bool `json:"enable"`
		} `json:"external"`
	} `json:"spec"`
	Status struct {
		Phase   string `json:"phase"`
		Message string `json:"message"`
		Ceph    struct {
			FSID    string                  `json:"fsid"`
			Health  string                  `json:"health"`
			Details map[string]HealthDetail `json:"details"`
		} `json:"ceph"`
	} `json:"status"`
}

// HealthDetail is one of Ceph's health checks.
type HealthDetail struct {
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

// Resource is one of Rook's other objects, of which only that it is there and how far it is are read.
type Resource struct {
	Metadata Metadata `json:"metadata"`
	Status   struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// Metadata is what is read of metadata.
type Metadata struct {
	DeletionTimestamp string `json:"deletionTimestamp"`
}

func (m Metadata) isDeleted() bool { return m.DeletionTimestamp != "" }

// Objects are what was read for a FileServer. What is nil is not there.
type Objects struct {
	// NotInstalled or Forbidden is the kind that the API server does not know, or that the operator may not read; "" if there is none.
	NotInstalled, Forbidden string

	Cluster                   *Cluster
	FileSystem, Group, Client *Resource
	// Monitors is the data of MonitorsConfigMap.
	Monitors map[string]string
}

// Read takes the fields that are used out of an object; nil if there is none.
func Read[T any](object *unstructured.Unstructured) (*T, error) {
	if object == nil {
		return nil, nil
	}
	read := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, read); err != nil {
		return nil, fmt.Errorf("%s %s has other fields than Rook 1.17 and 1.18 give it: %w", object.GetKind(), object.GetName(), err)
	}
	return read, nil
}

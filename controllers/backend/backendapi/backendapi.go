// Package backendapi has the interfaces between the operator and a storage back end: what data servers' pods get, whether
// the storage is available, its capacity, and where directories may be placed. controllers/backend selects the back end
// of a FileServer.
//
// It must not import a back end or a controller.
package backendapi

import (
	"cmp"
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
)

// Backend is a kind of storage. It has no state.
type Backend interface {
	// Observe reads the parts of a FileServer's storage that were not read yet.
	Observe(ctx context.Context, from Readers, observation Observation) (Storage, error)
	// ExportsPerShare is the number of exports of each share on a data server. Export_Ids are limited.
	ExportsPerShare(fs *v1alpha1.FileServer) int32
	// MakesShares reports whether Howdah itself makes a new share's directory in the storage.
	MakesShares(fs *v1alpha1.FileServer) bool
	// HasSteward reports whether a steward makes the directory of each share, which then has a ShareStorage.
	HasSteward(fs *v1alpha1.FileServer) bool
	// EnforcesSizes reports whether the storage can enforce spec.quota of a share. If not, the text says why and what
	// to do.
	EnforcesSizes(fs *v1alpha1.FileServer) (bool, string)
	// SnapshotRefusal is why shares of a FileServer can't have snapshots, and what to do instead; "" if they can.
	SnapshotRefusal(fs *v1alpha1.FileServer) string
	// HotDirectoriesRefusal is why only the owner of a directory can serve it, and what to do instead; "" if other data
	// servers can as well.
	HotDirectoriesRefusal(fs *v1alpha1.FileServer) string
	// IsShared reports whether all data servers use the same storage, so that each can serve every directory.
	IsShared() bool
	// Slots are the places of a data server for new directories.
	Slots(server *internalv1.DataServer, ready bool) []placement.Slot
}

// Readers read the API.
type Readers struct {
	// Cached reads the operator's cache, Live past it.
	Cached, Live client.Reader
	// Foreign reads objects of kinds that may not be installed (controllers/foreign).
	Foreign Foreign
}

// Foreign reads objects of other operators.
type Foreign interface {
	// Get returns nil if there is no such object. It returns the errors of controllers/foreign if that can't be known.
	Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error)
}

// Observation is what a pass over a FileServer has read before it observes the storage.
type Observation struct {
	FileServer *v1alpha1.FileServer
	// StatefulSet is the data servers' StatefulSet; nil if there is none.
	StatefulSet *appsv1.StatefulSet
	// DataServers are by name.
	DataServers map[string]internalv1.DataServer
	// Steward is the FileServer's Steward object; nil if there is none.
	Steward *internalv1.Steward
	// StewardRefusal is why the API server refuses the steward's pod; "" if it does not.
	StewardRefusal string
	// Nodes are all nodes, ClosedNodes those that take no pod of a data server now.
	Nodes       []corev1.Node
	ClosedNodes map[string]bool
	// Lost are the data servers whose Volumes are asked for.
	Lost map[string]bool
}

// Storage is the observed storage of one FileServer. It decides and reports; it neither reads nor writes.
type Storage interface {
	// Decide is what the data servers get. Labels are those of the FileServer's data servers.
	Decide(labels map[string]string) Decision
	// Condition returns the condition StorageAvailable for the given number of data servers.
	Condition(replicas int32, decided Decision) metav1.Condition
	// Capacity returns the total capacity of the data servers with these names; empty if none has reported.
	Capacity(servers []string) v1alpha1.FileServerCapacity
	// VolumeSize is the size that each claim of a data server has at least; nil if there are none.
	VolumeSize() *resource.Quantity
	// Remedy is what can be done about storage that fills up.
	Remedy() string
	// IsPinned reports whether the storage of a data server is on one node only, so that it can't start on another. It is known of data
	// servers that do not answer, and of those on closed nodes.
	IsPinned(server string) bool
	// Volumes are the volumes of a data server in Observation.Lost, with their attachments. There are none if data servers share their
	// storage.
	Volumes(server string) []failover.Volume
	// Claims returns the claims with the data of each data server, sorted, including removed data servers. It is empty
	// if data servers share their storage.
	Claims() map[string][]string
	// Remains describes what a deleted FileServer leaves behind; "" if nothing.
	Remains() string
}

// Decision is what a back end wants.
type Decision struct {
	// Servers is what the data servers' pods and objects get.
	Servers ServerStorage
	// Unowned has objects to apply without the FileServer as owner, Owned those with it. They are not pruned.
	Unowned, Owned []runtime.ApplyConfiguration
	// Again is the time until the storage is observed again; 0: only when an object changes.
	Again time.Duration
	// Fault is the condition StorageAvailable if the specification or the cluster has an error in the storage; else
	// nil.
	Fault *metav1.Condition
}

// ServerStorage is what each data server gets.
type ServerStorage struct {
	// Missing: pods could only wait, so no StatefulSet is made; an existing one stays. If Describe is nil too, nothing
	// is known about the storage yet, and no DataServers are made.
	Missing bool
	// ClaimTemplates are those of the StatefulSet.
	ClaimTemplates []*corev1ac.PersistentVolumeClaimApplyConfiguration
	// Volumes and Mounts are added to the pod and its container.
	Volumes []*corev1ac.VolumeApplyConfiguration
	Mounts  []*corev1ac.VolumeMountApplyConfiguration
	// Root: the container runs as user 0, because ganesha accesses the kernel's file system as its clients' users.
	// Otherwise the container runs as a user that owns no files.
	Root bool
	// GaneshaRoot: ganesha has serverpod.GaneshaRoot as its root directory. Mounts has each volume there, too.
	GaneshaRoot bool
	// Capabilities are the Linux capabilities that the container needs for the storage.
	Capabilities []corev1.Capability
	// LeaseSeconds and GraceSeconds are the defaults if spec.nfs leaves them unset.
	LeaseSeconds, GraceSeconds int32
	// Describe writes the storage's part of the specification of the DataServer with this number.
	Describe func(ordinal int32, spec *internalv1ac.DataServerSpecApplyConfiguration)
	// Steward is the FileServer's steward; nil if there is none.
	Steward *Steward
}

// Steward describes the pod that makes the places of shares.
type Steward struct {
	// Credential is the Secret that only its pod mounts.
	Credential string
	// Secret is written by the steward and mounted by data servers. The operator creates it empty.
	Secret string
	// Describe writes the storage's part of the specification of the Steward.
	Describe func(spec *internalv1ac.StewardSpecApplyConfiguration)
}

// Refusal returns the message of a data server that refuses its storage or can't use it; "" if there is none.
func Refusal(server *internalv1.DataServer) string {
	for _, c := range server.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && c.Status != metav1.ConditionTrue && (c.Reason == v1alpha1.ReasonVolumeRefused || c.Reason == v1alpha1.ReasonCephUnusable) {
			return c.Message
		}
	}
	return ""
}

// Refusing returns the data servers that refuse their storage or can't use it, and the message of the first. The causes
// are mostly the same for all.
func (s Observation) Refusing(replicas int32) (servers []string, words string) {
	for ordinal := range replicas {
		name := naming.DataServer(s.FileServer.Name, ordinal)
		server := s.DataServers[name]
		if refusal := Refusal(&server); refusal != "" {
			servers, words = append(servers, name), cmp.Or(words, refusal)
		}
	}
	return servers, words
}

package volumes

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/serverpod"
)

// Backend is storage.volumes.
type Backend struct{}

var _ backendapi.Backend = Backend{}

// MakesShares is so: a share is a directory of each volume.
func (Backend) MakesShares(*v1alpha1.FileServer) bool { return true }

// HasSteward is not so: data servers make the directories of shares themselves.
func (Backend) HasSteward(*v1alpha1.FileServer) bool { return false }

// EnforcesSizes is false: several shares are on one file system, whose only user is the data server, so no quota applies to a share.
func (Backend) EnforcesSizes(fs *v1alpha1.FileServer) (bool, string) {
	return false, fmt.Sprintf("the volumes of FileServer %s are file systems that all its shares are on, and nothing there can keep one share to a size; "+
		"remove spec.quota, or make the share on a FileServer of its own, whose volumes are as large as it may get", fs.Name)
}

// SnapshotRefusal is there always: a share is on the volumes of all data servers, and no moment is common to snapshots of several volumes. Plain volumes have none at all.
func (Backend) SnapshotRefusal(fs *v1alpha1.FileServer) string {
	return fmt.Sprintf("FileServer %s has its shares on volumes of its data servers (spec.storage.volumes), and there are no snapshots that would have one moment on all of them; "+
		"copy what is to be kept, or make the share on a FileServer with spec.storage.ceph", fs.Name)
}

// HotDirectoriesRefusal is there always: a directory is on one volume, which one data server has mounted.
func (Backend) HotDirectoriesRefusal(fs *v1alpha1.FileServer) string {
	return fmt.Sprintf("each data server of FileServer %s has volumes of its own (spec.storage.volumes), so only the data server that owns a directory can serve it; "+
		"remove the field and distribute the files over more directories, or make the share on a FileServer with spec.storage.ceph", fs.Name)
}

// ExportsPerShare is the number of volumes: each has an export of each share.
func (Backend) ExportsPerShare(fs *v1alpha1.FileServer) int32 { return perServer(fs) }

// IsShared is not so: volumes are each data server's own.
func (Backend) IsShared() bool { return false }

// Slots are the volumes.
func (Backend) Slots(server *internalv1.DataServer, ready bool) []placement.Slot {
	slots := make([]placement.Slot, 0, server.Spec.Volumes)
	for volume := range server.Spec.Volumes {
		room := fleet.RoomOf(server, volume)
		slots = append(slots, placement.Slot{
			Owner: placement.Owner{Server: server.Name, Volume: volume}, Ready: ready,
			TotalBytes: room.TotalBytes, UsedBytes: room.UsedBytes, Tight: room.Tight, Full: room.Full,
		})
	}
	return slots
}

// perServer is the number of volumes of each data server.
func perServer(fs *v1alpha1.FileServer) int32 { return fs.Spec.Storage.Volumes.PerServer }

// volumeSize is the size of each volume.
func volumeSize(fs *v1alpha1.FileServer) resource.Quantity {
	if size := fs.Spec.Storage.Volumes.Size; size != nil {
		return *size
	}
	return resource.Quantity{} // The schema requires it.
}

// Decide gives each data server claims of its own.
func (s *Storage) Decide(labels map[string]string) backendapi.Decision {
	chosen := s.choose()
	decision := backendapi.Decision{Fault: chosen.fault, Servers: Servers(s.FileServer, labels, chosen.className, chosen.templateSize)}
	for _, name := range chosen.grow {
		decision.Unowned = append(decision.Unowned, grownClaim(s.FileServer, name))
	}
	return decision
}

// Servers is what data servers get, with claims of a class and size. Without a class there are no pods: they could only wait.
func Servers(fs *v1alpha1.FileServer, labels map[string]string, className string, size resource.Quantity) backendapi.ServerStorage {
	servers := backendapi.ServerStorage{
		Missing:      className == "",
		Root:         true,
		GaneshaRoot:  true,
		Capabilities: capabilities(),
		LeaseSeconds: 10, GraceSeconds: 20,
		Describe: func(ordinal int32, spec *internalv1ac.DataServerSpecApplyConfiguration) {
			spec.WithVolumes(perServer(fs)).WithSharedFileSystemPolicy(sharedFileSystemPolicy(fs)).WithLostVolumes(lostVolumes(fs, ordinal)...)
		},
	}
	for volume := range perServer(fs) {
		name := naming.VolumeClaimTemplate(volume)
		servers.ClaimTemplates = append(servers.ClaimTemplates, claimTemplate(fs, labels, name, className, size))
		at := path.Join(naming.VolumesRoot, strconv.Itoa(int(volume)))
		servers.Mounts = append(servers.Mounts, corev1ac.VolumeMount().WithName(name).WithMountPath(at),
			corev1ac.VolumeMount().WithName(name).WithMountPath(path.Join(serverpod.GaneshaRoot, at)))
	}
	return servers
}

// lostVolumes are the volumes of a data server whose data is given up.
func lostVolumes(fs *v1alpha1.FileServer, ordinal int32) (lost []*internalv1ac.VolumeIdentityApplyConfiguration) {
	for volume := range perServer(fs) {
		for _, given := range fs.Spec.Storage.Volumes.LostVolumes {
			if given.ClaimName == naming.VolumeClaim(fs.Name, ordinal, volume) {
				lost = append(lost, internalv1ac.VolumeIdentity().WithIndex(volume).WithID(given.VolumeID))
			}
		}
	}
	return lost
}

// sharedFileSystemPolicy is never left to a default of another kind: what isn't known must forbid.
func sharedFileSystemPolicy(fs *v1alpha1.FileServer) v1alpha1.SharedFileSystemPolicy {
	return cmp.Or(fs.Spec.Storage.Volumes.SharedFileSystemPolicy, v1alpha1.SharedFileSystemForbid)
}

// claimTemplate marks the claims as ours by annotation, since they carry no owner
// reference: a FileServer that is made again under its old name finds them.
func claimTemplate(fs *v1alpha1.FileServer, labels map[string]string, name, className string, size resource.Quantity) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	// The constructor of the apply configuration wants a namespace, and a template has none.
	claim := &corev1ac.PersistentVolumeClaimApplyConfiguration{}
	return claim.
		WithName(name).
		WithLabels(labels).
		WithAnnotations(map[string]string{
			v1alpha1.OwnerAnnotation: naming.Owner("FileServer", fs.Namespace, fs.Name),
		}).
		WithSpec(corev1ac.PersistentVolumeClaimSpec().
			WithAccessModes(corev1.ReadWriteOnce).
			WithStorageClassName(className).
			WithResources(corev1ac.VolumeResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceStorage: size})))
}

// grownClaim is an existing claim of a FileServer with its size raised; it says
// nothing else about the claim. It is not to be owned.
func grownClaim(fs *v1alpha1.FileServer, name string) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	return corev1ac.PersistentVolumeClaim(name, fs.Namespace).
		WithSpec(corev1ac.PersistentVolumeClaimSpec().
			WithResources(corev1ac.VolumeResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceStorage: volumeSize(fs)})))
}

// IsPinned tells it of a data server that does not answer, or is on a closed node.
func (s *Storage) IsPinned(server string) bool { return s.Pinned[server] }

// Volumes tells it of data servers that were asked for.
func (s *Storage) Volumes(server string) []failover.Volume { return s.Attached[server] }

// Claims are those of the data servers, by server.
func (s *Storage) Claims() map[string][]string {
	byServer := map[string][]string{}
	for _, claim := range slices.Sorted(maps.Keys(s.All)) {
		if server, ok := naming.ServerOfClaim(s.FileServer.Name, claim); ok {
			byServer[server] = append(byServer[server], claim)
		}
	}
	return byServer
}

// Remains names the claims: they are never deleted.
func (s *Storage) Remains() string {
	names := slices.Sorted(maps.Keys(s.All))
	if len(names) == 0 {
		return ""
	}
	// The ready-made claims of shares have the FileServer's name, too, and may be of another one with that name in another Kubernetes namespace.
	return fmt.Sprintf("its data stays in %d claims: %s; to delete it for good: kubectl -n %s delete pvc -l %s",
		len(names), conditions.List(names, maxNamed), s.FileServer.Namespace, labels.FormatLabels(naming.SelectDataServers(s.FileServer.Name)))
}

// capabilities are those that a ganesha needs to act as clients' users on mounted file systems.
func capabilities() []corev1.Capability {
	needed := make([]corev1.Capability, 0, len(serverpod.Capabilities))
	for _, name := range serverpod.Capabilities {
		needed = append(needed, corev1.Capability(name))
	}
	return needed
}

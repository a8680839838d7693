// Package ceph is the operator's side of the back end storage.ceph. There are no claims. Data servers mount a Secret
// with users and keys, which the operator never reads. All data servers have the same storage
// (internal/dataserver/ceph).
package ceph

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/backend/ceph/rook"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/serverpod"
)

const (
	// groupOnly is the mode of files that the pod's group reads (fsGroup), because the data server is not root.
	groupOnly     = int32(0o440)
	secretsVolume = "ceph-secrets"
	// maxNamed bounds how many things a message names.
	maxNamed = 5
	// Clients that are idle come back when they renew their lease, and grace waits for them: Linux does after two thirds of it, but never before
	// 5 s (nfs4renewd.c). With 6 s, 5 to 6 of ganesha's clock, they were late when they were a little slow, and could lose what they had locked.
	leaseSeconds, graceSeconds = 8, 12
)

// Backend is storage.ceph.
type Backend struct{}

var _ backendapi.Backend = Backend{}

// Observe reads Rook's objects if Rook runs the cluster. Otherwise there is nothing to read, because the operator may
// not read the Secret.
func (Backend) Observe(ctx context.Context, from backendapi.Readers, observation backendapi.Observation) (backendapi.Storage, error) {
	s := &Storage{Observation: observation}
	if isRook(observation.FileServer) {
		objects, err := observeRook(ctx, from.Foreign, observation.FileServer)
		if err != nil {
			return nil, err
		}
		verdict := rook.Judge(observation.FileServer, objects, knownCluster(observation))
		s.rook = &verdict
	}
	return s, nil
}

// ExportsPerShare is one: a share is one directory in Ceph.
func (Backend) ExportsPerShare(*v1alpha1.FileServer) int32 { return 1 }

// MakesShares is true with a steward. Without one, the Ceph administrator makes the directory, user and key of each share, and the Secret's entry.
func (b Backend) MakesShares(fs *v1alpha1.FileServer) bool { return b.HasSteward(fs) }

// HasSteward is true if there is an account that can make places for shares, which is always so with Rook.
func (Backend) HasSteward(fs *v1alpha1.FileServer) bool {
	return isRook(fs) || fs.Spec.Storage.Ceph.External.ProvisioningSecretRef.Name != ""
}

// EnforcesSizes is true with a steward, whose account may set quotas. Without one, no account of Howdah may.
func (b Backend) EnforcesSizes(fs *v1alpha1.FileServer) (bool, string) {
	external := fs.Spec.Storage.Ceph.External
	if b.HasSteward(fs) {
		return true, ""
	}
	return false, fmt.Sprintf("the shares' directories in Ceph are those of Secret %s, and the accounts in it can set no quota; remove spec.quota, "+
		"and have the administrator of the Ceph set it, which clients then see in df: ceph fs subvolume resize %s SUBVOLUME BYTES --group_name GROUP; "+
		"or make the share on a FileServer with storage.ceph.external.provisioningSecretRef",
		external.SharesSecretRef.Name, external.FileSystem)
}

// SnapshotRefusal is set without a steward: the administrator who makes the directories in Ceph also makes snapshots.
// Users see those too.
func (b Backend) SnapshotRefusal(fs *v1alpha1.FileServer) string {
	if b.HasSteward(fs) {
		return ""
	}
	return fmt.Sprintf("Howdah has no account that may make snapshots in Ceph: the directories of FileServer %s are made by the administrator of the Ceph cluster (spec.storage.ceph.external.sharesSecretRef); "+
		"ask there for: ceph fs subvolume snapshot create %s SUBVOLUME NAME --group_name GROUP; users then find it below their directories as .snap/_NAME_NUMBER", fs.Name, fs.Spec.Storage.Ceph.External.FileSystem)
}

// HotDirectoriesRefusal is empty: every data server reaches all directories, and Ceph keeps them consistent.
func (Backend) HotDirectoriesRefusal(*v1alpha1.FileServer) string { return "" }

// IsShared is true: all data servers use one file system.
func (Backend) IsShared() bool { return true }

// Slots is the data server itself, without used space, which is the same for all.
func (Backend) Slots(server *internalv1.DataServer, ready bool) []placement.Slot {
	return []placement.Slot{{Owner: placement.Owner{Server: server.Name}, Ready: ready}}
}

// Storage is the Ceph file system of a FileServer.
type Storage struct {
	backendapi.Observation
	// rook is the result of reading Rook's objects; nil if Rook does not run the cluster.
	rook *rook.Verdict
}

var _ backendapi.Storage = (*Storage)(nil)

// Decide has each data server mount the Secret.
func (s *Storage) Decide(map[string]string) backendapi.Decision {
	if s.rook != nil {
		return s.decideRook()
	}
	return backendapi.Decision{Servers: Servers(s.FileServer)}
}

// place is where the data is, and with which accounts it is accessed.
type place struct {
	monitors                       []string
	fsid, fileSystem, recoveryPool string
	// recoveryUser is one user for all data servers; "" if the steward makes a user for each.
	recoveryUser string
	// credential is the Secret of the steward, secret the one that data servers mount.
	credential, secret string
}

// Servers is what data servers get if the FileServer itself names the cluster.
func Servers(fs *v1alpha1.FileServer) backendapi.ServerStorage {
	external := fs.Spec.Storage.Ceph.External
	return serversAt(fs, place{
		monitors: external.Monitors, fsid: external.FSID, fileSystem: external.FileSystem, recoveryPool: external.RecoveryPool, recoveryUser: external.RecoveryUser,
		credential: external.ProvisioningSecretRef.Name,
		secret:     cmp.Or(external.SharesSecretRef.Name, naming.StewardSecret(fs.Name, string(fs.UID))),
	})
}

// serversAt is what data servers get. If the Secret is missing, they start anyway, report it, and find it later. A pod
// that waits for the Secret could not report anything.
func serversAt(fs *v1alpha1.FileServer, at place) backendapi.ServerStorage {
	servers := backendapi.ServerStorage{
		LeaseSeconds: leaseSeconds, GraceSeconds: graceSeconds,
		Volumes: []*corev1ac.VolumeApplyConfiguration{corev1ac.Volume().WithName(secretsVolume).WithSecret(
			corev1ac.SecretVolumeSource().WithSecretName(at.secret).WithDefaultMode(groupOnly).WithOptional(true))},
		Mounts: []*corev1ac.VolumeMountApplyConfiguration{
			corev1ac.VolumeMount().WithName(secretsVolume).WithMountPath(serverpod.CephSecrets).WithReadOnly(true),
		},
		Describe: func(ordinal int32, spec *internalv1ac.DataServerSpecApplyConfiguration) {
			described := internalv1ac.CephFileSystem().
				WithMonitors(at.monitors...).WithFSID(at.fsid).WithFileSystem(at.fileSystem).
				WithRecoveryPool(at.recoveryPool).WithRecoveryUser(at.recoveryUser).WithSecretName(at.secret)
			if at.credential != "" {
				identity := v1alpha1.StorageIdentity(fs)
				described.WithRecoveryUser(ceph.RecoveryUser(identity, ordinal)).WithStewardName(fs.Name)
				if identity != string(fs.UID) { // Unset means the scope, which is the UID. Setting it would be a new configuration.
					described.WithIdentity(identity)
				}
			}
			spec.WithVolumes(1).WithCeph(described)
		},
	}
	if at.credential != "" {
		servers.Steward = stewardAt(at)
	}
	return servers
}

// Capacity is the capacity of the file system, as one of the data servers measured it.
func (s *Storage) Capacity(servers []string) v1alpha1.FileServerCapacity {
	for _, name := range slices.Sorted(slices.Values(servers)) {
		for _, volume := range s.DataServers[name].Status.Volumes {
			return v1alpha1.FileServerCapacity{TotalBytes: volume.TotalBytes, UsedBytes: volume.UsedBytes, FreeBytes: volume.FreeBytes}
		}
	}
	return v1alpha1.FileServerCapacity{}
}

// VolumeSize is nil: there are no claims.
func (s *Storage) VolumeSize() *resource.Quantity { return nil }

// Remedy is Ceph's own.
func (s *Storage) Remedy() string { return "remove files, or add OSDs" }

// IsPinned is false: every node can reach Ceph.
func (s *Storage) IsPinned(string) bool { return false }

// Volumes are none.
func (s *Storage) Volumes(string) []failover.Volume { return nil }

// Claims returns none.
func (s *Storage) Claims() map[string][]string { return nil }

// Remains is empty: nothing of Kubernetes is left. The directories in Ceph stay.
func (s *Storage) Remains() string { return "" }

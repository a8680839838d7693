package rook

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

// Secret is where Rook puts userID and userKey of the account that it makes for a CephClient (pkg/operator/ceph/client).
func Secret(identity string) string { return "rook-ceph-client-" + ceph.Account(identity) }

// Client is the CephClient of a FileServer: the account of its steward. It goes with the FileServer. Its name is that of the cephx user,
// because Rook writes the object's name, and not spec.name, into the Secret.
func Client(fs *v1alpha1.FileServer, labels map[string]string) *unstructured.Unstructured {
	caps := map[string]any{}
	for daemon, granted := range ceph.AccountCaps(v1alpha1.StorageIdentity(fs), fs.Spec.Storage.Ceph.Rook.FileSystem, fs.Spec.Storage.Ceph.Rook.RecoveryPool) {
		caps[daemon] = granted
	}
	return object("CephClient", ceph.Account(v1alpha1.StorageIdentity(fs)), fs.Namespace, labels, map[string]any{"caps": caps})
}

// Group is the subvolume group of a FileServer. It stays when the FileServer is deleted: Rook can't remove a group with directories,
// and would retry without end. Pinning is set, because without it Rook distributes groups over the ranks, where quotas overshoot.
func Group(fs *v1alpha1.FileServer, labels map[string]string) *unstructured.Unstructured {
	name := ceph.Group(v1alpha1.StorageIdentity(fs))
	return object("CephFilesystemSubVolumeGroup", name, fs.Namespace, labels, map[string]any{
		"name":           name,
		"filesystemName": fs.Spec.Storage.Ceph.Rook.FileSystem,
		"pinning":        map[string]any{"distributed": int64(0)},
	})
}

// FileSystem is the CephFilesystem that a FileServer asks for. It stays when the FileServer goes, and its data when it goes.
func FileSystem(fs *v1alpha1.FileServer, labels map[string]string) *unstructured.Unstructured {
	spec := fs.Spec.Storage.Ceph.Rook
	pool := func() map[string]any {
		return map[string]any{
			"failureDomain": cmp.Or(spec.CreateFileSystem.FailureDomain, "host"),
			// Rook refuses a pool with one copy unless requireSafeReplicaSize is false.
			"replicated": map[string]any{"size": int64(spec.CreateFileSystem.ReplicatedSize), "requireSafeReplicaSize": spec.CreateFileSystem.ReplicatedSize > 1},
		}
	}
	data := pool()
	data["name"] = "replicated"
	return object("CephFilesystem", spec.FileSystem, fs.Namespace, labels, map[string]any{
		"metadataPool":               pool(),
		"dataPools":                  []any{data},
		"preserveFilesystemOnDelete": true,
		"metadataServer":             map[string]any{"activeCount": int64(1), "activeStandby": true},
	})
}

func object(kind, name, namespace string, labels map[string]string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "ceph.rook.io/v1", "kind": kind, "spec": spec}}
	u.SetName(name)
	u.SetNamespace(namespace)
	u.SetLabels(labels)
	return u
}

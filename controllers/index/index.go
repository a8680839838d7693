package index

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/limits"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// Fields of objects in the cache, for client.MatchingFields.
const (
	fileServer = "howdah.fileServer"
	fileShare  = "howdah.fileShare"
	dataServer = "howdah.dataServer"
	job        = "howdah.job"
	volume     = "howdah.volume"
	snapshot   = "howdah.snapshot"
	schedule   = "howdah.schedule"
	retained   = "howdah.retained"
	place      = "howdah.place"
	waiting    = "howdah.waiting"
	ports      = "howdah.ports"
)

// OfFileServer lists what belongs to a FileServer and is in its Kubernetes namespace: ShareDirectories, ShareAttachments, and everything
// that was made for it. Its FileShares are SharesOf.
func OfFileServer(name string) client.MatchingFields { return client.MatchingFields{fileServer: name} }

// SharesOf lists the FileShares that name a FileServer, whether or not it allows them: those of all Kubernetes namespaces, or of one
// with client.InNamespace.
func SharesOf(namespace, name string) client.MatchingFields {
	return client.MatchingFields{fileServer: namespace + "/" + name}
}

// SharesAt lists the FileShares that name a FileServer, or its ShareAttachments, at a place of its tree (fleet.Places).
func SharesAt(namespace, name, at string) client.MatchingFields {
	return client.MatchingFields{place: namespace + "/" + name + at}
}

// SharesWaiting lists the FileShares that wait for another share of their FileServer to take less of its limits.
func SharesWaiting(namespace, name string) client.MatchingFields {
	return client.MatchingFields{waiting: namespace + "/" + name}
}

// WantingReservedPorts lists the FileShares in a FileServer's Kubernetes namespace, and the ShareAttachments of others that it allows, with an
// access rule for reserved ports.
func WantingReservedPorts(namespace, name string) client.MatchingFields {
	return client.MatchingFields{ports: namespace + "/" + name}
}

// HaveReservedPorts reports whether one of a share's access rules is for reserved ports.
func HaveReservedPorts(access []v1alpha1.AccessRule) bool {
	return slices.ContainsFunc(access, func(rule v1alpha1.AccessRule) bool { return rule.SourcePorts == v1alpha1.SourcePortsReserved })
}

// Retained lists the ShareDirectories of a FileServer that deleted shares left behind.
func Retained(fileServer string) client.MatchingFields {
	return client.MatchingFields{retained: fileServer}
}

// OfFileShare lists what belongs to a FileShare: by its key (naming.ShareKey) ShareDirectories, ShareExports, ShareStorages and ShareSnapshots, which
// are with its FileServer; by its name jobs, snapshots and their schedules, its claim and its volume.
func OfFileShare(name string) client.MatchingFields { return client.MatchingFields{fileShare: name} }

// OfDataServer lists the ShareExports of a data server.
func OfDataServer(name string) client.MatchingFields { return client.MatchingFields{dataServer: name} }

// OfJob lists the pods of an MLPerfStorageJob.
func OfJob(name string) client.MatchingFields { return client.MatchingFields{job: name} }

// OfSnapshot lists the ShareSnapshots of a FileShareSnapshot, in all Kubernetes namespaces.
func OfSnapshot(namespace, name string) client.MatchingFields {
	return client.MatchingFields{snapshot: naming.Owner("FileShareSnapshot", namespace, name)}
}

// OfSchedule lists the FileShareSnapshots that a FileShareSnapshotSchedule made.
func OfSchedule(name string) client.MatchingFields { return client.MatchingFields{schedule: name} }

// FromSnapshot lists the FileShares of a Kubernetes namespace (client.InNamespace) that were, or are to be, made from a FileShareSnapshot.
func FromSnapshot(name string) client.MatchingFields { return client.MatchingFields{snapshot: name} }

// OfVolume lists the FileShares and the ShareDirectories that were made for a claim of a StorageClass, by the name of its PersistentVolume.
func OfVolume(name string) client.MatchingFields { return client.MatchingFields{volume: name} }

// by are the fields of each kind. What is made for a FileServer, a share or a job tells it by a label.
var by = []struct {
	object client.Object
	field  string
	value  func(client.Object) string
}{
	{&v1alpha1.FileShare{}, fileServer, specOf(serverOf)},
	{&v1alpha1.FileShare{}, waiting, specOf(func(s *v1alpha1.FileShare) string {
		if limits.IsWaiting(s) {
			return serverOf(s)
		}
		return ""
	})},
	{&v1alpha1.FileShare{}, ports, specOf(func(s *v1alpha1.FileShare) string {
		if !naming.IsForeign(s) && HaveReservedPorts(s.Spec.Access) {
			return serverOf(s)
		}
		return ""
	})},
	{&internalv1.ShareAttachment{}, ports, specOf(func(a *internalv1.ShareAttachment) string {
		if HaveReservedPorts(a.Spec.Access) {
			return a.Namespace + "/" + a.Spec.FileServerRef.Name
		}
		return ""
	})},
	{&v1alpha1.FileShare{}, volume, specOf(func(s *v1alpha1.FileShare) string {
		if naming.IsProvisioned(s) {
			return s.Name
		}
		return ""
	})},
	{&v1alpha1.FileShare{}, snapshot, specOf(func(s *v1alpha1.FileShare) string { return s.Spec.Source.SnapshotRef.Name })},
	{&internalv1.ShareDirectory{}, volume, func(o client.Object) string {
		if _, rest, found := strings.Cut(o.GetAnnotations()[v1alpha1.ClaimAnnotation], "/"); found {
			_, uid, _ := strings.Cut(rest, "/")
			return naming.ProvisionedVolume(uid)
		}
		return ""
	}},
	{&internalv1.ShareAttachment{}, fileServer, specOf(func(a *internalv1.ShareAttachment) string { return a.Spec.FileServerRef.Name })},
	{&v1alpha1.MLPerfStorageJob{}, fileShare, specOf(func(j *v1alpha1.MLPerfStorageJob) string { return j.Spec.FileShareRef.Name })},
	{&v1alpha1.FileShareSnapshot{}, fileShare, specOf(func(s *v1alpha1.FileShareSnapshot) string { return s.Spec.FileShareRef.Name })},
	{&v1alpha1.FileShareSnapshot{}, schedule, label(v1alpha1.SnapshotScheduleLabel)},
	{&v1alpha1.FileShareSnapshotSchedule{}, fileShare, specOf(func(s *v1alpha1.FileShareSnapshotSchedule) string { return s.Spec.FileShareRef.Name })},
	{&internalv1.ShareSnapshot{}, fileShare, specOf(func(s *internalv1.ShareSnapshot) string { return s.Spec.FileShareRef.Name })},
	{&internalv1.ShareSnapshot{}, snapshot, func(o client.Object) string { return o.GetAnnotations()[v1alpha1.OwnerAnnotation] }},
	{&internalv1.ShareDirectory{}, fileServer, specOf(func(d *internalv1.ShareDirectory) string { return d.Spec.FileServerRef.Name })},
	{&internalv1.ShareDirectory{}, retained, specOf(func(d *internalv1.ShareDirectory) string {
		if d.Labels[v1alpha1.RetainedLabel] != v1alpha1.RetainedTrue {
			return ""
		}
		return d.Spec.FileServerRef.Name
	})},
	{&internalv1.ShareDirectory{}, fileShare, specOf(func(d *internalv1.ShareDirectory) string { return d.Spec.FileShareRef.Name })},
	{&internalv1.ShareAttachment{}, fileShare, specOf(func(a *internalv1.ShareAttachment) string { return a.Spec.FileShareRef.Name })},
	{&internalv1.ShareStorage{}, fileShare, specOf(func(s *internalv1.ShareStorage) string { return s.Spec.FileShareRef.Name })},
	{&internalv1.ShareExport{}, fileShare, specOf(func(e *internalv1.ShareExport) string { return e.Spec.FileShareRef.Name })},
	{&internalv1.ShareExport{}, dataServer, specOf(func(e *internalv1.ShareExport) string { return e.Spec.DataServerRef.Name })},
	{&internalv1.DataServer{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&internalv1.Steward{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&corev1.Pod{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&corev1.Pod{}, job, label(v1alpha1.JobLabel)},
	{&corev1.PersistentVolumeClaim{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&corev1.PersistentVolumeClaim{}, fileShare, label(v1alpha1.FileShareLabel)},
	{&corev1.PersistentVolume{}, fileShare, label(v1alpha1.FileShareLabel)},
	{&corev1.Service{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&discoveryv1.EndpointSlice{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&corev1.ServiceAccount{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&appsv1.StatefulSet{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&appsv1.Deployment{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&policyv1.PodDisruptionBudget{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&networkingv1.NetworkPolicy{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&rbacv1.Role{}, fileServer, label(v1alpha1.FileServerLabel)},
	{&rbacv1.RoleBinding{}, fileServer, label(v1alpha1.FileServerLabel)},
}

// Register tells the cache of the fields. It must be called before the manager starts.
func Register(ctx context.Context, indexer client.FieldIndexer) error {
	for _, object := range []client.Object{&v1alpha1.FileShare{}, &internalv1.ShareAttachment{}} {
		if err := indexer.IndexField(ctx, object, place, Places); err != nil {
			return fmt.Errorf("index of %T by %s: %w", object, place, err)
		}
	}
	for _, kind := range by {
		if err := indexer.IndexField(ctx, kind.object, kind.field, func(o client.Object) []string {
			if value := kind.value(o); value != "" {
				return []string{value}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("index of %T by %s: %w", kind.object, kind.field, err)
		}
	}
	return nil
}

// Places are the values of a FileShare, or of a ShareAttachment, for SharesAt.
func Places(object client.Object) []string {
	var server, path string
	switch o := object.(type) {
	case *v1alpha1.FileShare:
		server, path = serverOf(o), o.Spec.Path
	case *internalv1.ShareAttachment:
		server, path = o.Namespace+"/"+o.Spec.FileServerRef.Name, o.Spec.Path
	}
	places := fleet.Places(path)
	for i := range places {
		places[i] = server + places[i]
	}
	return places
}

func serverOf(share *v1alpha1.FileShare) string {
	return naming.ServerNamespace(share) + "/" + share.Spec.FileServerRef.Name
}

func label(key string) func(client.Object) string {
	return func(o client.Object) string { return o.GetLabels()[key] }
}

func specOf[T client.Object](value func(T) string) func(client.Object) string {
	return func(o client.Object) string {
		if typed, ok := o.(T); ok {
			return value(typed)
		}
		return ""
	}
}

package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/plugin/view"
)

// Read adds the objects of some resources in a Kubernetes namespace ("" for all) to a world. What the user may not read is noted
// in it.
func (c *Cluster) Read(ctx context.Context, w *view.World, namespace string, resources ...string) error {
	return c.ReadOnly(ctx, w, namespace, "", resources...)
}

// ReadOnly is Read of the objects that a label selector chooses.
func (c *Cluster) ReadOnly(ctx context.Context, w *view.World, namespace, selector string, resources ...string) error {
	for _, resource := range resources {
		err := c.readOne(ctx, w, resource, namespace, selector)
		if apierrors.IsForbidden(err) {
			hidden := view.Hidden{Resource: resource, Namespace: namespace, Right: "list"}
			if !slices.Contains(w.Hidden, hidden) {
				w.Hidden = append(w.Hidden, hidden)
			}
			continue
		}
		if err != nil {
			return Explain(err)
		}
	}
	return nil
}

func (c *Cluster) readOne(ctx context.Context, w *view.World, resource, namespace, selector string) error {
	read := func(into runtime.Object, each func() string) error {
		return c.list(ctx, resource, namespace, selector, into, each)
	}
	switch resource {
	case view.ResourceFileServers:
		return all[v1alpha1.FileServerList](read, &w.FileServers, func(l *v1alpha1.FileServerList) ([]v1alpha1.FileServer, string) { return l.Items, l.Continue })
	case view.ResourceFileShares:
		return all[v1alpha1.FileShareList](read, &w.FileShares, func(l *v1alpha1.FileShareList) ([]v1alpha1.FileShare, string) { return l.Items, l.Continue })
	case view.ResourceSnapshots:
		return all[v1alpha1.FileShareSnapshotList](read, &w.Snapshots, func(l *v1alpha1.FileShareSnapshotList) ([]v1alpha1.FileShareSnapshot, string) {
			return l.Items, l.Continue
		})
	case view.ResourceSchedules:
		return all[v1alpha1.FileShareSnapshotScheduleList](read, &w.Schedules, func(l *v1alpha1.FileShareSnapshotScheduleList) ([]v1alpha1.FileShareSnapshotSchedule, string) {
			return l.Items, l.Continue
		})
	case view.ResourceJobs:
		return all[v1alpha1.MLPerfStorageJobList](read, &w.Jobs, func(l *v1alpha1.MLPerfStorageJobList) ([]v1alpha1.MLPerfStorageJob, string) {
			return l.Items, l.Continue
		})
	case view.ResourceDataServers:
		return all[internalv1.DataServerList](read, &w.DataServers, func(l *internalv1.DataServerList) ([]internalv1.DataServer, string) { return l.Items, l.Continue })
	case view.ResourceShareExports:
		return all[internalv1.ShareExportList](read, &w.Exports, func(l *internalv1.ShareExportList) ([]internalv1.ShareExport, string) { return l.Items, l.Continue })
	case view.ResourceShareDirectories:
		return all[internalv1.ShareDirectoryList](read, &w.Directories, func(l *internalv1.ShareDirectoryList) ([]internalv1.ShareDirectory, string) {
			return l.Items, l.Continue
		})
	case view.ResourceShareAttachments:
		return all[internalv1.ShareAttachmentList](read, &w.Attachments, func(l *internalv1.ShareAttachmentList) ([]internalv1.ShareAttachment, string) {
			return l.Items, l.Continue
		})
	case view.ResourcePods:
		return all[corev1.PodList](read, &w.Pods, func(l *corev1.PodList) ([]corev1.Pod, string) { return l.Items, l.Continue })
	case view.ResourceClaims:
		return all[corev1.PersistentVolumeClaimList](read, &w.Claims, func(l *corev1.PersistentVolumeClaimList) ([]corev1.PersistentVolumeClaim, string) {
			return l.Items, l.Continue
		})
	case view.ResourceVolumes:
		return all[corev1.PersistentVolumeList](read, &w.ShareVolumes, func(l *corev1.PersistentVolumeList) ([]corev1.PersistentVolume, string) { return l.Items, l.Continue })
	case view.ResourceEvents:
		return all[corev1.EventList](read, &w.Events, func(l *corev1.EventList) ([]corev1.Event, string) { return l.Items, l.Continue })
	}
	panic("no reader for " + resource)
}

// object is a pointer to a list of the API.
type object[L any] interface {
	*L
	runtime.Object
}

// all reads the pages of a list.
func all[L any, P object[L], T any](read func(runtime.Object, func() string) error, into *[]T, items func(*L) ([]T, string)) error {
	list := P(new(L))
	return read(list, func() string {
		some, next := items(list)
		*into = append(*into, some...)
		*list = *new(L)
		return next
	})
}

package view

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
)

// World is what was read of a cluster.
type World struct {
	// Now is when it was read.
	Now time.Time
	// Namespace is the namespace that was read; "" for all.
	Namespace string

	FileServers  []v1alpha1.FileServer
	FileShares   []v1alpha1.FileShare
	Snapshots    []v1alpha1.FileShareSnapshot
	Schedules    []v1alpha1.FileShareSnapshotSchedule
	Jobs         []v1alpha1.MLPerfStorageJob
	DataServers  []internalv1.DataServer
	Exports      []internalv1.ShareExport
	Directories  []internalv1.ShareDirectory
	Attachments  []internalv1.ShareAttachment
	Pods         []corev1.Pod
	Claims       []corev1.PersistentVolumeClaim
	Events       []corev1.Event
	ShareVolumes []corev1.PersistentVolume

	// Hidden is what could not be read.
	Hidden []Hidden
}

// Hidden is a kind that could not be read.
type Hidden struct {
	// Resource is the kind in the plural with its group, as RBAC and kubectl name it: dataservers.internal.howdah.io.
	Resource string `json:"resource"`
	// Namespace is where it could not be read; "" for all.
	Namespace string `json:"namespace,omitempty"`
	// Right is the verb that the user lacks; "" if rights are not the reason.
	Right string `json:"right,omitempty"`
	// Message is the API server's error, if rights are not the reason.
	Message string `json:"message,omitempty"`
}

// IsHidden reports whether a kind could not be read in a namespace.
func (w *World) IsHidden(resource, namespace string) bool {
	return slices.ContainsFunc(w.Hidden, func(h Hidden) bool {
		return h.Resource == resource && (h.Namespace == "" || h.Namespace == namespace)
	})
}

// Resources of the API, as RBAC and kubectl name them.
const (
	ResourceFileServers      = "fileservers.howdah.io"
	ResourceFileShares       = "fileshares.howdah.io"
	ResourceSnapshots        = "filesharesnapshots.howdah.io"
	ResourceSchedules        = "filesharesnapshotschedules.howdah.io"
	ResourceJobs             = "mlperfstoragejobs.howdah.io"
	ResourceDataServers      = "dataservers.internal.howdah.io"
	ResourceShareExports     = "shareexports.internal.howdah.io"
	ResourceShareDirectories = "sharedirectories.internal.howdah.io"
	ResourceShareAttachments = "shareattachments.internal.howdah.io"
	ResourcePods             = "pods"
	ResourceEvents           = "events"
	ResourceClaims           = "persistentvolumeclaims"
	ResourceVolumes          = "persistentvolumes"
	ResourceNodes            = "nodes"
)

// FileServer finds one by name; nil if it was not read.
func (w *World) FileServer(namespace, name string) *v1alpha1.FileServer {
	for i := range w.FileServers {
		if w.FileServers[i].Namespace == namespace && w.FileServers[i].Name == name {
			return &w.FileServers[i]
		}
	}
	return nil
}

// FileShare finds one by name; nil if it was not read.
func (w *World) FileShare(namespace, name string) *v1alpha1.FileShare {
	for i := range w.FileShares {
		if w.FileShares[i].Namespace == namespace && w.FileShares[i].Name == name {
			return &w.FileShares[i]
		}
	}
	return nil
}

// dataServersOf are those of a FileServer, by number.
func (w *World) dataServersOf(fs *v1alpha1.FileServer) []*internalv1.DataServer {
	var of []*internalv1.DataServer
	for i := range w.DataServers {
		if s := &w.DataServers[i]; s.Namespace == fs.Namespace && s.Spec.FileServerRef.Name == fs.Name {
			of = append(of, s)
		}
	}
	slices.SortFunc(of, func(a, b *internalv1.DataServer) int { return placement.CompareNatural(a.Name, b.Name) })
	return of
}

// sharesOf are the FileShares that were read of a FileServer, by path.
func (w *World) sharesOf(namespace, name string) []*v1alpha1.FileShare {
	var of []*v1alpha1.FileShare
	for i := range w.FileShares {
		if s := &w.FileShares[i]; naming.ServerNamespace(s) == namespace && s.Spec.FileServerRef.Name == name {
			of = append(of, s)
		}
	}
	slices.SortFunc(of, func(a, b *v1alpha1.FileShare) int {
		return cmp.Or(placement.CompareNatural(a.Spec.Path, b.Spec.Path), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return of
}

// directoriesOf are those of a share, by its key, that a data server owns and that are in the tree, by path.
func (w *World) directoriesOf(namespace, fileServer, key string) []*internalv1.ShareDirectory {
	var of []*internalv1.ShareDirectory
	for i := range w.Directories {
		d := &w.Directories[i]
		if d.Namespace == namespace && d.Spec.FileServerRef.Name == fileServer && d.Spec.FileShareRef.Name == key &&
			d.Spec.DataServerRef.Name != "" && d.Labels[v1alpha1.RetainedLabel] != v1alpha1.RetainedTrue {
			of = append(of, d)
		}
	}
	slices.SortFunc(of, func(a, b *internalv1.ShareDirectory) int { return placement.CompareNatural(a.Spec.Path, b.Spec.Path) })
	return of
}

// pod finds one by name; nil if there is none.
func (w *World) pod(namespace, name string) *corev1.Pod {
	for i := range w.Pods {
		if w.Pods[i].Namespace == namespace && w.Pods[i].Name == name {
			return &w.Pods[i]
		}
	}
	return nil
}

// podsOf are the pods that have all of the labels, by name.
func (w *World) podsOf(namespace string, labels map[string]string) []*corev1.Pod {
	var of []*corev1.Pod
	for i := range w.Pods {
		pod := &w.Pods[i]
		if pod.Namespace != namespace {
			continue
		}
		matches := true
		for key, value := range labels {
			matches = matches && pod.Labels[key] == value
		}
		if matches {
			of = append(of, pod)
		}
	}
	slices.SortFunc(of, func(a, b *corev1.Pod) int { return placement.CompareNatural(a.Name, b.Name) })
	return of
}

// condition is that of a type; nil if there is none.
func condition(all []metav1.Condition, kind string) *metav1.Condition {
	for i := range all {
		if all[i].Type == kind {
			return &all[i]
		}
	}
	return nil
}

package controllers

import (
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
)

// CacheOptions restrict the cache to what Howdah has made (the managed-by
// label, which pod templates must set as well), so that a big cluster's other
// objects cost nothing. watchNamespaces empty means all. Of managed fields those stay that the applier reads: its own, of kinds that it applies.
// What a tenant can make large or many is kept without what controllers don't read.
func CacheOptions(watchNamespaces []string) cache.Options {
	made := labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
	ours := cache.ByObject{Label: made, Transform: keepApplied}
	// Kubernetes' own have the labels of their Services.
	slices := cache.ByObject{Transform: keepApplied, Label: labels.SelectorFromSet(labels.Set{
		v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, discoveryv1.LabelManagedBy: v1alpha1.EndpointSlicesManagedBy,
	})}
	options := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Node{}:                        {Transform: slimNode},
		&corev1.Namespace{}:                   {Transform: slimNamespace},
		&v1alpha1.FileServer{}:                {Transform: slimObject},
		&v1alpha1.FileShare{}:                 {Transform: slimObject},
		&v1alpha1.MLPerfStorageJob{}:          {Transform: slimObject},
		&v1alpha1.FileShareSnapshotSchedule{}: {Transform: slimObject},
		&internalv1.DataServer{}:              {Transform: keepApplied},
		&internalv1.Steward{}:                 {Transform: keepApplied},
		&internalv1.ShareAttachment{}:         {Transform: slimObject},
		&internalv1.ShareExport{}:             {Transform: slimExport},
		&internalv1.ShareStorage{}:            {Transform: slimObject},
		&internalv1.ShareSnapshot{}:           {Transform: slimObject},
		&v1alpha1.FileShareSnapshot{}:         {Transform: slimObject},
		&internalv1.ShareDirectory{}:          {Transform: slimDirectory},
		&corev1.Pod{}:                         {Label: made, Transform: slimObject},
		&corev1.Service{}:                     {Label: made, Transform: keepStatusTime},
		&discoveryv1.EndpointSlice{}:          slices,
		&corev1.ConfigMap{}:                   ours,
		&corev1.ServiceAccount{}:              ours,
		&corev1.PersistentVolume{}:            ours,
		&corev1.PersistentVolumeClaim{}:       ours,
		&appsv1.StatefulSet{}:                 ours,
		&appsv1.Deployment{}:                  ours,
		&batchv1.Job{}:                        ours,
		&policyv1.PodDisruptionBudget{}:       ours,
		&networkingv1.NetworkPolicy{}:         ours,
		&rbacv1.Role{}:                        ours,
		&rbacv1.RoleBinding{}:                 ours,
	}}
	if len(watchNamespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range watchNamespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// The labels of ShareDirectories in the cache, shared by all of them. One is always there: a merge patch that takes away
// the last of an object's labels as the cache knows them takes away all that it has.
var (
	directoryLabels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	retainedLabels  = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.RetainedLabel: v1alpha1.RetainedTrue}
)

// slimDirectory keeps what controllers read of a ShareDirectory: there can be 100,000. The label that is kept is the one that
// they change; they find ShareDirectories by their specification (controllers/index).
func slimDirectory(object any) (any, error) {
	directory, ok := object.(*internalv1.ShareDirectory)
	if !ok {
		return object, nil
	}
	directory.TypeMeta = metav1.TypeMeta{}
	directory.ManagedFields = nil
	if directory.Labels[v1alpha1.RetainedLabel] == v1alpha1.RetainedTrue {
		directory.Labels = retainedLabels
	} else {
		directory.Labels = directoryLabels
	}
	if len(directory.Annotations) == 0 {
		directory.Annotations = nil
	}
	spec := &directory.Spec
	for _, text := range []*string{&directory.Namespace, &spec.FileServerRef.Name, &spec.FileShareRef.Name, &spec.DataServerRef.Name, &spec.Mode} {
		*text = unique.Make(*text).Value()
	}
	return directory, nil
}

// slimExport keeps a digest of an export's access rules: what they are is read of the share, and the longest take some
// 130 KiB of memory, on every data server again.
func slimExport(object any) (any, error) {
	if export, ok := object.(*internalv1.ShareExport); ok {
		export.ManagedFields = nil
		export.Spec.Access = desired.AccessDigest(export.Spec.Access)
	}
	return object, nil
}

// slimObject leaves out managed fields, which are of no use where nothing is applied, and what kubectl apply notes in an annotation: the whole
// object once more. The annotation's key stays, so that no patch that is made from the cache's object takes it for one that goes.
func slimObject(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object, nil // What is deleted without a last state.
	}
	accessor.SetManagedFields(nil)
	dropLastApplied(accessor)
	return object, nil
}

// keepApplied is slimObject that leaves the managed fields of what we applied: by them the applier sees that an object is as it left it.
func keepApplied(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object, nil
	}
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range accessor.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply && strings.HasPrefix(entry.Manager, "howdah-") {
			kept = append(kept, entry)
		}
	}
	accessor.SetManagedFields(kept)
	dropLastApplied(accessor)
	return object, nil
}

// keepStatusTime is keepApplied that also leaves when the status was last written: by that an address of a load balancer is known to be new.
func keepStatusTime(object any) (any, error) {
	var newest *metav1.Time
	accessor, err := meta.Accessor(object)
	if err == nil {
		for _, entry := range accessor.GetManagedFields() {
			if entry.Subresource == "status" && entry.Time != nil && !entry.Time.Before(newest) {
				newest = entry.Time
			}
		}
	}
	object, err = keepApplied(object)
	if err == nil && newest != nil {
		accessor.SetManagedFields(append(accessor.GetManagedFields(), metav1.ManagedFieldsEntry{Subresource: "status", Time: newest}))
	}
	return object, err
}

func dropLastApplied(object metav1.Object) {
	if annotations := object.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		annotations[corev1.LastAppliedConfigAnnotation] = ""
	}
}

// slimNamespace keeps labels: a cluster can have thousands of namespaces, and a FileServer chooses by these alone.
func slimNamespace(object any) (any, error) {
	if namespace, ok := object.(*corev1.Namespace); ok {
		namespace.ManagedFields, namespace.Annotations = nil, nil
	}
	return object, nil
}

func slimNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields = nil
		node.Status.Images = nil
	}
	return object, nil
}

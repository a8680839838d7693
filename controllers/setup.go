// Package controllers wires the controllers of all kinds into one manager. It
// decides what the manager's cache holds, and nothing else.
package controllers

import (
	"context"
	"fmt"
	"unique"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/fileserver"
	"github.com/howdah/howdah/controllers/fileshare"
	"github.com/howdah/howdah/controllers/filesharesnapshot"
	"github.com/howdah/howdah/controllers/filesharesnapshotschedule"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/mlperfstoragejob"
	"github.com/howdah/howdah/controllers/objectmetrics"
	"github.com/howdah/howdah/controllers/provisioner"
)

// Options are what all controllers share.
type Options struct {
	// Images are the images of the pods that controllers make. Required.
	Images desired.Images
	// NetworkPolicies are made for each FileServer's pods, unless nil.
	NetworkPolicies *desired.NetworkPolicies
	// Clock says when it is: a servertime.Clock where that decides what is deleted. Required.
	Clock clock.PassiveClock
	// WatchNamespaces are the Kubernetes namespaces that the cache has, as given to CacheOptions; none means all.
	WatchNamespaces []string
	// ProvisionClaims has claims of StorageClasses with Howdah's provisioner become shares.
	ProvisionClaims bool
	// Metrics is where metrics of the objects are registered; nil: nowhere.
	Metrics prometheus.Registerer
}

// Scheme has every kind that controllers use.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, internalv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// CacheOptions restrict the cache to what Howdah has made (the managed-by
// label, which pod templates must set as well), so that a big cluster's other
// objects cost nothing. watchNamespaces empty means all. Managed fields stay, because the
// applier reads them, but for kinds that nothing is applied to: nodes, and ShareDirectories, ShareExports and ShareStorages, of which there are many.
func CacheOptions(watchNamespaces []string) cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})}
	// Kubernetes' own have the labels of their Services.
	slices := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{
		v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, discoveryv1.LabelManagedBy: v1alpha1.EndpointSlicesManagedBy,
	})}
	options := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Node{}:                  {Transform: slimNode},
		&corev1.Namespace{}:             {Transform: cache.TransformStripManagedFields()},
		&internalv1.ShareAttachment{}:   {Transform: cache.TransformStripManagedFields()},
		&internalv1.ShareExport{}:       {Transform: slimExport},
		&internalv1.ShareStorage{}:      {Transform: cache.TransformStripManagedFields()},
		&internalv1.ShareSnapshot{}:     {Transform: cache.TransformStripManagedFields()},
		&v1alpha1.FileShareSnapshot{}:   {Transform: cache.TransformStripManagedFields()},
		&internalv1.ShareDirectory{}:    {Transform: slimDirectory},
		&corev1.Pod{}:                   ours,
		&corev1.Service{}:               ours,
		&discoveryv1.EndpointSlice{}:    slices,
		&corev1.ConfigMap{}:             ours,
		&corev1.ServiceAccount{}:        ours,
		&corev1.PersistentVolume{}:      ours,
		&corev1.PersistentVolumeClaim{}: ours,
		&appsv1.StatefulSet{}:           ours,
		&appsv1.Deployment{}:            ours,
		&batchv1.Job{}:                  ours,
		&policyv1.PodDisruptionBudget{}: ours,
		&networkingv1.NetworkPolicy{}:   ours,
		&rbacv1.Role{}:                  ours,
		&rbacv1.RoleBinding{}:           ours,
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

func slimNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields = nil
		node.Status.Images = nil
	}
	return object, nil
}

// setupSnapshots registers the controllers of snapshots and their schedules.
func setupSnapshots(mgr ctrl.Manager, options Options) error {
	if err := (&filesharesnapshot.Reconciler{
		Client: mgr.GetClient(),
		Live:   mgr.GetAPIReader(),
		Clock:  options.Clock,
		Events: apply.Brief(mgr.GetEventRecorder(filesharesnapshot.FieldManager)),

		WatchNamespaces: options.WatchNamespaces,
	}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("controller of FileShareSnapshots: %w", err)
	}
	if err := (&filesharesnapshotschedule.Reconciler{
		Client: mgr.GetClient(),
		Live:   mgr.GetAPIReader(),
		Clock:  options.Clock,
		Events: apply.Brief(mgr.GetEventRecorder(filesharesnapshotschedule.FieldManager)),

		WatchNamespaces: options.WatchNamespaces,
	}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("controller of FileShareSnapshotSchedules: %w", err)
	}
	return nil
}

// SetupWithManager registers every controller.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options Options) error {
	if err := index.Register(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	applier := func(fieldManager string) *apply.Applier {
		return apply.New(mgr.GetClient(), mgr.GetAPIReader(), fieldManager)
	}
	recorder := func(name string) events.EventRecorder { return apply.Brief(mgr.GetEventRecorder(name)) }
	if err := (&fileserver.Reconciler{
		Client:  mgr.GetClient(),
		Live:    mgr.GetAPIReader(),
		Applier: applier(fileserver.FieldManager),
		Images:  options.Images,
		Clock:   options.Clock,
		Events:  recorder(fileserver.FieldManager),

		NetworkPolicies: options.NetworkPolicies,
		WatchNamespaces: options.WatchNamespaces,
	}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("controller of FileServers: %w", err)
	}
	if err := (&fileshare.Reconciler{
		Client:  mgr.GetClient(),
		Live:    mgr.GetAPIReader(),
		Applier: applier(fileshare.FieldManager),
		Clock:   options.Clock,
		Events:  recorder(fileshare.FieldManager),

		WatchNamespaces: options.WatchNamespaces,
	}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("controller of FileShares: %w", err)
	}
	if err := setupSnapshots(mgr, options); err != nil {
		return err
	}
	if err := (&mlperfstoragejob.Reconciler{
		Client:  mgr.GetClient(),
		Applier: applier(mlperfstoragejob.FieldManager),
		Images:  options.Images,
		Clock:   options.Clock,
		Events:  recorder(mlperfstoragejob.FieldManager),
	}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("controller of MLPerfStorageJobs: %w", err)
	}
	if options.ProvisionClaims {
		if err := (&provisioner.Reconciler{
			Client: mgr.GetClient(),
			Live:   mgr.GetAPIReader(),
			Events: recorder(provisioner.FieldManager),

			WatchNamespaces: options.WatchNamespaces,
		}).SetupWithManager(ctx, mgr); err != nil {
			return fmt.Errorf("controller of claims: %w", err)
		}
	}
	if options.Metrics == nil {
		return nil
	}
	if err := options.Metrics.Register(&objectmetrics.Collector{Reader: mgr.GetCache(), Elected: mgr.Elected()}); err != nil {
		return fmt.Errorf("metrics of objects: %w", err)
	}
	return nil
}

// Package controllers wires the controllers of all kinds into one manager. It
// decides what the manager's cache holds, and nothing else.
package controllers

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

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
	"github.com/howdah/howdah/controllers/namespaceprobe"
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
	// Probe reports whether a namespace server answers; nil means namespaceprobe.Answers.
	Probe func(context.Context, *corev1.Pod) bool
	// Failover lets FileServers have their data servers started on other nodes when a node is lost (spec.failover).
	Failover bool
	// FailoverVolumes is the same for FileServers on volumes.
	FailoverVolumes bool
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
		Failover:        options.Failover,
		FailoverVolumes: options.FailoverVolumes,
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
		Live:    mgr.GetAPIReader(),
		Applier: applier(mlperfstoragejob.FieldManager),
		Images:  options.Images,
		Clock:   options.Clock,
		Events:  recorder(mlperfstoragejob.FieldManager),

		WatchNamespaces: options.WatchNamespaces,
	}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("controller of MLPerfStorageJobs: %w", err)
	}
	if options.ProvisionClaims {
		if err := (&provisioner.Reconciler{
			Client: mgr.GetClient(),
			Live:   mgr.GetAPIReader(),
			Clock:  options.Clock,
			Events: recorder(provisioner.FieldManager),

			WatchNamespaces: options.WatchNamespaces,
		}).SetupWithManager(ctx, mgr); err != nil {
			return fmt.Errorf("controller of claims: %w", err)
		}
	}
	if err := mgr.Add(&namespaceprobe.Prober{
		Client: mgr.GetClient(), Events: recorder(namespaceprobe.FieldManager), Clock: clock.RealClock{}, Ask: options.Probe,
	}); err != nil {
		return fmt.Errorf("probes of namespace servers: %w", err)
	}
	if options.Metrics == nil {
		return nil
	}
	if err := options.Metrics.Register(&objectmetrics.Collector{Reader: mgr.GetCache(), Elected: mgr.Elected()}); err != nil {
		return fmt.Errorf("metrics of objects: %w", err)
	}
	return nil
}

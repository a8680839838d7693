package ceph

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/backend/ceph/rook"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/foreign"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/naming"
)

// lookAgain is the interval for reading kinds that can't be watched because they are not installed or not readable.
const lookAgain = 15 * time.Second

var monitorsKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// ForeignKinds are the kinds that Rook's side of the back end reads. What is ignored changes every minute.
func ForeignKinds() []foreign.Kind {
	status := func(fields ...string) (paths [][]string) {
		for _, field := range append(fields, "conditions") {
			paths = append(paths, []string{"status", field})
		}
		return paths
	}
	return []foreign.Kind{
		{GroupVersionKind: rook.ClusterKind, Ignored: append(status("storage"), []string{"status", "ceph", "lastChecked"}, []string{"status", "ceph", "capacity"})},
		{GroupVersionKind: rook.FileSystemKind, Ignored: status("mirroringStatus", "snapshotScheduleStatus")},
		{GroupVersionKind: rook.GroupKind},
		{GroupVersionKind: rook.ClientKind},
		{GroupVersionKind: monitorsKind, Name: rook.MonitorsConfigMap},
	}
}

func isRook(fs *v1alpha1.FileServer) bool { return fs.Spec.Storage.Ceph.Rook.ClusterRef.Name != "" }

// knownCluster is the cluster that the FileServer's servers already use. File handles and data depend on it, so later changes of Rook's objects don't replace it.
func knownCluster(observation backendapi.Observation) rook.Place {
	if observation.Steward != nil {
		return rook.Place{Monitors: observation.Steward.Spec.Ceph.Monitors, FSID: observation.Steward.Spec.Ceph.FSID}
	}
	for _, name := range slices.Sorted(maps.Keys(observation.DataServers)) {
		if at := observation.DataServers[name].Spec.Ceph; at.FSID != "" {
			return rook.Place{Monitors: at.Monitors, FSID: at.FSID}
		}
	}
	return rook.Place{}
}

// observeRook reads what there is of Rook's objects for a FileServer.
func observeRook(ctx context.Context, from backendapi.Foreign, fs *v1alpha1.FileServer) (rook.Objects, error) {
	var o rook.Objects
	spec, identity := fs.Spec.Storage.Ceph.Rook, v1alpha1.StorageIdentity(fs)
	for _, one := range []struct {
		kind schema.GroupVersionKind
		name string
		keep func(*unstructured.Unstructured) error
	}{
		{rook.ClusterKind, spec.ClusterRef.Name, into(&o.Cluster)},
		{rook.FileSystemKind, spec.FileSystem, into(&o.FileSystem)},
		{rook.GroupKind, ceph.Group(identity), into(&o.Group)},
		{rook.ClientKind, ceph.Account(identity), into(&o.Client)},
		{monitorsKind, rook.MonitorsConfigMap, func(object *unstructured.Unstructured) error {
			if object == nil {
				return nil
			}
			var found bool
			var err error
			o.Monitors, found, err = unstructured.NestedStringMap(object.Object, "data")
			if !found {
				o.Monitors = map[string]string{}
			}
			return err
		}},
	} {
		object, err := from.Get(ctx, one.kind, client.ObjectKey{Namespace: fs.Namespace, Name: one.name})
		switch {
		case errors.Is(err, foreign.ErrNotInstalled):
			o.NotInstalled = one.kind.Kind
			return o, nil
		case errors.Is(err, foreign.ErrForbidden):
			o.Forbidden = one.kind.Kind
			return o, nil
		case err != nil:
			return o, err
		}
		if err := one.keep(object); err != nil {
			return o, err
		}
	}
	return o, nil
}

// into reads an object to where it is kept.
func into[T any](target **T) func(*unstructured.Unstructured) error {
	return func(object *unstructured.Unstructured) (err error) {
		*target, err = rook.Read[T](object)
		return err
	}
}

// decideRook requests an account and a subvolume group from Rook. Data servers and steward use them as they use a given account.
func (s *Storage) decideRook() backendapi.Decision {
	fs, spec := s.FileServer, s.FileServer.Spec.Storage.Ceph.Rook
	d := backendapi.Decision{Servers: backendapi.ServerStorage{Missing: true, LeaseSeconds: leaseSeconds, GraceSeconds: graceSeconds}}
	if at := s.rook.Place; at.IsKnown() {
		d.Servers = serversAt(fs, place{
			monitors: at.Monitors, fsid: at.FSID, fileSystem: spec.FileSystem, recoveryPool: spec.RecoveryPool,
			credential: rook.Secret(v1alpha1.StorageIdentity(fs)), secret: naming.StewardSecret(fs.Name, string(fs.UID)),
		})
	}
	labels := naming.SelectSteward(fs.Name)
	if s.rook.Create {
		d.Unowned = append(d.Unowned, client.ApplyConfigurationFromUnstructured(rook.FileSystem(fs, labels)))
	}
	if s.rook.MayAsk {
		d.Owned = []runtime.ApplyConfiguration{client.ApplyConfigurationFromUnstructured(rook.Client(fs, labels))}
		d.Unowned = append(d.Unowned, client.ApplyConfigurationFromUnstructured(rook.Group(fs, labels)))
	}
	if s.rook.Fault != "" {
		d.Again = lookAgain
	}
	return d
}

// rookFault is what Rook lacks, nil if nothing.
func (s *Storage) rookFault() *metav1.Condition {
	if s.rook == nil || s.rook.Fault == "" {
		return nil
	}
	reason := v1alpha1.ReasonRookNotReady
	if s.rook.Transient {
		reason = v1alpha1.ReasonProgressing
	}
	fault := conditions.False(v1alpha1.FileServerStorageAvailable, reason, s.rook.Fault)
	return &fault
}

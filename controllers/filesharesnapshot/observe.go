package filesharesnapshot

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/internal/naming"
)

// observed is all that a pass knows.
type observed struct {
	now      time.Time
	snapshot *v1alpha1.FileShareSnapshot
	// share and fileServer are nil if they do not exist.
	share      *v1alpha1.FileShare
	fileServer *v1alpha1.FileServer
	// stored is the ShareSnapshot; nil if there is none.
	stored *internalv1.ShareSnapshot
	// unwatched is the Kubernetes namespace of the share's FileServer if the operator does not watch it; "" if it does. Nothing is known of what is there.
	unwatched string
	// earlier: there is one, of an earlier Kubernetes namespace of this name, and it was not handed over; stored is nil.
	earlier bool
	// namespaceUID is the UID of the snapshot's Kubernetes namespace, if it matters.
	namespaceUID string
}

func (r *Reconciler) observe(ctx context.Context, snapshot *v1alpha1.FileShareSnapshot) (*observed, error) {
	o := &observed{now: r.Clock.Now(), snapshot: snapshot}
	share := &v1alpha1.FileShare{}
	if found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: snapshot.Namespace, Name: snapshot.Spec.FileShareRef.Name}, share); err != nil {
		return nil, err
	} else if found {
		o.share = share
	}
	if o.share != nil && !r.WatchNamespaces.Include(naming.ServerNamespace(share)) {
		o.unwatched = naming.ServerNamespace(share)
	} else if o.share != nil {
		fileServer := &v1alpha1.FileServer{}
		if found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: naming.ServerNamespace(share), Name: share.Spec.FileServerRef.Name}, fileServer); err != nil {
			return nil, err
		} else if found {
			o.fileServer = fileServer
		}
	}
	var list internalv1.ShareSnapshotList
	if err := r.Client.List(ctx, &list, index.OfSnapshot(snapshot.Namespace, snapshot.Name)); err != nil {
		return nil, fmt.Errorf("listing ShareSnapshots: %w", err)
	}
	if len(list.Items) == 0 {
		return o, nil
	}
	o.stored = &list.Items[0] // Even if the share is deleted.
	return o, r.observeNamespace(ctx, o)
}

// readStored reads past the cache whether there is a ShareSnapshot that the cache does not show, while the share exists:
// nothing may be made twice, or left by a deletion right after the creation. Passes that do neither don't need it; a
// tenant can have any number of snapshots that can't be made.
func (r *Reconciler) readStored(ctx context.Context, o *observed) error {
	if o.stored != nil || o.earlier || o.share == nil || o.unwatched != "" {
		return nil
	}
	stored := &internalv1.ShareSnapshot{}
	key := types.NamespacedName{Namespace: naming.ServerNamespace(o.share), Name: naming.ShareSnapshot(naming.KeyOf(o.share), o.snapshot.Name)}
	found, err := lookup.Object(ctx, r.Live, key, stored)
	if err != nil {
		return err
	}
	if found {
		o.stored = stored
	}
	return r.observeNamespace(ctx, o)
}

// observeNamespace finds out whose the ShareSnapshot is. It stays if its FileShareSnapshot and the namespace of that
// went without the operator, and another namespace can get the name. A snapshot that was Ready was looked at before.
// The namespace is read past the cache, which may still have the earlier one.
func (r *Reconciler) observeNamespace(ctx context.Context, o *observed) error {
	snapshot, stored := o.snapshot, o.stored
	switch {
	case snapshot.Status.ReadyTime != nil, stored != nil && stored.Annotations[v1alpha1.NamespaceUIDAnnotation] == "",
		stored == nil && (o.share == nil || !naming.IsForeign(o.share)):
		return nil
	}
	namespace := &corev1.Namespace{}
	if _, err := lookup.Object(ctx, r.Live, types.NamespacedName{Name: snapshot.Namespace}, namespace); err != nil {
		return err
	}
	o.namespaceUID = string(namespace.UID)
	if stored == nil || stored.Annotations[v1alpha1.NamespaceUIDAnnotation] == o.namespaceUID {
		return nil
	}
	fileServer := &v1alpha1.FileServer{}
	_, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: stored.Namespace, Name: stored.Spec.FileServerRef.Name}, fileServer)
	if err == nil && !slices.Contains(fileServer.Spec.DataHandovers, v1alpha1.DataHandover{Namespace: snapshot.Namespace, NamespaceUID: o.namespaceUID}) {
		o.stored, o.earlier = nil, true
	}
	return err
}

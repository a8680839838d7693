package filesharesnapshot

import (
	"context"
	"fmt"
	"time"

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
}

func (r *Reconciler) observe(ctx context.Context, snapshot *v1alpha1.FileShareSnapshot) (*observed, error) {
	o := &observed{now: r.Clock.Now(), snapshot: snapshot}
	share := &v1alpha1.FileShare{}
	if found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: snapshot.Namespace, Name: snapshot.Spec.FileShareRef.Name}, share); err != nil {
		return nil, err
	} else if found {
		o.share = share
	}
	if o.share != nil && r.WatchNamespaces.Include(naming.ServerNamespace(share)) {
		fileServer := &v1alpha1.FileServer{}
		if found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: naming.ServerNamespace(share), Name: share.Spec.FileServerRef.Name}, fileServer); err != nil {
			return nil, err
		} else if found {
			o.fileServer = fileServer
		}
	}
	var err error
	o.stored, err = r.stored(ctx, snapshot, o.share)
	return o, err
}

// stored finds the ShareSnapshot of a snapshot, even if the share is deleted. While the share exists it is also read
// past the cache: nothing may be made twice, or left by a deletion right after the creation.
func (r *Reconciler) stored(ctx context.Context, snapshot *v1alpha1.FileShareSnapshot, share *v1alpha1.FileShare) (*internalv1.ShareSnapshot, error) {
	var list internalv1.ShareSnapshotList
	if err := r.Client.List(ctx, &list, index.OfSnapshot(snapshot.Namespace, snapshot.Name)); err != nil {
		return nil, fmt.Errorf("listing ShareSnapshots: %w", err)
	}
	if len(list.Items) > 0 {
		return &list.Items[0], nil
	}
	if share == nil || !r.WatchNamespaces.Include(naming.ServerNamespace(share)) {
		return nil, nil
	}
	stored := &internalv1.ShareSnapshot{}
	key := types.NamespacedName{Namespace: naming.ServerNamespace(share), Name: naming.ShareSnapshot(naming.KeyOf(share), snapshot.Name)}
	if found, err := lookup.Object(ctx, r.Live, key, stored); err != nil || !found {
		return nil, err
	}
	return stored, nil
}

package fileshare

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// writers is how many ShareDirectories are written at the same time.
const writers = 8

// execute does what a decision says, as far as it gets.
func (r *Reconciler) execute(ctx context.Context, o *observed, d decision) outcome {
	var out outcome
	if out.attachment = r.changeAttachment(ctx, d.attachment); out.attachment != nil {
		return out
	}
	// First, because it takes longest.
	out.storage = r.changeStorage(ctx, d.storage)
	out.created, out.directories = r.createDirectories(ctx, d.directories.create)
	if out.directories == nil {
		out.directories = r.changeDirectories(ctx, d.directories.change)
	}
	if out.directories == nil {
		out.directories = r.forgetDirectories(ctx, d.directories.forget)
	}
	out.exports = r.changeExports(ctx, d.exports)
	for _, object := range d.claim.objects {
		if out.claim = r.Applier.Apply(ctx, o.share, object); out.claim != nil {
			return out
		}
	}
	if d.claim.release != nil {
		patch := client.MergeFromWithOptions(o.volume, client.MergeFromWithOptimisticLock{})
		if err := r.Client.Patch(ctx, d.claim.release, patch); err != nil && !apierrors.IsConflict(err) {
			out.claim = fmt.Errorf("releasing PersistentVolume %s from a claim that was deleted: %w", o.volume.Name, err)
		}
	}
	return out
}

// createDirectories makes ShareDirectories and returns how many of them exist now. One that
// exists already is as good: a client's mkdir was faster, and the ShareDirectory says where.
func (r *Reconciler) createDirectories(ctx context.Context, directories []*internalv1.ShareDirectory) (int, error) {
	var made atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, directory := range directories {
		group.Go(func() error {
			if err := r.Client.Create(ctx, directory); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("the ShareDirectory of %q: %w", directory.Spec.Path, err)
			}
			made.Add(1)
			return nil
		})
	}
	err := group.Wait()
	return int(made.Load()), err
}

// changeDirectories patches ShareDirectories, each only as it was read: namespace servers write their state, too.
func (r *Reconciler) changeDirectories(ctx context.Context, changes []directoryChange) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, change := range changes {
		group.Go(func() error {
			err := r.changeDirectory(ctx, change)
			// Whoever won this race made an event, and that brings the share back here.
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("the ShareDirectory of %q: %w", change.before.Spec.Path, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// changeDirectory writes the status first: what the rest sets going must find it.
func (r *Reconciler) changeDirectory(ctx context.Context, change directoryChange) error {
	before, after := change.before, change.after
	if !equality.Semantic.DeepEqual(before.Status, after.Status) {
		next := before.DeepCopy()
		next.Status = after.Status
		if err := r.Client.Status().Patch(ctx, next, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
		// The second difference is taken between what the cache has, too: it keeps less than the API server answers, and
		// what it left out would be taken for removed.
		before, after = before.DeepCopy(), after.DeepCopy()
		before.Status = after.Status
		before.ResourceVersion, after.ResourceVersion = next.ResourceVersion, next.ResourceVersion
	}
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) && equality.Semantic.DeepEqual(before.ObjectMeta, after.ObjectMeta) {
		return nil
	}
	return r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// forgetDirectories deletes ShareDirectories, each only as it was looked at.
func (r *Reconciler) forgetDirectories(ctx context.Context, directories []*internalv1.ShareDirectory) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, directory := range directories {
		group.Go(func() error {
			uid, version := directory.UID, directory.ResourceVersion
			err := r.Client.Delete(ctx, directory, client.Preconditions{UID: &uid, ResourceVersion: &version})
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("the ShareDirectory of %q, which is no more: %w", directory.Spec.Path, err)
			}
			return nil
		})
	}
	return group.Wait()
}

package fileshare

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/controllers/apply"
)

// execute writes the changes of a decision, as far as it can.
func (r *Reconciler) execute(ctx context.Context, o *observed, d decision) outcome {
	var out outcome
	if _, out.attachment = apply.Execute(ctx, r.Client, d.attachment.changes()...); out.attachment != nil {
		return out
	}
	// First, because it takes the longest.
	_, out.storage = apply.Execute(ctx, r.Client, d.storage.changes()...)
	out.created, out.directories = apply.Execute(ctx, r.Client, d.directories.changes()...)
	_, out.exports = apply.Execute(ctx, r.Client, d.exports.changes()...)
	for _, object := range d.claim.objects {
		if out.claim = r.Applier.Apply(ctx, o.share, object); out.claim != nil {
			return out
		}
	}
	if d.claim.remove != nil {
		if _, out.claim = apply.Execute(ctx, r.Client, []apply.Change{{Delete: d.claim.remove, AsRead: true}}); out.claim != nil {
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

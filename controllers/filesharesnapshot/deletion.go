package filesharesnapshot

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/lookup"
)

// retryRemoval is when to check whether the FileServer still exists: no event reports its deletion.
const retryRemoval = 30 * time.Second

// remove requests the removal from the storage, and then removes the object's finalizer.
func (r *Reconciler) remove(ctx context.Context, snapshot *v1alpha1.FileShareSnapshot) (ctrl.Result, error) {
	o, err := r.observe(ctx, snapshot)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.readStored(ctx, o); err != nil {
		return ctrl.Result{}, err
	}
	if o.stored == nil && o.unwatched != "" && snapshot.Status.ReadyTime != nil {
		// Without its object nothing would ever remove it.
		return r.wait(ctx, o, v1alpha1.ReasonNamespaceNotWatched, describeUnwatched(o))
	}
	if o.stored == nil {
		removed, err := apply.RemoveFinalizer(ctx, r.Client, snapshot, v1alpha1.SnapshotFinalizer)
		if removed && snapshot.Status.ReadyTime != nil {
			r.Events.Eventf(snapshot, nil, corev1.EventTypeNormal, v1alpha1.ReasonDeleting, "Delete", "snapshot %s of FileShare %s is gone", snapshot.Name, snapshot.Spec.FileShareRef.Name)
		}
		return apply.Outcome(err)
	}
	if o.stored.DeletionTimestamp == nil {
		uid := o.stored.UID
		if err := r.Client.Delete(ctx, o.stored, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return apply.Outcome(err)
		}
	} else if abandoned, err := r.abandon(ctx, snapshot, o.stored); err != nil || abandoned {
		return apply.Outcome(err)
	}
	return r.wait(ctx, o, v1alpha1.ReasonDeleting, waiting(o.stored))
}

// wait reports what the deletion waits for.
func (r *Reconciler) wait(ctx context.Context, o *observed, reason, message string) (ctrl.Result, error) {
	status := *o.snapshot.Status.DeepCopy()
	generation := o.snapshot.Generation
	status.ObservedGeneration = &generation
	conditions.SetSummary(&status.Conditions, generation, o.now, conditions.False(v1alpha1.ConditionReady, reason, message))
	if err := r.report(ctx, o.snapshot, status); err != nil {
		return apply.Outcome(err)
	}
	return ctrl.Result{RequeueAfter: retryRemoval}, nil
}

// releaseRemoved removes the finalizer of a ShareSnapshot that the steward has removed, with or without a
// FileShareSnapshot.
func (r *Reconciler) releaseRemoved(ctx context.Context, request ctrl.Request) error {
	var list internalv1.ShareSnapshotList
	if err := r.Client.List(ctx, &list, index.OfSnapshot(request.Namespace, request.Name)); err != nil {
		return fmt.Errorf("listing ShareSnapshots: %w", err)
	}
	for i := range list.Items {
		stored := &list.Items[i]
		if stored.DeletionTimestamp == nil || !conditions.IsTrue(stored.Status.Conditions, internalv1.SnapshotRemoved) {
			continue
		}
		if _, err := apply.RemoveFinalizer(ctx, r.Client, stored, v1alpha1.StoredSnapshotFinalizer); err != nil {
			return err
		}
	}
	return nil
}

// abandon removes the finalizer of a ShareSnapshot that nothing can remove any more: FileServer and steward are gone.
// The snapshot stays in the storage.
func (r *Reconciler) abandon(ctx context.Context, snapshot *v1alpha1.FileShareSnapshot, stored *internalv1.ShareSnapshot) (bool, error) {
	key := types.NamespacedName{Namespace: stored.Namespace, Name: stored.Spec.FileServerRef.Name}
	fileServer := &v1alpha1.FileServer{}
	if found, err := lookup.Object(ctx, r.Live, key, fileServer); err != nil || found && v1alpha1.StorageIdentity(fileServer) == stored.Spec.FileServerUID {
		return false, err // A FileServer with the same name and another identity does not have this snapshot.
	}
	removed, err := apply.RemoveFinalizer(ctx, r.Client, stored.DeepCopy(), v1alpha1.StoredSnapshotFinalizer)
	if removed {
		r.Events.Eventf(snapshot, nil, corev1.EventTypeWarning, v1alpha1.ReasonDeleting, "Delete",
			"FileServer %s is gone, so snapshot %s stays in the storage until its administrator removes it", stored.Spec.FileServerRef.Name, snapshot.Name)
	}
	return removed, err
}

// waiting describes what a deletion waits for.
func waiting(stored *internalv1.ShareSnapshot) string {
	text := fmt.Sprintf("the steward of FileServer %s removes the snapshot from the storage", stored.Spec.FileServerRef.Name)
	reported := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
	if reported != nil && reported.Status == metav1.ConditionFalse {
		text += ": " + reported.Message
	}
	return text
}

package fileshare

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/internal/naming"
)

// retryTeardown is when to check again what the cache may not show yet.
const retryTeardown = time.Second

// teardown deletes everything of a share. The namespace servers hide it at once (deletion timestamp). Then, in this
// order: with data to remove, the claim, after its pods have ended; exports, and with them the data if requested;
// ShareDirectories; volume and claim; the finalizer.
func (r *Reconciler) teardown(ctx context.Context, o *observed) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(o.share, v1alpha1.FileShareFinalizer) {
		return ctrl.Result{}, nil
	}
	if _, err := apply.Execute(ctx, r.Client, planDetachment(o).changes()...); err != nil {
		return apply.Outcome(err)
	}
	if waiting, err := r.waitForSnapshots(ctx, o); err != nil {
		return ctrl.Result{}, err
	} else if waiting != "" {
		return apply.Outcome(r.reportTeardown(ctx, o, waiting))
	}
	if waiting, err := r.waitForPods(ctx, o); err != nil {
		return ctrl.Result{}, err
	} else if waiting != "" {
		if err := r.reportDeletion(ctx, o, v1alpha1.ReasonInUse, waiting); err != nil {
			return apply.Outcome(err)
		}
		return ctrl.Result{RequeueAfter: retryPodsIn(o)}, nil
	}
	if missing := planRecall(o); len(missing) > 0 {
		return r.recall(ctx, o, missing)
	}
	if _, err := apply.Execute(ctx, r.Client, planRemoval(o).changes()...); err != nil {
		return apply.Outcome(err)
	}
	if waiting := waitForExports(o); waiting != "" {
		return apply.Outcome(r.reportTeardown(ctx, o, waiting))
	}
	if unseen, err := r.hasUnseenExports(ctx, o); err != nil || unseen {
		return ctrl.Result{RequeueAfter: retryTeardown}, err
	}
	if waiting, err := r.endStorage(ctx, o); err != nil {
		return apply.Outcome(err)
	} else if waiting != "" {
		return apply.Outcome(r.reportTeardown(ctx, o, waiting))
	}
	if left, err := r.dropDirectories(ctx, o); err != nil {
		return ctrl.Result{}, err
	} else if left > 0 {
		return apply.Outcome(r.reportTeardown(ctx, o, fmt.Sprintf("putting away the ShareDirectories of %s", plural(left, "directory"))))
	}
	if left, err := r.deleteVolume(ctx, o); err != nil || left {
		return ctrl.Result{RequeueAfter: retryTeardown}, err
	}
	if _, err := apply.Execute(ctx, r.Client, attachmentPlan{release: o.attachment}.changes()...); err != nil {
		return apply.Outcome(err)
	}
	removed, err := apply.RemoveFinalizer(ctx, r.Client, o.share, v1alpha1.FileShareFinalizer)
	if err != nil {
		return apply.Outcome(err)
	}
	if removed {
		r.Events.Eventf(o.share, nil, corev1.EventTypeNormal, v1alpha1.ReasonDeleting, "Delete", "%s", whatBecameOfTheData(o))
	}
	return ctrl.Result{}, nil
}

// dropDirectories deletes the share's ShareDirectories except those of retained data. It returns the number that it
// changed.
func (r *Reconciler) dropDirectories(ctx context.Context, o *observed) (int, error) {
	if o.unwatched {
		return 0, nil // The operator has no rights there.
	}
	doomed, left := desired.SelectShare(o.share), len(o.directories)
	if retains(o) {
		changes := retain(o)
		if _, err := apply.Execute(ctx, r.Client, patches(changes)); err != nil {
			return 0, err
		}
		if len(changes) > 0 {
			return len(changes), nil // the next pass checks the labels before anything is deleted
		}
		left = 0
		for _, directory := range o.directories {
			if !isRetained(directory) {
				left++
			}
		}
		notRetained, err := labels.NewRequirement(v1alpha1.RetainedLabel, selection.NotEquals, []string{v1alpha1.RetainedTrue})
		if err != nil {
			return 0, err
		}
		doomed = doomed.Add(*notRetained)
	}
	in, selected := client.InNamespace(o.namespace()), client.MatchingLabelsSelector{Selector: doomed}
	if left == 0 {
		// The cache may lack a client's last mkdir. A remaining ShareDirectory would block the next share of this name.
		var unseen internalv1.ShareDirectoryList
		if err := r.Live.List(ctx, &unseen, in, selected, client.Limit(1)); err != nil {
			return 0, fmt.Errorf("looking for ShareDirectories that are left: %w", err)
		}
		if len(unseen.Items) == 0 {
			return 0, nil
		}
		left = len(unseen.Items)
	}
	if err := r.Client.DeleteAllOf(ctx, &internalv1.ShareDirectory{}, in, selected); err != nil {
		return 0, fmt.Errorf("deleting ShareDirectories: %w", err)
	}
	return left, nil
}

// retains reports whether the share's data stays, so that a share of this name can find it again.
func retains(o *observed) bool {
	return o.fileServer != nil && !removesData(o)
}

// removesData reports whether the share's data is removed. A share that its FileServer no longer allows can't decide
// about data, nor can one that finds data of an earlier namespace of its name. A share that was never admitted or never
// processed has no data: data of its name belongs to an earlier share.
func removesData(o *observed) bool {
	return o.share.Spec.ReclaimPolicy == v1alpha1.ReclaimDelete && !o.refused && !isOfOthers(o) && !wasKeptOut(o.share) && wasBegun(o)
}

// wasBegun reports whether a pass has decided that the share may be served: its status or its objects show it.
// Otherwise the share was deleted before a pass that might have refused it.
func wasBegun(o *observed) bool {
	if !isUndecided(o.share) || o.storage != nil && isMadeFor(o.share, o.storage) {
		return true
	}
	for _, export := range o.exports {
		if isMadeFor(o.share, export) {
			return true
		}
	}
	return false
}

// isUndecided reports whether no pass could decide, as far as the status shows it: there was none, or it did not find the FileServer. The next one may
// find one with data of an earlier share, and might refuse this share.
func isUndecided(share *v1alpha1.FileShare) bool {
	switch conditions.Reason(share.Status.Conditions, v1alpha1.FileSharePlaced) {
	case "", v1alpha1.ReasonFileServerNotFound, v1alpha1.ReasonNamespaceNotWatched:
		return true
	}
	return false
}

// isMadeFor reports whether the object was made for this share and not for an earlier one with its name. In another
// Kubernetes namespace there is no owner reference; there, an object that is older than the share belongs to an earlier
// one.
func isMadeFor(share *v1alpha1.FileShare, object client.Object) bool {
	if !naming.IsForeign(share) {
		return metav1.IsControlledBy(object, share)
	}
	made := object.GetCreationTimestamp()
	return !made.Before(&share.CreationTimestamp)
}

// wasKeptOut reports whether the share was never served, because another share was in its way or its source could not
// be copied.
func wasKeptOut(share *v1alpha1.FileShare) bool {
	switch conditions.Reason(share.Status.Conditions, v1alpha1.FileSharePlaced) {
	case v1alpha1.ReasonPathConflict, v1alpha1.ReasonTooManyShares, v1alpha1.ReasonLimitReached, v1alpha1.ReasonNamespaceNotAllowed, v1alpha1.ReasonDataOfDeletedNamespace,
		v1alpha1.ReasonSnapshotNotFound, v1alpha1.ReasonSnapshotNotReady, v1alpha1.ReasonCloneRefused, v1alpha1.ReasonQuotaBelowUse:
		return true
	}
	return false
}

// reportTeardown writes what the deletion waits for.
func (r *Reconciler) reportTeardown(ctx context.Context, o *observed, waiting string) error {
	return r.reportDeletion(ctx, o, v1alpha1.ReasonDeleting, waiting)
}

// reportDeletion writes it with a reason. Deleting means that exports are being removed; planRecall depends on it.
func (r *Reconciler) reportDeletion(ctx context.Context, o *observed, reason, waiting string) error {
	status := o.share.DeepCopy().Status
	conditions.SetSummary(&status.Conditions, o.share.Generation, o.now, conditions.False(v1alpha1.ConditionReady, reason, waiting))
	if isUndecided(o.share) && wasBegun(o) {
		// The next pass may no longer find what shows it.
		conditions.Set(&status.Conditions, o.share.Generation, o.now, conditions.False(v1alpha1.FileSharePlaced, v1alpha1.ReasonDeleting, "the share is being deleted"))
	}
	generation := o.share.Generation
	status.ObservedGeneration = &generation
	return r.report(ctx, o, status)
}

// deleteVolume deletes the ready-made volume and claim if they are the share's. Kubernetes keeps a claim until no pod
// uses it, and the volume until the claim is deleted. It also reports a volume that the cache does not show yet,
// because without its share nothing would delete it.
func (r *Reconciler) deleteVolume(ctx context.Context, o *observed) (bool, error) {
	if _, err := r.Applier.Prune(ctx, o.share, nil,
		[]client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}},
		index.OfFileShare(o.share.Name)); err != nil {
		return false, fmt.Errorf("deleting the ready-made volume: %w", err)
	}
	volume := &corev1.PersistentVolume{}
	found, err := lookup.Object(ctx, r.Live, types.NamespacedName{Name: naming.ShareVolume(o.share.Namespace, o.share.Name)}, volume)
	if err != nil || !found {
		return false, err
	}
	made := volume.Annotations[v1alpha1.OwnerAnnotation] == naming.Owner("FileShare", o.share.Namespace, o.share.Name)
	return made && volume.DeletionTimestamp == nil, nil
}

// whatBecameOfTheData describes what happened to the data and what is left to do.
func whatBecameOfTheData(o *observed) string {
	text := fateOfData(o)
	if left := awayServers(o); len(left) > 0 {
		text += fmt.Sprintf("; %s: away, and to do its part when it is back", conditions.List(left, maxNamed))
	}
	return text
}

func fateOfData(o *observed) string {
	if o.refused {
		return fmt.Sprintf("share %s is gone; nothing was changed on volumes, because FileServer %q of namespace %q does not exist or does not allow shares of this namespace",
			o.share.Name, o.share.Spec.FileServerRef.Name, o.namespace())
	}
	if removesData(o) && o.fileServer != nil {
		return fmt.Sprintf("the data of share %s was removed from the volumes of FileServer %s", o.share.Name, o.fileServer.Name)
	}
	return fmt.Sprintf("the data of share %s stays in the directory %s of the volumes of FileServer %s; a FileShare of the same name finds it again",
		o.share.Name, o.key(), o.share.Spec.FileServerRef.Name)
}

package fileshare

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/howdah/howdah/internal/naming"
)

// retryTeardown is when to look again for what the cache may not show yet.
const retryTeardown = time.Second

// teardown takes a share apart: the namespace has dropped it already (it has a
// deletion timestamp); then exports, data if so asked, records, volume and claim, and the finalizer at the end.
func (r *Reconciler) teardown(ctx context.Context, o *observed) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(o.share, v1alpha1.FileShareFinalizer) {
		return ctrl.Result{}, nil
	}
	if waiting := firstOf(waitForExports(o), waitForRemoval(o)); waiting != "" {
		return apply.Outcome(r.reportTeardown(ctx, o, waiting))
	}
	if left, err := r.dropRecords(ctx, o); err != nil {
		return ctrl.Result{}, err
	} else if left > 0 {
		return apply.Outcome(r.reportTeardown(ctx, o, fmt.Sprintf("putting away the records of %s", plural(left, "directory"))))
	}
	if left, err := r.deleteVolume(ctx, o); err != nil || left {
		return ctrl.Result{RequeueAfter: retryTeardown}, err
	}
	removed, err := apply.RemoveFinalizer(ctx, r.Client, o.share, v1alpha1.FileShareFinalizer)
	if err != nil {
		return apply.Outcome(err)
	}
	if removed {
		r.Events.Eventf(o.share, nil, corev1.EventTypeNormal, v1alpha1.ReasonDeleting, "Delete", "%s", farewell(o))
	}
	return ctrl.Result{}, nil
}

// dropRecords deletes the share's records, but for those that tell where retained data is. It returns how many it had to do with.
func (r *Reconciler) dropRecords(ctx context.Context, o *observed) (int, error) {
	doomed := []client.DeleteAllOfOption{client.InNamespace(o.share.Namespace), client.MatchingLabels(desired.SelectShare(o.share))}
	left := len(o.records)
	if retains(o) {
		changes := retain(o)
		if err := r.changeRecords(ctx, changes); err != nil {
			return 0, err
		}
		left = len(changes)
		for _, record := range o.records {
			if record.State() == internalv1.DirectoryCreating {
				left++
			}
		}
		selector := labels.SelectorFromSet(desired.SelectShare(o.share))
		notRetained, err := labels.NewRequirement(v1alpha1.RetainedLabel, selection.NotEquals, []string{v1alpha1.RetainedTrue})
		if err != nil {
			return 0, err
		}
		doomed = []client.DeleteAllOfOption{client.InNamespace(o.share.Namespace), client.MatchingLabelsSelector{Selector: selector.Add(*notRetained)}}
		if len(changes) > 0 {
			return left, nil // another pass sees that they are labelled before anything is deleted
		}
	}
	if left == 0 {
		return 0, nil
	}
	if err := r.Client.DeleteAllOf(ctx, &internalv1.ShareDirectory{}, doomed...); err != nil {
		return 0, fmt.Errorf("deleting the records of directories: %w", err)
	}
	return left, nil
}

// retains: the share's data stays on volumes that somebody may want it from again.
func retains(o *observed) bool {
	return o.share.Spec.ReclaimPolicy != v1alpha1.ReclaimDelete && o.fileServer != nil
}

// reportTeardown writes what the deletion waits for.
func (r *Reconciler) reportTeardown(ctx context.Context, o *observed, waiting string) error {
	status := o.share.DeepCopy().Status
	conditions.SetSummary(&status.Conditions, o.share.Generation, o.now, conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonDeleting, waiting))
	generation := o.share.Generation
	status.ObservedGeneration = &generation
	return r.report(ctx, o, status)
}

// deleteVolume deletes the ready-made volume and claim if they are the share's. Kubernetes keeps a claim until
// no pod uses it, and the volume until the claim is gone. It tells whether a volume is left that the cache does not show yet:
// one without its share would stay for ever.
func (r *Reconciler) deleteVolume(ctx context.Context, o *observed) (bool, error) {
	if _, err := r.Applier.Prune(ctx, o.share, nil,
		[]client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}},
		index.OfFileShare(o.share.Name)); err != nil {
		return false, fmt.Errorf("deleting the ready-made volume: %w", err)
	}
	volume := &corev1.PersistentVolume{}
	found, err := get(ctx, r.Live, types.NamespacedName{Name: naming.ShareVolume(o.share.Namespace, o.share.Name)}, volume)
	if err != nil || !found {
		return false, err
	}
	made := volume.Annotations[v1alpha1.OwnerAnnotation] == naming.Owner("FileShare", o.share.Namespace, o.share.Name)
	return made && volume.DeletionTimestamp == nil, nil
}

// waitForExports tells which data servers still export the share; "" if none does.
func waitForExports(o *observed) string {
	var exporting []string
	servers := servingSide(o)
	for _, server := range servers {
		asked := slices.ContainsFunc(server.Spec.Exports, func(e internalv1.ShareExport) bool { return e.ShareName == o.share.Name })
		if asked || server.Status.ObservedGeneration != nil && *server.Status.ObservedGeneration != server.Generation {
			exporting = append(exporting, server.Name)
		}
	}
	if len(exporting) == 0 {
		return ""
	}
	return fmt.Sprintf("waiting for %d of %s to stop exporting the share: %s",
		len(exporting), plural(len(servers), "data server"), conditions.List(exporting, maxNamed))
}

// waitForRemoval tells which data servers still have the share's data, if it is to be removed; "" if none has.
func waitForRemoval(o *observed) string {
	if o.share.Spec.ReclaimPolicy != v1alpha1.ReclaimDelete {
		return ""
	}
	var removing []string
	servers := servingSide(o)
	for _, server := range servers {
		current := server.Status.ObservedGeneration != nil && *server.Status.ObservedGeneration == server.Generation
		done := current && slices.Contains(server.Spec.Removals, o.share.Name) && slices.Contains(server.Status.Removed, o.share.Name)
		if !done && mayHaveData(o, server) {
			removing = append(removing, server.Name)
		}
	}
	if len(removing) == 0 {
		return ""
	}
	return fmt.Sprintf("removing the data of share %s on %s, %s: waiting for %s",
		o.share.Name, plural(len(servers), "data server"), plural(ownedCount(o), "directory"), conditions.List(removing, maxNamed))
}

// mayHaveData: the server ran, or owns a directory that was made. A server that never
// started (say its StorageClass does not exist) must not keep a share for ever, and with it its FileServer.
func mayHaveData(o *observed, server *internalv1.DataServer) bool {
	if server.Status.ObservedGeneration != nil {
		return true
	}
	for _, record := range o.records {
		if record.Spec.DataServerRef.Name == server.Name && record.State() != internalv1.DirectoryCreating {
			return true
		}
	}
	return false
}

// servingSide are the data servers that can hold up a deletion, in order: none if the FileServer is gone, because then they go, too.
func servingSide(o *observed) []*internalv1.DataServer {
	if o.fileServer == nil {
		return nil
	}
	var servers []*internalv1.DataServer
	for i := range o.dataServers {
		if o.dataServers[i].DeletionTimestamp == nil {
			servers = append(servers, &o.dataServers[i])
		}
	}
	slices.SortFunc(servers, func(a, b *internalv1.DataServer) int { return byNumber(a.Name, b.Name) })
	return servers
}

func ownedCount(o *observed) int { return int(*countDirectories(o).Count) }

// farewell tells what became of the data.
func farewell(o *observed) string {
	if o.share.Spec.ReclaimPolicy == v1alpha1.ReclaimDelete && o.fileServer != nil {
		return fmt.Sprintf("the data of share %s was removed from the volumes of FileServer %s", o.share.Name, o.fileServer.Name)
	}
	return fmt.Sprintf("the data of share %s stays in the directory %s of the volumes of FileServer %s; a FileShare of the same name finds it again",
		o.share.Name, o.share.Name, o.share.Spec.FileServerRef.Name)
}

func firstOf(messages ...string) string {
	for _, message := range messages {
		if message != "" {
			return message
		}
	}
	return ""
}

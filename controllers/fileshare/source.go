package fileshare

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/internal/naming"
)

// A share with a source gets storage only when the snapshot can be copied, and is served only when the copy is
// complete: an empty share would look like the snapshot.

// sourceState has what is known about the snapshot that a share is made from.
type sourceState struct {
	// snapshot is nil if there is none.
	snapshot *v1alpha1.FileShareSnapshot
	// stored is its ShareSnapshot; nil if there is none.
	stored *internalv1.ShareSnapshot
	// of is the snapshot's share; nil if it was deleted.
	of *v1alpha1.FileShare
}

// isFromSnapshot reports whether the share has a source, copied or not.
func isFromSnapshot(o *observed) bool { return o.share.Spec.Source.SnapshotRef.Name != "" }

// isCloned reports whether the source was copied. After that, changes of the snapshot do not matter.
func isCloned(o *observed) bool {
	return conditions.IsTrue(o.share.Status.Conditions, v1alpha1.FileShareCloned) || isAsked(o) && o.storage.Status.Path != ""
}

// isAsked reports whether the copy was requested from the steward, which then reports its progress. Storage of an
// earlier share with this name does not count.
func isAsked(o *observed) bool {
	return isLive(o.storage) && o.storage.Spec.Source.SnapshotName == o.share.Spec.Source.SnapshotRef.Name
}

func isLive(storage *internalv1.ShareStorage) bool {
	return storage != nil && storage.DeletionTimestamp == nil
}

// observeSource reads the source of a share until it is copied.
func (r *Reconciler) observeSource(ctx context.Context, o *observed) error {
	if !isFromSnapshot(o) || isCloned(o) || isAsked(o) {
		return nil
	}
	name := o.share.Spec.Source.SnapshotRef.Name
	snapshot := &v1alpha1.FileShareSnapshot{}
	if found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: o.share.Namespace, Name: name}, snapshot); err != nil || !found {
		return err
	}
	o.source.snapshot = snapshot
	var stored internalv1.ShareSnapshotList
	if err := r.Client.List(ctx, &stored, index.OfSnapshot(o.share.Namespace, name), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ShareSnapshots: %w", err)
	}
	if len(stored.Items) > 0 {
		o.source.stored = &stored.Items[0]
	}
	of := &v1alpha1.FileShare{}
	if found, err := lookup.Object(ctx, r.Client, types.NamespacedName{Namespace: o.share.Namespace, Name: snapshot.Spec.FileShareRef.Name}, of); err != nil {
		return err
	} else if found {
		o.source.of = of
	}
	return nil
}

// findSourceFault returns why a share can't be made from its source; nil if it can, was already made, or has no source.
func findSourceFault(o *observed) *finding {
	if !isFromSnapshot(o) || isCloned(o) || isAsked(o) || o.fileServer == nil {
		return nil
	}
	name, snapshot, stored := o.share.Spec.Source.SnapshotRef.Name, o.source.snapshot, o.source.stored
	say := func(reason, format string, arguments ...any) *finding {
		return &finding{reason, "spec.source.snapshotRef: " + fmt.Sprintf(format, arguments...)}
	}
	if refusal := backend.Of(o.fileServer).SnapshotRefusal(o.fileServer); refusal != "" {
		return &finding{v1alpha1.ReasonCloneRefused, fmt.Sprintf("spec.source: no share of FileServer %s can be made from a snapshot; delete this share and make it without spec.source. %s", o.fileServer.Name, refusal)}
	}
	switch {
	case snapshot == nil:
		return say(v1alpha1.ReasonSnapshotNotFound, "there is no FileShareSnapshot %q in namespace %q; create it, or delete this share and make one that names another", name, o.share.Namespace)
	case snapshot.DeletionTimestamp != nil:
		return say(v1alpha1.ReasonSnapshotNotFound, "FileShareSnapshot %s is being deleted; delete this share and make one that names another", name)
	case stored == nil || stored.DeletionTimestamp != nil || !conditions.IsTrue(snapshot.Status.Conditions, v1alpha1.ConditionReady):
		return say(v1alpha1.ReasonSnapshotNotReady, "FileShareSnapshot %s is not Ready: %s", name, cmp.Or(conditions.Message(snapshot.Status.Conditions, v1alpha1.ConditionReady), "nothing is known of it yet"))
	case stored.Namespace != o.namespace() || stored.Spec.FileServerRef.Name != o.fileServer.Name:
		return say(v1alpha1.ReasonCloneRefused, "FileShareSnapshot %s is of a share on FileServer %s of namespace %s, and the storage copies within one FileServer only: delete this share and make it with that fileServerRef",
			name, stored.Spec.FileServerRef.Name, stored.Namespace)
	case stored.Spec.FileServerUID != v1alpha1.StorageIdentity(o.fileServer):
		return say(v1alpha1.ReasonCloneRefused, "FileShareSnapshot %s is of a share on an earlier FileServer %s, whose directories in Ceph this one does not touch: delete this share and make one that names another", name, o.fileServer.Name)
	}
	if isLive(o.storage) {
		return &finding{v1alpha1.ReasonCloneRefused, fmt.Sprintf("spec.source: the place of an earlier share of this name is still used (ShareStorage %s): delete this share and make it with another name", o.storage.Name)}
	}
	return findMismatch(o, say)
}

// findMismatch returns how the share's layout differs from the snapshot's. The layout of a deleted share is not known.
func findMismatch(o *observed, say func(reason, format string, arguments ...any) *finding) *finding {
	spec, snapshot := &o.share.Spec, o.source.snapshot
	if of := o.source.of; of != nil && (of.Spec.Layout != spec.Layout || of.Spec.Depth != spec.Depth) {
		return say(v1alpha1.ReasonCloneRefused, "FileShareSnapshot %s is of FileShare %s, with layout %s and depth %d, by which its directories lie: delete this share and make it with the same spec.layout and spec.depth",
			snapshot.Name, of.Name, of.Spec.Layout, of.Spec.Depth)
	}
	if size := spec.Quota.Size; size != nil && snapshot.Status.SizeBytes != nil && size.Value() < *snapshot.Status.SizeBytes {
		needed := readable(*snapshot.Status.SizeBytes, math.Ceil)
		return &finding{v1alpha1.ReasonQuotaBelowUse, fmt.Sprintf("spec.quota.size is %s and FileShareSnapshot %s has %s in it, which is not copied before there is room for it: set spec.quota.size to %s or more",
			size, snapshot.Name, needed, needed)}
	}
	return nil
}

// sourceOf is the source for the ShareStorage. It is empty for a share that was copied, even if its ShareStorage is
// made again.
func sourceOf(o *observed) internalv1.StorageSource {
	switch {
	case isLive(o.storage):
		return o.storage.Spec.Source // It can't be changed.
	case !isFromSnapshot(o) || isCloned(o) || o.source.stored == nil:
		return internalv1.StorageSource{}
	}
	return internalv1.StorageSource{FileShareRef: o.source.stored.Spec.FileShareRef, SnapshotName: o.source.stored.Spec.SnapshotName}
}

// planClone is the condition Cloned, nil for a share without a source.
func planClone(o *observed, blocked bool) *metav1.Condition {
	const kind = v1alpha1.FileShareCloned
	if !isFromSnapshot(o) {
		return nil
	}
	name := o.share.Spec.Source.SnapshotRef.Name
	if before := meta.FindStatusCondition(o.share.Status.Conditions, kind); before != nil && before.Status == metav1.ConditionTrue {
		return before.DeepCopy()
	}
	switch {
	case isCloned(o):
		_, of := naming.ShareOfKey(o.namespace(), o.storage.Spec.Source.FileShareRef.Name)
		return ptr.To(conditions.True(kind, v1alpha1.ReasonReady, fmt.Sprintf("the share began with what snapshot %s of share %s had in it", name, of)))
	case blocked:
		return ptr.To(conditions.Unknown(kind, v1alpha1.ReasonPending, "waiting for the share to be placed"))
	case !isLive(o.storage):
		return ptr.To(conditions.False(kind, v1alpha1.ReasonCloning, fmt.Sprintf("the steward of FileServer %s is asked to have snapshot %s copied", o.fileServer.Name, name)))
	}
	reported := meta.FindStatusCondition(o.storage.Status.Conditions, v1alpha1.ConditionReady)
	if reported == nil {
		return ptr.To(conditions.False(kind, v1alpha1.ReasonCloning, fmt.Sprintf("the steward of FileServer %s has not had snapshot %s copied yet", o.fileServer.Name, name)))
	}
	switch reported.Reason {
	case v1alpha1.ReasonCloning, v1alpha1.ReasonCloneRefused, v1alpha1.ReasonCloneFailed:
		return ptr.To(conditions.False(kind, reported.Reason, reported.Message))
	}
	return ptr.To(conditions.False(kind, v1alpha1.ReasonStorageUnusable, reported.Message))
}

// withClone puts the condition Cloned first, because the others wait for it.
func withClone(cloned *metav1.Condition, others []metav1.Condition) []metav1.Condition {
	if cloned == nil {
		return others
	}
	return slices.Insert(others, 0, *cloned)
}

// isFilling reports whether the source is not copied yet, or not all its directories are known. A pod would not find
// all files.
func isFilling(o *observed, found inventory) bool {
	return isFromSnapshot(o) && o.claim == nil && (!isCloned(o) || !found.complete)
}

// fromSnapshot returns the shares that wait for a snapshot.
func (r *Reconciler) fromSnapshot(ctx context.Context, object client.Object) []reconcile.Request {
	var shares v1alpha1.FileShareList
	if err := r.Client.List(ctx, &shares, client.InNamespace(object.GetNamespace()), index.FromSnapshot(object.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing FileShares that are to be made from a snapshot", "snapshot", object.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range shares.Items {
		if !conditions.IsTrue(shares.Items[i].Status.Conditions, v1alpha1.FileShareCloned) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&shares.Items[i])})
		}
	}
	return requests
}

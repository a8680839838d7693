package fileshare

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/internal/naming"
)

// If a FileServer has a steward, each share has a ShareStorage. The steward makes the share's place in the storage
// before data servers export it, and removes it after they have stopped.

// storagePlan has the changes of a share's ShareStorage.
type storagePlan struct {
	create *internalv1.ShareStorage
	// before and after are those of a change.
	before, after *internalv1.ShareStorage
	// remove is deleted after the change.
	remove *internalv1.ShareStorage
}

// hasSteward reports whether the FileServer's steward makes the share's place.
func hasSteward(o *observed) bool {
	return o.fileServer != nil && backend.Of(o.fileServer).HasSteward(o.fileServer)
}

// planStorage requests the place of a share, with a quota (0: none). The ShareStorage of an earlier share with this
// name is removed first.
func planStorage(o *observed, quotaBytes int64) storagePlan {
	if !hasSteward(o) {
		return storagePlan{}
	}
	wanted, present := desired.ShareStorage(o.share, quotaBytes, sourceOf(o)), o.storage
	switch {
	case present == nil:
		return storagePlan{create: wanted}
	case present.DeletionTimestamp != nil || equality.Semantic.DeepEqual(present.Spec, wanted.Spec) &&
		equality.Semantic.DeepEqual(present.OwnerReferences, wanted.OwnerReferences) && controllerutil.ContainsFinalizer(present, v1alpha1.StorageFinalizer):
		return storagePlan{}
	}
	after := present.DeepCopy()
	after.Spec, after.OwnerReferences = wanted.Spec, wanted.OwnerReferences
	controllerutil.AddFinalizer(after, v1alpha1.StorageFinalizer)
	return storagePlan{before: present, after: after}
}

// planStorageEnd removes the ShareStorage of a share that is no longer served, after no existing data server exports
// it. The data policy is set only now, so a ShareStorage that is deleted by accident keeps its data.
func planStorageEnd(o *observed, data internalv1.DataPolicy) storagePlan {
	var plan storagePlan
	if o.storage == nil || len(o.exports) > len(awayServers(o)) {
		return plan
	}
	if data == internalv1.DataDelete && o.storage.Spec.DataPolicy != data {
		after := o.storage.DeepCopy()
		after.Spec.DataPolicy = data
		plan.before, plan.after = o.storage, after
	}
	if o.storage.DeletionTimestamp == nil {
		plan.remove = o.storage
	}
	return plan
}

// changes are the writes of a plan, in stages.
func (p storagePlan) changes() [][]apply.Change {
	var first, last []apply.Change
	if p.create != nil {
		first = append(first, apply.Change{Create: p.create})
	}
	if p.after != nil {
		// Set its data policy before the deletion.
		first = append(first, apply.Change{Before: p.before, After: p.after, Race: apply.MustExist})
	}
	if p.remove != nil {
		last = append(last, apply.Change{Delete: p.remove})
	}
	return [][]apply.Change{first, last}
}

// endStorage removes the ShareStorage of a share that is being deleted, and returns what the share waits for; "" if
// nothing. With retained data the share does not wait: the steward removes the share's account when it can.
func (r *Reconciler) endStorage(ctx context.Context, o *observed) (waiting string, err error) {
	if !hasSteward(o) {
		return "", nil
	}
	if o.storage == nil {
		// The cache may not have it yet.
		unseen := &internalv1.ShareStorage{}
		key := types.NamespacedName{Namespace: o.namespace(), Name: naming.ShareStorage(o.key(), o.fileServer.Name)}
		if found, err := lookup.Object(ctx, r.Live, key, unseen); err != nil || !found {
			return "", err
		}
		o.storage = unseen
	}
	data := internalv1.DataRetain
	if removesData(o) {
		data = internalv1.DataDelete
	}
	if _, err := apply.Execute(ctx, r.Client, planStorageEnd(o, data).changes()...); err != nil || data == internalv1.DataRetain {
		return "", err
	}
	waiting = fmt.Sprintf("waiting for the steward of FileServer %s to remove the share's data", o.fileServer.Name)
	if why := conditions.Message(o.storage.Status.Conditions, internalv1.StorageRemoved); why != "" {
		waiting += ": " + why
	}
	return waiting, nil
}

// finishStorages removes the finalizer of ShareStorages with a share's name whose steward is done with them or no
// longer exists, and returns the others. The share itself may not exist any more.
func (r *Reconciler) finishStorages(ctx context.Context, share types.NamespacedName) ([]*internalv1.ShareStorage, error) {
	var list, elsewhere internalv1.ShareStorageList
	if err := r.Client.List(ctx, &list, client.InNamespace(share.Namespace), index.OfFileShare(share.Name), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ShareStorages: %w", err)
	}
	if err := r.Client.List(ctx, &elsewhere, index.OfFileShare(naming.ShareKey("", share.Namespace, share.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ShareStorages of FileServers of other namespaces: %w", err)
	}
	list.Items = append(list.Items, elsewhere.Items...)
	var left []*internalv1.ShareStorage
	for i := range list.Items {
		storage := &list.Items[i]
		done, err := r.isStorageFinished(ctx, storage)
		if err != nil {
			return nil, err
		}
		if !done {
			left = append(left, storage)
			continue
		}
		if _, err := apply.RemoveFinalizer(ctx, r.Client, storage.DeepCopy(), v1alpha1.StorageFinalizer); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// isStorageFinished reports whether the steward has done its part, or no longer exists: the Kubernetes namespace is
// being deleted, or the FileServer's finalizer was removed by hand.
func (r *Reconciler) isStorageFinished(ctx context.Context, storage *internalv1.ShareStorage) (bool, error) {
	switch {
	case storage.DeletionTimestamp == nil:
		return false, nil
	case conditions.IsTrue(storage.Status.Conditions, internalv1.StorageRemoved):
		// The data policy may have been set after the account was removed.
		return storage.Status.ObservedGeneration != nil && *storage.Status.ObservedGeneration == storage.Generation, nil
	}
	key := types.NamespacedName{Namespace: storage.Namespace, Name: storage.Spec.FileServerRef.Name}
	fileServer := &v1alpha1.FileServer{}
	if exists, err := lookup.Object(ctx, r.Client, key, fileServer); err != nil || !exists || fileServer.DeletionTimestamp == nil {
		return err == nil && !exists, err
	}
	exists, err := lookup.Object(ctx, r.Client, key, &internalv1.Steward{})
	return err == nil && !exists, err
}

// whyNoStorage returns why a share has no place in the storage yet, and the condition's reason; "" if it has one or
// needs none.
func whyNoStorage(o *observed) (why, reason string) {
	switch {
	case !hasSteward(o):
		return "", ""
	case o.storage == nil:
		return "the steward has not been asked for the share's place yet", v1alpha1.ReasonStoragePending
	case o.storage.DeletionTimestamp != nil:
		why = "the steward has to end the place of an earlier share of this name first"
		if message := conditions.Message(o.storage.Status.Conditions, internalv1.StorageRemoved); message != "" {
			why += ": " + message
		}
		return why, v1alpha1.ReasonStoragePending
	case conditions.IsTrue(o.storage.Status.Conditions, v1alpha1.ConditionReady):
		return "", ""
	}
	message := conditions.Message(o.storage.Status.Conditions, v1alpha1.ConditionReady)
	switch conditions.Reason(o.storage.Status.Conditions, v1alpha1.ConditionReady) {
	case "":
		return "the steward has not made the share's place yet", v1alpha1.ReasonStoragePending
	case v1alpha1.ReasonProgressing:
		return message, v1alpha1.ReasonStoragePending
	case v1alpha1.ReasonTooManyShares:
		return message, v1alpha1.ReasonTooManyShares
	case v1alpha1.ReasonCloning, v1alpha1.ReasonCloneRefused, v1alpha1.ReasonCloneFailed:
		return "waiting for the copy of the share's source (condition " + v1alpha1.FileShareCloned + ")", v1alpha1.ReasonStoragePending
	}
	return message, v1alpha1.ReasonStorageUnusable
}

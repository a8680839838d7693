package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Status writes the status of after as one merge patch against before, which must be the object as it was read. Nothing
// is sent if they are equal. The patch has before's resourceVersion: on a conflict the object has changed, and the pass
// must be repeated (return the error; the controller requeues).
func Status(ctx context.Context, c client.Client, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("writing the status of %s: %w", before.GetName(), err)
	}
	return nil
}

// AddFinalizer adds a finalizer by a merge patch that changes nothing else, so a user's spec stays as written. It also
// updates object, so that the pass can continue. It reports whether it changed anything.
func AddFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) (bool, error) {
	return patchFinalizers(ctx, c, object, finalizer, controllerutil.AddFinalizer)
}

// RemoveFinalizer removes a finalizer. It reports whether it changed anything. A deleted object is no error.
func RemoveFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) (bool, error) {
	return patchFinalizers(ctx, c, object, finalizer, controllerutil.RemoveFinalizer)
}

func patchFinalizers(ctx context.Context, c client.Client, object client.Object, finalizer string,
	change func(client.Object, string) bool,
) (bool, error) {
	after, ok := object.DeepCopyObject().(client.Object)
	if !ok || !change(after, finalizer) {
		return false, nil
	}
	// A merge patch replaces the whole list, so another writer's finalizer would be lost without the lock.
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("finalizer %s of %s: %w", finalizer, object.GetName(), err)
	} else if apierrors.IsNotFound(err) {
		return false, nil
	}
	// The caller continues with object, so its resourceVersion must be the newest.
	object.SetFinalizers(after.GetFinalizers())
	object.SetResourceVersion(after.GetResourceVersion())
	return true, nil
}

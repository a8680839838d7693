package apply

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json" // It keeps large integers as they are.
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// writeStatus is Statuses.Write without its memory.
//
// Specifications can be large (a share's access rules have up to 90 KiB), so they are neither compared nor sent back.
func writeStatus(ctx context.Context, c client.Client, before, after client.Object) error {
	was, is := onlyStatus(before), onlyStatus(after)
	if equality.Semantic.DeepEqual(was, is) {
		return nil
	}
	data, err := client.MergeFrom(was).Data(is)
	if err != nil {
		return err
	}
	var change map[string]any
	if err := json.Unmarshal(data, &change); err != nil {
		return err
	}
	version, err := send(ctx, c, before, change, before.GetResourceVersion(), true)
	if err != nil {
		return fmt.Errorf("writing the status of %s: %w", before.GetName(), err)
	}
	after.SetResourceVersion(version)
	return nil
}

// onlyStatus is a new object of the same type that has the object's status, and nothing else.
func onlyStatus(object client.Object) client.Object {
	from := reflect.ValueOf(object).Elem()
	to := reflect.New(from.Type())
	to.Elem().FieldByName("Status").Set(from.FieldByName("Status"))
	alone, _ := to.Interface().(client.Object) // It has the type of object.
	return alone
}

// send sends a merge patch of the object, or of its status, if it has this resourceVersion. It returns the new one. The
// API server answers with metadata alone.
func send(ctx context.Context, c client.Client, object client.Object, change map[string]any, version string, status bool) (string, error) {
	data, err := atVersion(change, version)
	if err != nil {
		return "", err
	}
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return "", err
	}
	written := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	written.SetGroupVersionKind(gvk)
	patch := client.RawPatch(types.MergePatchType, data)
	if status {
		err = c.Status().Patch(ctx, written, patch)
	} else {
		err = c.Patch(ctx, written, patch)
	}
	return written.GetResourceVersion(), err
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
	after := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Finalizers: slices.Clone(object.GetFinalizers())}}
	if !change(after, finalizer) {
		return false, nil
	}
	// A merge patch replaces the whole list, so another writer's finalizer would be lost without the lock.
	var finalizers any // null
	if len(after.Finalizers) > 0 {
		finalizers = after.Finalizers
	}
	version, err := send(ctx, c, object, map[string]any{"metadata": map[string]any{"finalizers": finalizers}}, object.GetResourceVersion(), false)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("finalizer %s of %s: %w", finalizer, object.GetName(), err)
	} else if apierrors.IsNotFound(err) {
		return false, nil
	}
	// The caller continues with object, so its resourceVersion must be the newest.
	object.SetFinalizers(after.GetFinalizers())
	object.SetResourceVersion(version)
	return true, nil
}

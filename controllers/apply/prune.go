package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/howdah/howdah/api/v1alpha1"
)

// Prune deletes the objects that were made for owner and are not in keep. It reads the kinds of the given empty lists
// from the cache, in owner's Kubernetes namespace (cluster-wide kinds: everywhere). opts narrow the lists, for example
// client.MatchingLabels. It returns how many objects it deleted, and all errors joined. Objects that are being deleted
// count as deleted.
func (a *Applier) Prune(ctx context.Context, owner client.Object, keep []Object, lists []client.ObjectList, opts ...client.ListOption) (int, error) {
	ownerGVK, err := apiutil.GVKForObject(owner, a.client.Scheme())
	if err != nil {
		return 0, fmt.Errorf("owner of children: %w", err)
	}
	wanted := map[identity]bool{}
	for _, object := range keep {
		marked, err := a.mark(owner, ownerGVK, object)
		if err != nil {
			return 0, err
		}
		wanted[identify(marked)] = true
	}
	deleted := 0
	var errs []error
	for _, list := range lists {
		n, err := a.pruneKind(ctx, owner, ownerGVK, wanted, list, opts)
		deleted += n
		errs = append(errs, err)
	}
	return deleted, errors.Join(errs...)
}

func (a *Applier) pruneKind(ctx context.Context, owner client.Object, ownerGVK schema.GroupVersionKind,
	wanted map[identity]bool, list client.ObjectList, opts []client.ListOption,
) (int, error) {
	gvk, err := apiutil.GVKForObject(list, a.client.Scheme())
	if err != nil {
		return 0, err
	}
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	namespaced, err := apiutil.IsGVKNamespaced(gvk, a.client.RESTMapper())
	if err != nil {
		return 0, fmt.Errorf("%s: %w", gvk.Kind, err)
	}
	all := append([]client.ListOption{client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}}, opts...)
	if namespaced {
		all = append(all, client.InNamespace(owner.GetNamespace()))
	}
	if err := a.client.List(ctx, list, all...); err != nil {
		return 0, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return 0, err
	}
	deleted := 0
	var errs []error
	for _, item := range items {
		object, ok := item.(client.Object)
		id := identity{gvk, client.ObjectKeyFromObject(object)}
		if !ok || wanted[id] || object.GetDeletionTimestamp() != nil || !madeFor(object, owner, ownerGVK) {
			continue
		}
		if err := a.delete(ctx, ownerValue(owner, ownerGVK), id, object); err != nil {
			errs = append(errs, err)
			continue
		}
		deleted++
	}
	return deleted, errors.Join(errs...)
}

// delete deletes exactly the object that was read: the UID protects a newer one with its name.
func (a *Applier) delete(ctx context.Context, owner string, id identity, object client.Object) error {
	uid := object.GetUID()
	err := a.client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: deleting it: %w", id, err)
	}
	a.written.forget(owner, id)
	return nil
}

// madeFor reports whether the object was made for owner: by its controller reference, or without one by its mark.
func madeFor(object, owner client.Object, ownerGVK schema.GroupVersionKind) bool {
	if object.GetLabels()[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
		return false
	}
	if controller := metav1.GetControllerOf(object); controller != nil {
		return controller.UID == owner.GetUID()
	}
	return object.GetAnnotations()[v1alpha1.OwnerAnnotation] == ownerValue(owner, ownerGVK)
}

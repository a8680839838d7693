package apply

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// Applier writes the children of one controller's objects.
type Applier struct {
	client       client.Client
	live         client.Reader
	fieldManager string
	written      *appliedCache
}

// New makes an Applier. c reads through the manager's cache and writes. live reads past the cache
// (Manager.GetAPIReader): it finds an object of the same name without our labels, which the cache does not have.
// fieldManager names the controller, for example "howdah-fileserver".
func New(c client.Client, live client.Reader, fieldManager string) *Applier {
	return &Applier{client: c, live: live, fieldManager: fieldManager, written: newAppliedCache()}
}

// Object is a desired child.
type Object struct {
	config  runtime.ApplyConfiguration
	unowned bool
	// version is that of the object that the configuration follows from; "" if any will do.
	version string
}

// Owned is a child that is deleted with its owner, by a controller reference. It must be in the owner's Kubernetes
// namespace.
func Owned(config runtime.ApplyConfiguration) Object { return Object{config: config} }

// OwnedAsRead is a child whose configuration follows from the child itself, as it was read: nothing is sent if it has changed since (a conflict).
func OwnedAsRead(config runtime.ApplyConfiguration, read client.Object) Object {
	return Object{config: config, version: read.GetResourceVersion()}
}

// Unowned is a child without an owner reference: a cluster-wide object (PersistentVolume), or one that must outlive its
// owner (a claim). Only Prune deletes it.
func Unowned(config runtime.ApplyConfiguration) Object { return Object{config: config, unowned: true} }

// AllOwned makes children of apply configurations.
func AllOwned[T runtime.ApplyConfiguration](configs ...T) []Object {
	objects := make([]Object, 0, len(configs))
	for _, config := range configs {
		objects = append(objects, Owned(config))
	}
	return objects
}

// Apply applies the objects in order. It continues after an error, and returns all errors joined. Each object gets the
// label and the annotation that mark it as Howdah's and as owner's. A *NameTaken error means that an object of that
// name exists and is not owner's; it was not changed. Nothing is sent for an object that has not changed since the last
// Apply.
func (a *Applier) Apply(ctx context.Context, owner client.Object, objects ...Object) error {
	var errs []error
	for _, object := range objects {
		if err := a.applyOne(ctx, owner, object); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (a *Applier) applyOne(ctx context.Context, owner client.Object, object Object) error {
	ownerGVK, err := apiutil.GVKForObject(owner, a.client.Scheme())
	if err != nil {
		return fmt.Errorf("owner of a child: %w", err)
	}
	text, err := json.Marshal(object.config)
	if err != nil {
		return fmt.Errorf("child of %s %s: %w", ownerGVK.Kind, owner.GetName(), err)
	}
	id, err := identityOf(text)
	if err != nil {
		return fmt.Errorf("child of %s %s: %w", ownerGVK.Kind, owner.GetName(), err)
	}
	digest := digestOf(text, ownerValue(owner, ownerGVK), string(owner.GetUID()), strconv.FormatBool(object.unowned))
	present, err := a.find(ctx, id)
	if err != nil {
		return fmt.Errorf("%s: reading it: %w", id, err)
	}
	if present != nil {
		if taken := takenBy(id, present, owner, ownerGVK, object.unowned); taken != nil {
			return taken
		}
		if a.written.unchanged(ownerValue(owner, ownerGVK), id, digest, present, a.fieldManager) {
			return nil
		}
	}
	desired, err := a.mark(owner, ownerGVK, object)
	if err != nil {
		return err
	}
	desired.SetResourceVersion(object.version)
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired),
		client.FieldOwner(a.fieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("%s: applying it: %w", id, err)
	}
	a.written.remember(ownerValue(owner, ownerGVK), id, digest, desired, a.fieldManager)
	return nil
}

// Forget drops what is remembered about the children of a deleted owner, so that memory does not grow. kind is the
// owner's.
func (a *Applier) Forget(kind string, owner types.NamespacedName) {
	a.written.forgetAll(naming.Owner(kind, owner.Namespace, owner.Name))
}

// Remembered is the number of children that are remembered.
func (a *Applier) Remembered() int { return a.written.size() }

// find reads the object from the cache, and from the API server if the cache does not have it: caches have only objects
// with our labels, and can be stale.
func (a *Applier) find(ctx context.Context, id identity) (client.Object, error) {
	present, err := a.newObject(id.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	err = a.client.Get(ctx, id.NamespacedName, present)
	if apierrors.IsNotFound(err) {
		err = a.live.Get(ctx, id.NamespacedName, present)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return present, nil
}

// newObject is an empty object of the kind. It is typed, as the cache's objects are. Objects of other operators are not
// typed, and are read past the cache.
func (a *Applier) newObject(gvk schema.GroupVersionKind) (client.Object, error) {
	if !a.client.Scheme().Recognizes(gvk) {
		untyped := &unstructured.Unstructured{}
		untyped.SetGroupVersionKind(gvk)
		return untyped, nil
	}
	object, err := a.client.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	typed, ok := object.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", gvk)
	}
	return typed, nil
}

// mark copies the configuration and adds the marks of its owner.
func (a *Applier) mark(owner client.Object, ownerGVK schema.GroupVersionKind, object Object) (*unstructured.Unstructured, error) {
	// Through JSON, as the API server will see it: runtime's converter does not
	// know the embedded fields of controller-gen's apply configurations.
	text, err := json.Marshal(object.config)
	desired := &unstructured.Unstructured{}
	if err == nil {
		err = json.Unmarshal(text, &desired.Object)
	}
	if err != nil {
		return nil, fmt.Errorf("child of %s %s: %w", ownerGVK.Kind, owner.GetName(), err)
	}
	desired.SetLabels(with(desired.GetLabels(), v1alpha1.ManagedByLabel, v1alpha1.ManagedBy))
	desired.SetAnnotations(with(desired.GetAnnotations(), v1alpha1.OwnerAnnotation, ownerValue(owner, ownerGVK)))
	if object.unowned {
		return desired, nil
	}
	if desired.GetNamespace() != owner.GetNamespace() {
		return nil, fmt.Errorf("%s: an owner reference can't reach from namespace %q to %q", identify(desired), desired.GetNamespace(), owner.GetNamespace())
	}
	desired.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, ownerGVK)})
	return desired, nil
}

func ownerValue(owner client.Object, ownerGVK schema.GroupVersionKind) string {
	return naming.Owner(ownerGVK.Kind, owner.GetNamespace(), owner.GetName())
}

func with(values map[string]string, key, value string) map[string]string {
	if values == nil {
		values = map[string]string{}
	}
	values[key] = value
	return values
}

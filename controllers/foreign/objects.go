package foreign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Kind is a kind that is read.
type Kind struct {
	schema.GroupVersionKind
	// Name is that of the only objects of the kind that are read; "" means all.
	Name string
	// Ignored are paths of fields that change often and are not needed. They are dropped, and their changes are not reported.
	Ignored [][]string
}

// maxPending is the capacity of Changed. More changes wait in the informer.
const maxPending = 64

// Objects are objects of kinds that may not be installed.
type Objects struct {
	// Changed tells of objects that have changed, once they are watched.
	Changed chan event.GenericEvent

	mgr        ctrl.Manager
	namespaces map[string]cache.Config
	kinds      []Kind

	mu       sync.Mutex
	watching map[schema.GroupVersionKind]watch
}

// watch is a cache of one kind, for a cache of several can't be made before all of them are installed.
type watch struct {
	cache    cache.Cache
	informer cache.Informer
}

// ErrNotInstalled tells that the API server does not know the kind. ErrForbidden that the operator has not been given the right to read it.
var (
	ErrNotInstalled = errors.New("the kind is not installed")
	ErrForbidden    = errors.New("the operator may not read it")
)

// New makes them for a manager, which runs their watches. namespaces are the Kubernetes namespaces to look into; none means all.
func New(mgr ctrl.Manager, namespaces []string, kinds ...Kind) *Objects {
	o := &Objects{
		Changed: make(chan event.GenericEvent, maxPending), mgr: mgr, kinds: kinds,
		watching: map[schema.GroupVersionKind]watch{},
	}
	for _, namespace := range namespaces {
		if o.namespaces == nil {
			o.namespaces = map[string]cache.Config{}
		}
		o.namespaces[namespace] = cache.Config{}
	}
	return o
}

// Get reads one object: nil if there is none. The error is ErrNotInstalled or ErrForbidden where that is why, and then nothing tells of
// a change: ask again. Nothing in the object may be changed.
func (o *Objects) Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	reader := o.mgr.GetAPIReader()
	known := o.known(kind)
	if known != nil {
		reader = known
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := reader.Get(ctx, key, object)
	switch {
	case meta.IsNoMatchError(err):
		return nil, ErrNotInstalled
	case apierrors.IsForbidden(err):
		return nil, ErrForbidden
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	if known == nil {
		if watching := o.watch(ctx, kind); watching != nil {
			return nil, watching
		}
	}
	if err != nil {
		return nil, nil
	}
	return object, nil
}

// known is the cache that has all objects of a kind, nil if there is none yet.
func (o *Objects) known(kind schema.GroupVersionKind) client.Reader {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.watching[kind]; w.informer != nil && w.informer.HasSynced() {
		return w.cache
	}
	return nil
}

// watch begins to watch a kind that can be read.
func (o *Objects) watch(ctx context.Context, gvk schema.GroupVersionKind) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watching[gvk].informer != nil {
		return nil
	}
	at := slices.IndexFunc(o.kinds, func(kind Kind) bool { return kind.GroupVersionKind == gvk })
	if at < 0 {
		return fmt.Errorf("%s is not among the kinds to read", gvk)
	}
	begun, err := o.begin(ctx, o.kinds[at])
	if err != nil {
		return fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	o.watching[gvk] = begun
	return nil
}

// begin makes a cache of a kind and has the manager run it.
func (o *Objects) begin(ctx context.Context, kind Kind) (w watch, err error) {
	options := cache.Options{Scheme: o.mgr.GetScheme(), Mapper: o.mgr.GetRESTMapper(), DefaultNamespaces: o.namespaces, DefaultTransform: kind.slim}
	if kind.Name != "" {
		options.DefaultFieldSelector = fields.OneTermEqualSelector("metadata.name", kind.Name)
	}
	if w.cache, err = cache.New(o.mgr.GetConfig(), options); err != nil {
		return watch{}, err
	}
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind.GroupVersionKind)
	if w.informer, err = w.cache.GetInformer(ctx, empty, cache.BlockUntilSynced(false)); err != nil {
		return watch{}, err
	}
	if _, err = w.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: o.tell, UpdateFunc: o.updated, DeleteFunc: o.tell}); err != nil {
		return watch{}, err
	}
	return w, o.mgr.Add(w.cache)
}

// updated tells of an object that has changed in what is kept of it.
func (o *Objects) updated(before, after any) {
	old, ok := before.(*unstructured.Unstructured)
	now, ok2 := after.(*unstructured.Unstructured)
	if ok && ok2 {
		without := func(u *unstructured.Unstructured) map[string]any {
			kept := u.DeepCopy()
			unstructured.RemoveNestedField(kept.Object, "metadata", "resourceVersion")
			return kept.Object
		}
		if equality.Semantic.DeepEqual(without(old), without(now)) {
			return
		}
	}
	o.tell(after)
}

func (o *Objects) tell(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if known, ok := object.(client.Object); ok {
		o.Changed <- event.GenericEvent{Object: known}
	}
}

// slim drops fields that are not needed.
func (k Kind) slim(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
		for _, path := range k.Ignored {
			unstructured.RemoveNestedField(u.Object, path...)
		}
	}
	return object, nil
}

package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// modelAPI is as much of an API server as a share's life needs: UIDs, generations, finalizers, optimistic locking, statuses of their
// own, and watches. The real one runs in test/integration; thousands of schedules in seconds it can't.
type modelAPI struct {
	mu      sync.Mutex
	objects map[string]client.Object // By kind and name.
	version int
	// watchers get every change, in order.
	watchers map[*modelProcess]func(modelEvent)
}

// modelEvent is a change of an object; gone: it does not exist any more.
type modelEvent struct {
	object client.Object
	gone   bool
}

func newModelAPI() *modelAPI {
	return &modelAPI{objects: map[string]client.Object{}, watchers: map[*modelProcess]func(modelEvent){}}
}

// kindOf is the kind of an object, or of the objects of a list.
func kindOf(o runtime.Object) string {
	if metadata, is := o.(*metav1.PartialObjectMetadata); is {
		return metadata.Kind
	}
	return strings.TrimSuffix(reflect.TypeOf(o).Elem().Name(), "List")
}

func keyOf(o client.Object) string { return kindOf(o) + " " + o.GetName() }

func resourceOf(o client.Object) schema.GroupResource {
	return schema.GroupResource{Resource: strings.ToLower(kindOf(o)) + "s"}
}

func copyOf[T client.Object](o T) T { return o.DeepCopyObject().(T) }

// all are copies of the objects of a kind, by name.
func (a *modelAPI) all(kind string) []client.Object {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.List(kind)
}

// List is all for who holds a.mu.
func (a *modelAPI) List(kind string) []client.Object {
	var out []client.Object
	for _, o := range a.objects {
		if kind == "" || kindOf(o) == kind {
			out = append(out, copyOf(o))
		}
	}
	slices.SortFunc(out, func(x, y client.Object) int { return strings.Compare(keyOf(x), keyOf(y)) })
	return out
}

// watch gives all there is, and what changes from then on.
func (a *modelAPI) watch(p *modelProcess, tell func(modelEvent)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.List("") {
		tell(modelEvent{object: o})
	}
	a.watchers[p] = tell
}

func (a *modelAPI) forget(p *modelProcess) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.watchers, p)
}

// store takes a new state of an object. a.mu is held.
func (a *modelAPI) store(o client.Object) {
	a.version++
	o.SetResourceVersion(strconv.Itoa(a.version))
	gone := o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0
	if gone {
		delete(a.objects, keyOf(o))
	} else {
		a.objects[keyOf(o)] = o
	}
	for _, tell := range a.watchers {
		tell(modelEvent{copyOf(o), gone})
	}
}

// Get fills into, and is the answer's error.
func (a *modelAPI) Get(name string, into client.Object) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.objects[kindOf(into)+" "+name]
	if o == nil {
		return apierrors.NewNotFound(resourceOf(into), name)
	}
	assign(into, o)
	return nil
}

// assign makes an object what another is, or gives it the metadata if it has no room for more.
func assign(into, from client.Object) {
	if metadata, is := into.(*metav1.PartialObjectMetadata); is {
		metadata.ObjectMeta = *reflect.ValueOf(copyOf(from)).Elem().FieldByName("ObjectMeta").Addr().Interface().(*metav1.ObjectMeta)
		return
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(copyOf(from)).Elem())
}

func (a *modelAPI) create(o client.Object) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.objects[keyOf(o)] != nil {
		return apierrors.NewAlreadyExists(resourceOf(o), o.GetName())
	}
	stored := copyOf(o)
	stored.SetUID(types.UID(fmt.Sprintf("00000000-uid-%08d", a.version)))
	stored.SetGeneration(1)
	stored.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	setStatus(stored, nil)
	a.store(stored)
	assign(o, stored)
	return nil
}

// setStatus gives an object the status of another; nil: none.
func setStatus(o, from client.Object) {
	status := reflect.ValueOf(o).Elem().FieldByName("Status")
	if from == nil {
		status.SetZero()
		return
	}
	status.Set(reflect.ValueOf(copyOf(from)).Elem().FieldByName("Status"))
}

func specOf(o client.Object) any { return reflect.ValueOf(o).Elem().FieldByName("Spec").Interface() }

// patch changes an object, or its status alone, by a merge patch (RFC 7386) or a JSON patch (RFC 6902).
func (a *modelAPI) patch(o client.Object, kind types.PatchType, body []byte, onlyStatus bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.objects[keyOf(o)]
	if now == nil {
		return apierrors.NewNotFound(resourceOf(o), o.GetName())
	}
	text, err := json.Marshal(now)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if text, err = patched(text, kind, body); err != nil {
		return err
	}
	next := reflect.New(reflect.TypeOf(now).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(text, next); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := a.replace(now, next, onlyStatus); err != nil {
		return err
	}
	assign(o, a.newest(next))
	return nil
}

// patched is a document with a patch. A JSON patch that does not apply is answered with 422 and no cause, as by an API server.
func patched(text []byte, kind types.PatchType, body []byte) ([]byte, error) {
	if kind == types.JSONPatchType {
		operations, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if text, err = operations.Apply(text); err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
		return text, nil
	}
	var document, change map[string]any
	if err := errors.Join(json.Unmarshal(text, &document), json.Unmarshal(body, &change)); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	merge(document, change)
	return json.Marshal(document)
}

func merge(document, change map[string]any) {
	for key, value := range change {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(document, key)
		case isObject:
			below, ok := document[key].(map[string]any)
			if !ok {
				below = map[string]any{}
			}
			merge(below, inner)
			document[key] = below
		default:
			document[key] = value
		}
	}
}

// newest is what is stored of an object, or its last state. a.mu is held.
func (a *modelAPI) newest(o client.Object) client.Object {
	if stored := a.objects[keyOf(o)]; stored != nil {
		return stored
	}
	return o
}

func (a *modelAPI) update(o client.Object, onlyStatus bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.objects[keyOf(o)]
	if now == nil {
		return apierrors.NewNotFound(resourceOf(o), o.GetName())
	}
	next := copyOf(o)
	if err := a.replace(now, next, onlyStatus); err != nil {
		return err
	}
	assign(o, a.newest(next))
	return nil
}

// replace makes next what is stored, as far as the request may change it. a.mu is held.
func (a *modelAPI) replace(now, next client.Object, onlyStatus bool) error {
	if v := next.GetResourceVersion(); v != "" && v != now.GetResourceVersion() {
		return apierrors.NewConflict(resourceOf(now), now.GetName(), fmt.Errorf("the version is %s, not %s", now.GetResourceVersion(), v))
	}
	if next.GetUID() != now.GetUID() {
		return apierrors.NewConflict(resourceOf(now), now.GetName(), fmt.Errorf("the UID is %s", now.GetUID()))
	}
	if onlyStatus {
		changed := copyOf(now)
		setStatus(changed, next)
		next = changed
	} else {
		setStatus(next, now)
	}
	next.SetDeletionTimestamp(now.GetDeletionTimestamp())
	next.SetGeneration(now.GetGeneration())
	next.SetResourceVersion(now.GetResourceVersion())
	if reflect.DeepEqual(now, next) {
		return nil
	}
	if !reflect.DeepEqual(specOf(now), specOf(next)) {
		next.SetGeneration(now.GetGeneration() + 1)
	}
	a.store(next)
	return nil
}

func (a *modelAPI) remove(o client.Object, must metav1.Preconditions) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.objects[keyOf(o)]
	switch {
	case now == nil:
		return apierrors.NewNotFound(resourceOf(o), o.GetName())
	case must.UID != nil && now.GetUID() != *must.UID, must.ResourceVersion != nil && now.GetResourceVersion() != *must.ResourceVersion:
		return apierrors.NewConflict(resourceOf(o), o.GetName(), fmt.Errorf("it is %s, version %s", now.GetUID(), now.GetResourceVersion()))
	case now.GetDeletionTimestamp() != nil:
		return nil
	}
	next := copyOf(now)
	deleted := metav1.NewTime(time.Now().Truncate(time.Second))
	next.SetDeletionTimestamp(&deleted)
	next.SetGeneration(now.GetGeneration() + 1)
	a.store(next)
	return nil
}

// modelClient is the API as a process reaches it. It reads from the process's cache, unless it is live or the process has none.
// Methods that no test needs are those of a nil interface.
type modelClient struct {
	client.Client
	p    *modelProcess
	live bool
}

var modelScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), internalv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	return scheme
}()

func (c *modelClient) Scheme() *runtime.Scheme { return modelScheme }

func (c *modelClient) RESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolume"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
	return mapper
}

func (c *modelClient) cached() bool { return !c.live && c.p.cache != nil }

func (c *modelClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if c.cached() {
		return c.p.cache.Get(key.Name, o)
	}
	return c.p.step(ctx, "API get "+kindOf(o)+" "+key.Name, func() error { return c.p.model.api.Get(key.Name, o) })
}

func (c *modelClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	var objects []client.Object
	if c.cached() {
		objects = c.p.cache.all(kindOf(list))
	} else if err := c.p.step(ctx, "API list "+kindOf(list), func() error {
		objects = c.p.model.api.all(kindOf(list))
		return nil
	}); err != nil {
		return err
	}
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	items.SetZero()
	for _, o := range objects {
		if isSelected(&options, o) {
			items.Set(reflect.Append(items, reflect.ValueOf(o).Elem()))
		}
	}
	return nil
}

// isSelected judges by labels, and by the fields of controllers/index.
func isSelected(options *client.ListOptions, o client.Object) bool {
	if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	if options.FieldSelector == nil {
		return true
	}
	for _, wanted := range options.FieldSelector.Requirements() {
		var fileServer, share, server string
		switch o := o.(type) {
		case *v1alpha1.FileShare:
			fileServer = o.Namespace + "/" + o.Spec.FileServerRef.Name
		case *internalv1.ShareDirectory:
			fileServer, share = o.Spec.FileServerRef.Name, o.Spec.FileShareRef.Name
		case *internalv1.ShareExport:
			share, server = o.Spec.FileShareRef.Name, o.Spec.DataServerRef.Name
		case *internalv1.DataServer:
			fileServer = o.Spec.FileServerRef.Name
		}
		if value := map[string]string{"howdah.fileServer": fileServer, "howdah.fileShare": share, "howdah.dataServer": server}[wanted.Field]; value != wanted.Value {
			return false
		}
	}
	return true
}

func (c *modelClient) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	return c.write(ctx, "create", o, func(sent client.Object) error { return c.p.model.api.create(sent) })
}

func (c *modelClient) Update(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
	return c.write(ctx, "update", o, func(sent client.Object) error { return c.p.model.api.update(sent, false) })
}

func (c *modelClient) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.patch(ctx, "patch", o, patch, false)
}

func (c *modelClient) patch(ctx context.Context, what string, o client.Object, patch client.Patch, onlyStatus bool) error {
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	return c.write(ctx, what+" "+string(body), o, func(sent client.Object) error { return c.p.model.api.patch(sent, patch.Type(), body, onlyStatus) })
}

func (c *modelClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	var must metav1.Preconditions
	if options.Preconditions != nil {
		must = *options.Preconditions
	}
	return c.p.step(ctx, "API delete "+keyOf(o), func() error { return c.p.model.api.remove(o, must) })
}

// DeleteAllOf deletes one after the other, as an API server does: it can be cut in between, too.
func (c *modelClient) DeleteAllOf(ctx context.Context, o client.Object, opts ...client.DeleteAllOfOption) error {
	var options client.DeleteAllOfOptions
	options.ApplyOptions(opts)
	return c.p.step(ctx, "API delete all "+kindOf(o), func() error {
		for _, found := range c.p.model.api.all(kindOf(o)) {
			if isSelected(&options.ListOptions, found) {
				if err := c.p.model.api.remove(found, metav1.Preconditions{}); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
		}
		return nil
	})
}

// write is a change whose answer is only seen if it arrives.
func (c *modelClient) write(ctx context.Context, what string, o client.Object, call func(sent client.Object) error) error {
	sent := copyOf(o)
	err := c.p.step(ctx, "API "+what+" "+keyOf(o), func() error { return call(sent) })
	if err == nil {
		assign(o, sent)
	}
	return err
}

func (c *modelClient) Status() client.SubResourceWriter { return &modelStatusClient{c: c} }

type modelStatusClient struct {
	client.SubResourceWriter
	c *modelClient
}

func (s *modelStatusClient) Update(ctx context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.c.write(ctx, "update status", o, func(sent client.Object) error { return s.c.p.model.api.update(sent, true) })
}

func (s *modelStatusClient) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.c.patch(ctx, "patch status", o, patch, true)
}

// modelCache is what a process knows of the API: each kind lags behind on its own.
type modelCache struct {
	mu      sync.Mutex
	objects map[string]client.Object
}

func (c *modelCache) Set(e modelEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.gone {
		delete(c.objects, keyOf(e.object))
		return
	}
	c.objects[keyOf(e.object)] = e.object
}

func (c *modelCache) Get(name string, into client.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.objects[kindOf(into)+" "+name]
	if o == nil {
		return apierrors.NewNotFound(resourceOf(into), name)
	}
	assign(into, o)
	return nil
}

func (c *modelCache) all(kind string) []client.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []client.Object
	for _, o := range c.objects {
		if kindOf(o) == kind {
			out = append(out, copyOf(o))
		}
	}
	return out
}

package crash

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

var resource = schema.GroupResource{Group: internalv1.GroupVersion.Group, Resource: "sharedirectories"}

// api is as much of an API server as ShareDirectories need: names, UIDs, optimistic locking, a status of its own, and a
// watch. The real one runs in test/integration; thousands of schedules in seconds it can't.
type api struct {
	mu      sync.Mutex
	objects map[string]*internalv1.ShareDirectory
	version int
	// watchers get every change, in order; gone: it was deleted.
	watchers map[*process]func(o *internalv1.ShareDirectory, gone bool)
}

func newAPI() *api {
	return &api{objects: map[string]*internalv1.ShareDirectory{}, watchers: map[*process]func(*internalv1.ShareDirectory, bool){}}
}

// all are the objects, by path.
func (a *api) all() []*internalv1.ShareDirectory {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list()
}

func (a *api) list() []*internalv1.ShareDirectory {
	var out []*internalv1.ShareDirectory
	for _, o := range a.objects {
		out = append(out, o.DeepCopy())
	}
	slices.SortFunc(out, func(x, y *internalv1.ShareDirectory) int { return strings.Compare(x.Spec.Path, y.Spec.Path) })
	return out
}

// watch gives all there is, and what changes from then on.
func (a *api) watch(p *process, tell func(o *internalv1.ShareDirectory, gone bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.list() {
		tell(o, false)
	}
	a.watchers[p] = tell
}

func (a *api) forget(p *process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.watchers, p)
}

// store takes a new state of an object. a.mu is held.
func (a *api) store(o *internalv1.ShareDirectory) {
	a.version++
	o.ResourceVersion = strconv.Itoa(a.version)
	a.objects[o.Name] = o
	for _, tell := range a.watchers {
		tell(o.DeepCopy(), false)
	}
}

func (a *api) get(key client.ObjectKey, into *internalv1.ShareDirectory) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.objects[key.Name]
	if o == nil {
		return apierrors.NewNotFound(resource, key.Name)
	}
	o.DeepCopyInto(into)
	return nil
}

func (a *api) create(o *internalv1.ShareDirectory) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.objects[o.Name] != nil {
		return apierrors.NewAlreadyExists(resource, o.Name)
	}
	stored := o.DeepCopy()
	stored.UID = types.UID(fmt.Sprintf("00000000-uid-%08d", a.version))
	stored.Generation, stored.Status = 1, internalv1.ShareDirectoryStatus{}
	stored.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	a.store(stored)
	stored.DeepCopyInto(o)
	return nil
}

// current is the stored object for a change of what the caller knows as o. a.mu is held.
func (a *api) current(o *internalv1.ShareDirectory) (*internalv1.ShareDirectory, error) {
	now := a.objects[o.Name]
	switch {
	case now == nil:
		return nil, apierrors.NewNotFound(resource, o.Name)
	case o.UID != "" && now.UID != o.UID:
		return nil, apierrors.NewConflict(resource, o.Name, fmt.Errorf("the UID is %s", now.UID))
	case o.ResourceVersion != "" && now.ResourceVersion != o.ResourceVersion:
		return nil, apierrors.NewConflict(resource, o.Name, fmt.Errorf("the version is %s", now.ResourceVersion))
	}
	return now.DeepCopy(), nil
}

// change writes what edit makes of the stored object, and gives it to the caller.
func (a *api) change(o *internalv1.ShareDirectory, edit func(next *internalv1.ShareDirectory) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, err := a.current(o)
	if err != nil {
		return err
	}
	if err := edit(next); err != nil {
		return err
	}
	before := a.objects[o.Name]
	if !reflect.DeepEqual(before, next) {
		if !reflect.DeepEqual(before.Spec, next.Spec) {
			next.Generation++
		}
		a.store(next)
	}
	next.DeepCopyInto(o)
	return nil
}

func (a *api) remove(o *internalv1.ShareDirectory, must metav1.Preconditions) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.objects[o.Name]
	switch {
	case now == nil:
		return apierrors.NewNotFound(resource, o.Name)
	case must.UID != nil && now.UID != *must.UID, must.ResourceVersion != nil && now.ResourceVersion != *must.ResourceVersion:
		return apierrors.NewConflict(resource, o.Name, fmt.Errorf("it is %s, version %s", now.UID, now.ResourceVersion))
	}
	delete(a.objects, o.Name)
	a.version++
	for _, tell := range a.watchers {
		tell(now.DeepCopy(), true)
	}
	return nil
}

// apiClient is the API as a process reaches it. Methods that are not needed are those of a nil interface.
type apiClient struct {
	client.Client
	p *process
}

func directoryOf(o client.Object) *internalv1.ShareDirectory { return o.(*internalv1.ShareDirectory) }

func (c *apiClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return c.p.step(ctx, "API get "+key.Name, func() error { return c.p.world.api.get(key, directoryOf(o)) })
}

func (c *apiClient) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	d := directoryOf(o)
	sent := d.DeepCopy()
	err := c.p.step(ctx, "API create "+d.Spec.Path, func() error { return c.p.world.api.create(sent) })
	if err == nil {
		sent.DeepCopyInto(d)
	}
	return err
}

func (c *apiClient) Update(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
	d := directoryOf(o)
	return c.write(ctx, "API update ", d, func(next *internalv1.ShareDirectory) error {
		d.Spec.DeepCopyInto(&next.Spec)
		next.Labels, next.Annotations = d.DeepCopy().Labels, d.DeepCopy().Annotations
		return nil
	})
}

func (c *apiClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	d := directoryOf(o)
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	must := ptr.Deref(options.Preconditions, metav1.Preconditions{})
	return c.p.step(ctx, "API delete "+d.Spec.Path, func() error { return c.p.world.api.remove(d, must) })
}

func (c *apiClient) Status() client.SubResourceWriter { return &statusClient{c: c} }

// write is a change whose answer is only seen if it arrives.
func (c *apiClient) write(ctx context.Context, what string, d *internalv1.ShareDirectory, edit func(next *internalv1.ShareDirectory) error) error {
	sent := d.DeepCopy()
	err := c.p.step(ctx, what+d.Spec.Path, func() error { return c.p.world.api.change(sent, edit) })
	if err == nil {
		sent.DeepCopyInto(d)
	}
	return err
}

type statusClient struct {
	client.SubResourceWriter
	c *apiClient
}

func (s *statusClient) Update(ctx context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	d := directoryOf(o)
	return s.c.write(ctx, "API status "+string(d.Status.State)+" ", d, func(next *internalv1.ShareDirectory) error {
		d.Status.DeepCopyInto(&next.Status)
		return nil
	})
}

func (s *statusClient) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	if _, ok := o.(*internalv1.ShareExport); ok { // what was found on a data server is for the operator
		return s.c.p.step(ctx, "API patch ShareExport "+o.GetName(), func() error { return nil })
	}
	d := directoryOf(o)
	body, err := patch.Data(d)
	if err != nil {
		return err
	}
	known := d.DeepCopy()
	known.ResourceVersion = "" // It has no lock but the test of the UID.
	err = s.c.write(ctx, "API patch ", known, func(next *internalv1.ShareDirectory) error { return applyToStatus(patch.Type(), body, next) })
	if err == nil {
		known.DeepCopyInto(d)
	}
	return err
}

// applyToStatus is what the API server does with a JSON patch of a status (internal/sameobject). One that does not apply is answered with 422 and no
// cause.
func applyToStatus(kind types.PatchType, body []byte, next *internalv1.ShareDirectory) error {
	if kind != types.JSONPatchType {
		return apierrors.NewBadRequest(fmt.Sprintf("a status gets a %s: only JSON patches test the UID", kind))
	}
	operations, err := jsonpatch.DecodePatch(body)
	text, encoding := json.Marshal(next)
	if err := errors.Join(err, encoding); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if text, err = operations.Apply(text); err != nil {
		return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	var changed internalv1.ShareDirectory
	if err := json.Unmarshal(text, &changed); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	next.Status = changed.Status
	return nil
}

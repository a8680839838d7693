package dataserver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// writeTimeout bounds a write of the status; it is tried again.
const writeTimeout = 15 * time.Second

// settle is how long the watch waits for more after a change: many shares that come or go at once are one reload.
const settle = 100 * time.Millisecond

// statusWriters is how many statuses of exports are written at a time.
const statusWriters = 8

// wish is what the API asks of a data server.
type wish struct {
	server *internalv1.DataServer
	// exports are all ShareExports of the server, those being deleted included, the oldest first.
	exports []*internalv1.ShareExport
}

// apiSource is the data server's part of the API: it tells of changes, and takes the statuses.
type apiSource struct {
	client client.Client
	cache  cache.Cache
	wishes chan wish

	// mutex is held during a write of the DataServer's status too: its echo may be faster than its answer, and must wait to be known as one.
	mutex   sync.Mutex
	newest  *internalv1.DataServer             // As far as is known; nil until the first is seen.
	deleted bool                               // The newest is gone.
	exports map[string]*internalv1.ShareExport // By name, as far as is known.
	synced  bool                               // Everything that was there at the start is known.
	pending *time.Timer                        // Runs while a change waits for more.
}

// newAPISource watches the one DataServer of that name and its exports, and nothing else.
func newAPISource(config *rest.Config, namespace, name string) (*apiSource, error) {
	scheme := runtime.NewScheme()
	if err := internalv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the API: %w", err)
	}
	watched, err := cache.New(config, cache.Options{
		Scheme:            scheme,
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&internalv1.DataServer{}:  {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)},
			&internalv1.ShareExport{}: {Label: labels.SelectorFromSet(labels.Set{v1alpha1.DataServerLabel: name})},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching the DataServer: %w", err)
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API: %w", err)
	}
	return &apiSource{client: writer, cache: watched, wishes: make(chan wish, 1), exports: map[string]*internalv1.ShareExport{}}, nil
}

// run watches until the context ends. Nothing is told before everything is known: to a data server
// that has just started, an export that is not known yet would be one to remove.
func (a *apiSource) run(ctx context.Context) error {
	var known []toolscache.InformerSynced
	for _, kind := range []struct {
		object  client.Object
		handler toolscache.ResourceEventHandlerFuncs
	}{
		// A DataServer that is deleted changes nothing: ganesha goes on with what it has until the pod goes.
		{&internalv1.DataServer{}, toolscache.ResourceEventHandlerFuncs{
			AddFunc:    a.seen,
			UpdateFunc: func(_, object any) { a.seen(object) },
			DeleteFunc: a.gone,
		}},
		{&internalv1.ShareExport{}, toolscache.ResourceEventHandlerFuncs{
			AddFunc:    a.exportSeen,
			UpdateFunc: func(_, object any) { a.exportSeen(object) },
			DeleteFunc: a.exportGone,
		}},
	} {
		informer, err := a.cache.GetInformer(ctx, kind.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind.object, err)
		}
		registration, err := informer.AddEventHandler(kind.handler)
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind.object, err)
		}
		known = append(known, registration.HasSynced)
	}
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), known...) {
			a.mutex.Lock()
			defer a.mutex.Unlock()
			a.synced = true
			a.changed()
		}
	}()
	return a.cache.Start(ctx)
}

func (a *apiSource) seen(object any) {
	dataServer, ok := object.(*internalv1.DataServer)
	if !ok {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	known := a.newest
	if known != nil && known.UID == dataServer.UID && !newer(dataServer, known) {
		return // An echo of this manager's own write, or older than its answer.
	}
	a.newest, a.deleted = dataServer.DeepCopy(), false
	if known != nil && known.UID == dataServer.UID && known.Generation == dataServer.Generation &&
		equality.Semantic.DeepEqual(known.Status, dataServer.Status) {
		return // Labels or the like.
	}
	a.changed()
}

func (a *apiSource) gone(any) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.deleted = true
}

// isDeleted tells whether the DataServer is being deleted, or is gone.
func (a *apiSource) isDeleted() bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.deleted || a.newest != nil && a.newest.DeletionTimestamp != nil
}

// exportSeen takes an export. A status that changed alone is no reason for a pass: it is this manager's own, and what
// somebody else wrote is put right by the next one.
func (a *apiSource) exportSeen(object any) {
	export, ok := object.(*internalv1.ShareExport)
	if !ok {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	known := a.exports[export.Name]
	if known != nil && known.UID == export.UID && !newer(export, known) {
		return
	}
	a.exports[export.Name] = export
	if known == nil || known.UID != export.UID || known.Generation != export.Generation ||
		known.DeletionTimestamp.IsZero() != export.DeletionTimestamp.IsZero() {
		a.changed()
	}
}

func (a *apiSource) exportGone(object any) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	export, ok := object.(*internalv1.ShareExport)
	if !ok {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if known := a.exports[export.Name]; known != nil && known.UID == export.UID {
		delete(a.exports, export.Name)
		a.changed()
	}
}

// changed has the wish offered when the changes have settled. a.mutex is held.
func (a *apiSource) changed() {
	if a.synced && a.newest != nil && a.pending == nil {
		a.pending = time.AfterFunc(settle, a.offer)
	}
}

// offer puts the newest wish into the channel, in place of one that was not taken yet.
func (a *apiSource) offer() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.pending = nil
	select {
	case <-a.wishes:
	default:
	}
	a.wishes <- wish{server: a.newest.DeepCopy(), exports: a.known()}
}

// known are the exports, the oldest first. They are never changed after they were stored. a.mutex is held.
func (a *apiSource) known() []*internalv1.ShareExport {
	return slices.SortedFunc(maps.Values(a.exports), func(x, y *internalv1.ShareExport) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), strings.Compare(x.Name, y.Name))
	})
}

// newer is true if a is a later version of the object than b.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || order > 0
}

// report patches the status subresource by a merge patch with what changed; no change, no write.
func (a *apiSource) report(ctx context.Context, build func(internalv1.DataServerStatus) internalv1.DataServerStatus) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.newest == nil {
		return nil
	}
	before, after := a.newest, a.newest.DeepCopy()
	after.Status = build(*before.Status.DeepCopy())
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	patch := client.MergeFrom(before)
	if !equality.Semantic.DeepEqual(before.Status.VolumeIDs, after.Status.VolumeIDs) {
		// Which volumes the server had must not be lost to a view that is behind.
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if err := a.client.Status().Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("writing the status of DataServer %s: %w", after.Name, err)
	}
	if after.Generation != before.Generation {
		// A newer spec is on its way, and its event must not be taken for an echo.
		a.newest.Status = after.Status
		return nil
	}
	a.newest = after
	return nil
}

// reportExports writes the statuses of those exports whose status is not what build makes of it.
func (a *apiSource) reportExports(ctx context.Context, build func(*internalv1.ShareExport) internalv1.ShareExportStatus) error {
	a.mutex.Lock()
	exports := a.known()
	a.mutex.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(statusWriters)
	for _, before := range exports {
		after := before.DeepCopy()
		after.Status = build(before)
		if equality.Semantic.DeepEqual(before.Status, after.Status) {
			continue
		}
		group.Go(func() error { return a.writeExport(ctx, before, after) })
	}
	return group.Wait()
}

func (a *apiSource) writeExport(ctx context.Context, before, after *internalv1.ShareExport) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	// The lock keeps a status from an object that took the name since.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := a.client.Status().Patch(ctx, after, patch); apierrors.IsNotFound(err) {
		return nil // Gone meanwhile; the watch tells.
	} else if err != nil {
		return fmt.Errorf("writing the status of ShareExport %s: %w", before.Name, err)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	// A newer spec or a deletion is on its way, and its event must not be taken for an echo.
	known := a.exports[before.Name]
	if known == before && after.Generation == before.Generation && after.DeletionTimestamp.IsZero() == before.DeletionTimestamp.IsZero() {
		a.exports[before.Name] = after
	}
	return nil
}

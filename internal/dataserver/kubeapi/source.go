package kubeapi

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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/rewound"
)

// writeTimeout bounds a write of the status; it is tried again.
const writeTimeout = 15 * time.Second

// settle is how long the watch waits for more changes after one: many shares that come or go at once cause one reload.
const settle = 100 * time.Millisecond

// statusWriters is how many statuses of exports are written at a time.
const statusWriters = 8

// Desired is what the API asks of a data server.
type Desired struct {
	Server *internalv1.DataServer
	// Exports are all ShareExports of the server, those being deleted included, the oldest first.
	Exports []*internalv1.ShareExport
}

// Source is the data server's access to the API: it offers changes, and writes the statuses.
type Source struct {
	client client.Client
	cache  cache.Cache
	wanted chan Desired

	// turn has one token, for the goroutine that writes the DataServer's status. mutex is not held during a write, which may take long.
	turn chan struct{}

	mutex   sync.Mutex
	newest  *internalv1.DataServer             // As far as is known; nil until the first is seen.
	deleted bool                               // The newest is gone.
	exports map[string]*internalv1.ShareExport // By name, as far as is known.
	rewound map[types.UID]bool                 // Known objects whose next state is earlier, and counts.
	synced  bool                               // Everything that was there at the start is known.
	pending *time.Timer                        // Runs while a change waits for more.
	// writing is true while the DataServer's status is written. early is the newest DataServer that was seen meanwhile: it may be the echo of
	// that write, and is taken when the answer is known.
	writing bool
	early   *internalv1.DataServer
}

// NewSource watches the one DataServer of that name and its exports, and nothing else.
func NewSource(config *rest.Config, namespace, name string) (*Source, error) {
	scheme := runtime.NewScheme()
	if err := internalv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the API: %w", err)
	}
	// The API server need not be asked which kinds there are: clients wait while a data server starts.
	kinds := meta.NewDefaultRESTMapper([]schema.GroupVersion{internalv1.GroupVersion})
	for _, kind := range []string{"DataServer", "ShareExport"} {
		kinds.Add(internalv1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	watched, err := cache.New(config, cache.Options{
		Scheme:            scheme,
		Mapper:            kinds,
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
	writer, err := client.New(config, client.Options{Scheme: scheme, Mapper: kinds})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API: %w", err)
	}
	source := NewDetachedSource(writer)
	source.cache = watched
	return source, nil
}

// NewDetachedSource is a source without a watch: ObjectChanged, ExportSeen, ExportGone and SetSynced pass it objects.
func NewDetachedSource(writer client.Client) *Source {
	return &Source{client: writer, turn: make(chan struct{}, 1), wanted: make(chan Desired, 1), exports: map[string]*internalv1.ShareExport{}, rewound: map[types.UID]bool{}}
}

// Desired has the newest state that the API asks for. It replaces a state that was not taken.
func (a *Source) Desired() <-chan Desired { return a.wanted }

// SetSynced marks that every object that existed at the start is known.
func (a *Source) SetSynced() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.synced = true
	if a.newest != nil && a.pending == nil { // All that there was is known, and clients of the pod before wait.
		a.pending = time.AfterFunc(0, a.Offer)
	}
}

// Run watches until the context ends. It offers nothing before it knows every object, because a data server that has
// just started would remove exports that are not known yet.
func (a *Source) Run(ctx context.Context) error {
	var known []toolscache.InformerSynced
	for _, kind := range []struct {
		object  client.Object
		handler toolscache.ResourceEventHandlerFuncs
	}{
		// The deletion of the DataServer changes nothing: ganesha keeps its configuration until the pod ends.
		{&internalv1.DataServer{}, rewound.Watch(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    a.ObjectChanged,
			UpdateFunc: func(_, object any) { a.ObjectChanged(object) },
			DeleteFunc: a.gone,
		}, a.Rewound)},
		{&internalv1.ShareExport{}, rewound.Watch(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    a.ExportSeen,
			UpdateFunc: func(_, object any) { a.ExportSeen(object) },
			DeleteFunc: a.ExportGone,
		}, a.Rewound)},
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
			a.SetSynced()
		}
	}()
	return a.cache.Start(ctx)
}

// Rewound has the next state of an object taken although it is earlier than the known one: the API's database was restored from a backup.
func (a *Source) Rewound(object client.Object) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if known := a.exports[object.GetName()]; known != nil && known.UID == object.GetUID() || a.newest != nil && a.newest.UID == object.GetUID() {
		a.rewound[object.GetUID()] = true
	}
}

// isOlder tells whether a state of an object is older than the known one, or an echo of it. a.mutex is held.
func (a *Source) isOlder(object, known client.Object) bool {
	if a.rewound[object.GetUID()] {
		delete(a.rewound, object.GetUID())
		return false
	}
	return known.GetUID() == object.GetUID() && !newer(object, known)
}

// ObjectChanged takes a DataServer from the watch.
func (a *Source) ObjectChanged(object any) {
	dataServer, ok := object.(*internalv1.DataServer)
	if !ok {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.writing {
		a.early = dataServer
		return
	}
	a.take(dataServer)
}

// take stores a DataServer if it is newer, and offers it if its specification differs. a.mutex is held.
func (a *Source) take(dataServer *internalv1.DataServer) {
	known := a.newest
	if known != nil && a.isOlder(dataServer, known) {
		return // An echo of an own write, or older than its answer.
	}
	a.newest, a.deleted = dataServer.DeepCopy(), false
	if known != nil && known.UID == dataServer.UID && known.Generation == dataServer.Generation &&
		equality.Semantic.DeepEqual(known.Status, dataServer.Status) {
		return // Only metadata changed, such as labels.
	}
	a.changed()
}

func (a *Source) gone(any) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.deleted, a.early = true, nil
}

// IsDeleted reports whether the DataServer is being deleted or is deleted. It never waits for a write.
func (a *Source) IsDeleted() bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.early != nil {
		return a.early.DeletionTimestamp != nil
	}
	return a.deleted || a.newest != nil && a.newest.DeletionTimestamp != nil
}

// ExportSeen takes an export. A change of the status alone starts no pass: this process wrote it. A status from another writer is corrected by
// the next pass.
func (a *Source) ExportSeen(object any) {
	export, ok := object.(*internalv1.ShareExport)
	if !ok {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	known := a.exports[export.Name]
	if known != nil && a.isOlder(export, known) {
		return
	}
	a.exports[export.Name] = export
	if known == nil || known.UID != export.UID || known.Generation != export.Generation ||
		known.DeletionTimestamp.IsZero() != export.DeletionTimestamp.IsZero() {
		a.changed()
	}
}

// ExportGone takes the deletion of an export from the watch.
func (a *Source) ExportGone(object any) {
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

// changed offers the desired state when the changes have settled. a.mutex is held.
func (a *Source) changed() {
	if a.synced && a.newest != nil && a.pending == nil {
		a.pending = time.AfterFunc(settle, a.Offer)
	}
}

// Offer puts the newest desired state into the channel, in place of one that was not taken.
func (a *Source) Offer() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.pending = nil
	select {
	case <-a.wanted:
	default:
	}
	a.wanted <- Desired{Server: a.newest.DeepCopy(), Exports: a.known()}
}

// known are the exports, the oldest first. They are never changed after they were stored. a.mutex is held.
func (a *Source) known() []*internalv1.ShareExport {
	return slices.SortedFunc(maps.Values(a.exports), func(x, y *internalv1.ShareExport) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), strings.Compare(x.Name, y.Name))
	})
}

// newer is true if a is a later version of the object than b.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || order > 0
}

// Report patches the status subresource by a merge patch with what changed; no change, no write. Writes are made one after the other, and
// build gets the status as the last one left it.
func (a *Source) Report(ctx context.Context, build func(internalv1.DataServerStatus) internalv1.DataServerStatus) error {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for another write of the DataServer's status: %w", ctx.Err())
	}
	before := a.beginWrite()
	if before == nil {
		return nil
	}
	after, err := a.writeStatus(ctx, before, build(*before.Status.DeepCopy()))
	a.endWrite(before, after)
	return err
}

// beginWrite returns the DataServer to write to; nil if there is none. endWrite must follow.
func (a *Source) beginWrite() *internalv1.DataServer {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.writing = a.newest != nil
	return a.newest
}

// writeStatus returns the DataServer as the API server has it after the write, nil if nothing was written.
func (a *Source) writeStatus(ctx context.Context, before *internalv1.DataServer, status internalv1.DataServerStatus) (*internalv1.DataServer, error) {
	if equality.Semantic.DeepEqual(before.Status, status) {
		return nil, nil
	}
	after := before.DeepCopy()
	after.Status = status
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	patch := client.MergeFrom(before)
	if !equality.Semantic.DeepEqual(before.Status.VolumeIDs, after.Status.VolumeIDs) {
		// A stale view must not remove the identities of volumes.
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if err := a.client.Status().Patch(ctx, after, patch); err != nil {
		return nil, fmt.Errorf("writing the status of DataServer %s: %w", before.Name, err)
	}
	return after, nil
}

// endWrite takes the answer of a write, if there is one, and then a newer DataServer that the watch delivered during
// the write.
func (a *Source) endWrite(before, after *internalv1.DataServer) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.writing = false
	switch {
	case after == nil:
	case after.Generation == before.Generation:
		a.newest = after
	default:
		// A newer spec is on its way, and its event must not be taken for an echo.
		a.newest = before.DeepCopy()
		a.newest.Status = after.Status
	}
	if early := a.early; early != nil {
		a.early = nil
		a.take(early)
	}
}

// ReportExports writes the statuses of those exports whose status is not what build makes of it.
func (a *Source) ReportExports(ctx context.Context, build func(*internalv1.ShareExport) internalv1.ShareExportStatus) error {
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

func (a *Source) writeExport(ctx context.Context, before, after *internalv1.ShareExport) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	// The lock protects a newer object with this name.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := a.client.Status().Patch(ctx, after, patch); apierrors.IsNotFound(err) {
		return nil // It is gone; the watch reports it.
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

// ShareOf is the key of the share that an export is of.
func ShareOf(export *internalv1.ShareExport) string { return export.Spec.FileShareRef.Name }

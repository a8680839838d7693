package namespace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/directories"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/rewound"
)

// watcher feeds the tree, and reports changes to the leader.
type watcher struct {
	tree   *tree.Tree
	leader *directories.Leader
	cache  cache.Cache
	own    ownAddresses

	// identified is closed when the first data server is known.
	identified chan struct{}
	once       sync.Once
	// synced is nil until the watches are set up.
	synced atomic.Pointer[[]toolscache.InformerSynced]
	// addressesChanged is called when data servers come, go or move.
	addressesChanged func()
	// serverComes is called when a data server reports that it starts or serves, and did not before, or not from that pod. reports are what they
	// reported last, by data server; only the handler of data servers uses them.
	serverComes func()
	reports     map[string]string
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), internalv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register the API's kinds: %w", err)
	}
	return scheme, nil
}

// newWatcher makes a watcher of one FileServer's objects in one namespace.
func newWatcher(config *rest.Config, scheme *runtime.Scheme, o *Options, t *tree.Tree, leader *directories.Leader) (*watcher, error) {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.FileServerLabel: o.FileServer})}
	c, err := cache.New(config, cache.Options{
		Scheme:            scheme,
		DefaultNamespaces: map[string]cache.Config{o.KubeNamespace: {}},
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.FileServer{}:        {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, o.FileServer), Transform: slimFileServer},
			&internalv1.DataServer{}:      ours,
			&internalv1.ShareExport{}:     {Label: ours.Label, Transform: slimExport},
			&internalv1.ShareDirectory{}:  ours,
			&internalv1.ShareAttachment{}: ours,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to watch the API: %w", err)
	}
	return &watcher{tree: t, leader: leader, cache: c, identified: make(chan struct{}), reports: map[string]string{}}, nil
}

// slimExport leaves out an export's access rules, which are read of the share: the longest take some 130 KiB of memory, on
// every data server again.
func slimExport(object any) (any, error) {
	if export, ok := object.(*internalv1.ShareExport); ok {
		export.ManagedFields, export.Spec.Access = nil, nil
	}
	return object, nil
}

// slimFileServer leaves all out of a FileServer but the addresses of its namespace servers.
func slimFileServer(object any) (any, error) {
	if o, ok := object.(*v1alpha1.FileServer); ok {
		return &v1alpha1.FileServer{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
			Status:     v1alpha1.FileServerStatus{Address: o.Status.Address, OutsideAddresses: o.Status.OutsideAddresses},
		}, nil
	}
	return object, nil
}

// run watches until the context ends.
func (w *watcher) run(ctx context.Context) error {
	var synced []toolscache.InformerSynced
	for _, kind := range []struct {
		object  client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&v1alpha1.FileServer{}, handler(w.own.set, w.own.forget)},
		{&internalv1.DataServer{}, handler(w.setServer, w.deleteServer)},
		{&internalv1.ShareExport{}, handler(w.setExport, w.deleteExport)},
		{&v1alpha1.FileShare{}, handler(
			func(o *v1alpha1.FileShare) { w.setOwnShare(o, w.setShare) },
			func(o *v1alpha1.FileShare) { w.setOwnShare(o, w.deleteShare) })},
		{&internalv1.ShareAttachment{}, handler(
			func(o *internalv1.ShareAttachment) { w.setShare(fleet.ShareOfAttachment(o)) },
			func(o *internalv1.ShareAttachment) { w.deleteShare(fleet.ShareOfAttachment(o)) })},
		{&internalv1.ShareDirectory{}, rewound.Watch(handler(w.setDirectory, w.deleteDirectory), w.restoreDirectory)},
	} {
		// Not blocking: the cache is started below.
		informer, err := w.cache.GetInformer(ctx, kind.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind.object, err)
		}
		registration, err := informer.AddEventHandler(kind.handler)
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind.object, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	w.synced.Store(&synced)
	if err := w.cache.Start(ctx); err != nil {
		return fmt.Errorf("watch the API: %w", err)
	}
	return nil
}

// errNotSynced says that the tree does not have everything yet.
var errNotSynced = errors.New("the API's objects have not all been read yet")

// check tells whether the tree has all that was there when the watch began.
func (w *watcher) check() error {
	all := w.synced.Load()
	if all == nil {
		return errNotSynced
	}
	for _, synced := range *all {
		if !synced() {
			return errNotSynced
		}
	}
	return nil
}

// handler turns informer events of one kind into calls.
func handler[T client.Object](set, gone func(T)) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if typed, ok := o.(T); ok {
				set(typed)
			}
		},
		UpdateFunc: func(_, o any) {
			if typed, ok := o.(T); ok {
				set(typed)
			}
		},
		DeleteFunc: func(o any) {
			if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if typed, ok := o.(T); ok {
				gone(typed)
			}
		},
	}
}

func (w *watcher) setServer(o *internalv1.DataServer) {
	before, known := w.tree.Server(o.Name)
	w.tree.SetServer(o)
	if !known || before.Address != o.Spec.Address {
		w.addressesChanged()
	}
	if report := reportOf(o); report != w.reports[o.Name] {
		w.reports[o.Name] = report
		if o.HoldsPort() {
			w.serverComes()
		}
	}
	w.once.Do(func() { close(w.identified) })
	w.leader.ServerChanged(o.Name)
}

// reportOf is what tells one report of a data server from the next.
func reportOf(o *internalv1.DataServer) string {
	ready := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return ""
	}
	return fmt.Sprint(o.Status.PodUID, ready.Status, ready.Reason)
}

func (w *watcher) deleteServer(o *internalv1.DataServer) {
	w.tree.DeleteServer(o.Name)
	delete(w.reports, o.Name)
	w.addressesChanged()
}

func (w *watcher) setExport(o *internalv1.ShareExport) {
	if w.tree.SetExport(o) {
		w.leader.ShareChanged(o.Spec.FileShareRef.Name)
	}
}

func (w *watcher) deleteExport(o *internalv1.ShareExport) {
	if w.tree.DeleteExport(o.Spec.DataServerRef.Name, o.Spec.FileShareRef.Name) {
		w.leader.ShareChanged(o.Spec.FileShareRef.Name)
	}
}

// setOwnShare hands on a FileShare of the FileServer's Kubernetes namespace, unless it names the FileServer of another namespace.
func (w *watcher) setOwnShare(o *v1alpha1.FileShare, set func(fleet.Share)) {
	if !naming.IsForeign(o) {
		set(fleet.ShareOf(o))
	}
}

func (w *watcher) setShare(o fleet.Share) {
	for _, name := range append(w.tree.SetShare(o), o.Key) {
		w.leader.ShareChanged(name)
	}
}

func (w *watcher) deleteShare(o fleet.Share) {
	for _, name := range w.tree.DeleteShare(o.Key) {
		w.leader.ShareChanged(name)
	}
}

func (w *watcher) setDirectory(o *internalv1.ShareDirectory) {
	w.tree.SetDirectory(o)
	w.leader.Confirm(o)
	w.leader.DirectoryChanged(o.Spec.FileShareRef.Name, o.Spec.Path)
}

// restoreDirectory takes what the API has again after its database was restored. The tree would ignore it as older than what it knows.
func (w *watcher) restoreDirectory(o client.Object) {
	if directory, ok := o.(*internalv1.ShareDirectory); ok {
		before, known := w.tree.Directory(directory.Spec.FileShareRef.Name, directory.Spec.Path)
		w.tree.RestoreDirectory(directory)
		if known {
			w.leader.DirectoryRestored(before, directory)
		}
	}
}

func (w *watcher) deleteDirectory(o *internalv1.ShareDirectory) {
	w.leader.DirectoryDeleted(o)
}

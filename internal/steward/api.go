package steward

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
)

// request is what the API asks of the steward. It is read-only: the objects belong to the cache.
type request struct {
	// steward is nil if there is none.
	steward *internalv1.Steward
	// storages are the FileServer's ShareStorages, by name; those that have a path already come first.
	storages []*internalv1.ShareStorage
	// servers are the FileServer's data servers, by name.
	servers []*internalv1.DataServer
	// snapshots are the ShareSnapshots of its shares, by name.
	snapshots []*internalv1.ShareSnapshot
}

// api is the steward's part of the API: its own object, its FileServer's ShareStorages, ShareSnapshots and DataServers, and the one Secret.
type api struct {
	namespace, name string
	cache           cache.Cache
	client          client.Client
	// changed is notified of changed objects, asked of requests to fence, snapped of changed snapshots.
	changed, asked, snapped chan struct{}
}

func newAPI(config *rest.Config, namespace, name string) (*api, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{internalv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering the API: %w", err)
		}
	}
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.FileServerLabel: name})}
	watched, err := cache.New(config, cache.Options{
		Scheme:            scheme,
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&internalv1.Steward{}:       {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)},
			&internalv1.ShareStorage{}:  ours,
			&internalv1.ShareSnapshot{}: ours,
			&internalv1.DataServer{}:    ours,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching the API: %w", err)
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API: %w", err)
	}
	return &api{namespace: namespace, name: name, cache: watched, client: writer, changed: make(chan struct{}, 1), asked: make(chan struct{}, 1), snapped: make(chan struct{}, 1)}, nil
}

func tell(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default: // A notification is pending already.
	}
}

// run watches until the context ends.
func (a *api) run(ctx context.Context) error {
	for _, kind := range []client.Object{&internalv1.Steward{}, &internalv1.ShareStorage{}, &internalv1.ShareSnapshot{}, &internalv1.DataServer{}} {
		informer, err := a.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { a.seen(nil, object) },
			UpdateFunc: a.seen,
			DeleteFunc: func(object any) { a.seen(nil, object) },
		})
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	if err := a.cache.Start(ctx); err != nil {
		return fmt.Errorf("watching the API: %w", err)
	}
	return nil
}

// seen notifies the channel that an object concerns. An update counts only if it changes the specification or deletes the
// object, as most status changes are the steward's own. Each change of a DataServer counts, as the requests to fence are in
// its status.
func (a *api) seen(before, after any) {
	if _, isServer := after.(*internalv1.DataServer); isServer {
		tell(a.asked)
	}
	if old, ok := before.(client.Object); ok {
		now, ok := after.(client.Object)
		if ok && old.GetUID() == now.GetUID() && old.GetGeneration() == now.GetGeneration() && (old.GetDeletionTimestamp() == nil) == (now.GetDeletionTimestamp() == nil) {
			return
		}
	}
	if _, isSteward := after.(*internalv1.Steward); isSteward {
		tell(a.asked)
	}
	if _, isSnapshot := after.(*internalv1.ShareSnapshot); isSnapshot {
		tell(a.snapped)
		return
	}
	tell(a.changed)
}

// read returns what the API asks for now. It waits until the cache is in sync.
func (a *api) read(ctx context.Context) (request, error) {
	var w request
	if !a.cache.WaitForCacheSync(ctx) {
		return w, ctx.Err()
	}
	var stewards internalv1.StewardList
	var storages internalv1.ShareStorageList
	var servers internalv1.DataServerList
	var snapshots internalv1.ShareSnapshotList
	for _, list := range []client.ObjectList{&stewards, &storages, &servers, &snapshots} {
		if err := a.cache.List(ctx, list, client.InNamespace(a.namespace), client.UnsafeDisableDeepCopy); err != nil {
			return w, fmt.Errorf("reading %T: %w", list, err)
		}
	}
	for i := range stewards.Items {
		w.steward = &stewards.Items[i]
	}
	for i := range storages.Items {
		if storages.Items[i].Spec.FileServerRef.Name == a.name {
			w.storages = append(w.storages, &storages.Items[i])
		}
	}
	for i := range snapshots.Items {
		if snapshots.Items[i].Spec.FileServerRef.Name == a.name {
			w.snapshots = append(w.snapshots, &snapshots.Items[i])
		}
	}
	for i := range servers.Items {
		if servers.Items[i].Spec.FileServerRef.Name == a.name {
			w.servers = append(w.servers, &servers.Items[i])
		}
	}
	w.sort()
	return w, nil
}

// sort puts everything into the order in which it is handled.
func (w *request) sort() {
	slices.SortFunc(w.storages, func(x, y *internalv1.ShareStorage) int {
		if (x.Status.Path != "") != (y.Status.Path != "") {
			if x.Status.Path != "" {
				return -1
			}
			return 1
		}
		return strings.Compare(x.Name, y.Name)
	})
	slices.SortFunc(w.snapshots, func(x, y *internalv1.ShareSnapshot) int { return strings.Compare(x.Name, y.Name) })
	slices.SortFunc(w.servers, func(x, y *internalv1.DataServer) int { return strings.Compare(x.Name, y.Name) })
}

// stillEnding checks without the cache that a ShareStorage is still the one that is being deleted. The removal can't be
// undone, and another steward of this FileServer may have worked while this one was cut off.
func (a *api) stillEnding(ctx context.Context, storage *internalv1.ShareStorage) error {
	now := &internalv1.ShareStorage{}
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(storage), now); err != nil {
		return fmt.Errorf("reading the ShareStorage again before its subvolume is removed: %w", err)
	}
	if now.UID != storage.UID || now.DeletionTimestamp == nil || now.Generation != storage.Generation {
		return fmt.Errorf("ShareStorage %s was replaced or changed meanwhile", storage.Name)
	}
	return nil
}

// reportStorage writes the status of a ShareStorage if it has changed.
func (a *api) reportStorage(ctx context.Context, before *internalv1.ShareStorage, status internalv1.ShareStorageStatus) error {
	after := before.DeepCopy()
	after.Status = status
	if equality.Semantic.DeepEqual(before.Status, status) {
		return nil
	}
	// The optimistic lock prevents a write to a new object of the same name.
	if err := a.client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of ShareStorage %s: %w", before.Name, err)
	}
	return nil
}

// reportSteward writes the status of the Steward if it has changed.
func (a *api) reportSteward(ctx context.Context, before *internalv1.Steward, status internalv1.StewardStatus) error {
	after := before.DeepCopy()
	after.Status = status
	if equality.Semantic.DeepEqual(before.Status, status) {
		return nil
	}
	if err := a.client.Status().Patch(ctx, after, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Steward %s: %w", before.Name, err)
	}
	return nil
}

// reportFenced writes the answer to a data server's request to fence.
func (a *api) reportFenced(ctx context.Context, before *internalv1.DataServer, answer internalv1.FenceAnswer) error {
	after := before.DeepCopy()
	after.Status.Fenced = answer
	if err := a.client.Status().Patch(ctx, after, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("answering data server %s: %w", before.Name, err)
	}
	return nil
}

// reportPodFences writes the answers to the requests that the Steward has, if they have changed.
func (a *api) reportPodFences(ctx context.Context, before *internalv1.Steward, answers map[string]internalv1.PodFenceAnswer) error {
	after := before.DeepCopy()
	after.Status.Fences = reportable(answers)
	return a.patchSteward(ctx, before, after)
}

// reportClients writes the Ceph clients of data servers if they have changed.
func (a *api) reportClients(ctx context.Context, before *internalv1.Steward, clients []internalv1.DataServerClients) error {
	after := before.DeepCopy()
	after.Status.Clients = clients
	return a.patchSteward(ctx, before, after)
}

func (a *api) patchSteward(ctx context.Context, before, after *internalv1.Steward) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	if err := a.client.Status().Patch(ctx, after, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Steward %s: %w", before.Name, err)
	}
	return nil
}

// writeSecret replaces the content of the Secret for data servers. The steward has no permission to read the Secret, so it
// must know the whole content.
func (a *api) writeSecret(ctx context.Context, steward *internalv1.Steward, entries map[string][]byte) error {
	return a.client.Update(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: steward.Spec.Ceph.SharesSecretName, Namespace: a.namespace,
			Labels: steward.Labels, OwnerReferences: steward.OwnerReferences,
		},
		Type: corev1.SecretTypeOpaque,
		Data: entries,
	})
}

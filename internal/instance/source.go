package instance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// writeTimeout bounds a write of the status; it is tried again.
const writeTimeout = 15 * time.Second

// apiRecord is the data server's record in the API: it tells of changes, and takes the status.
type apiRecord struct {
	client  client.Client
	cache   cache.Cache
	records chan *internalv1.DataServer

	// mutex is held during a write too: its echo may be faster than its answer, and must wait to be known as one.
	mutex  sync.Mutex
	newest *internalv1.DataServer // As far as is known; nil until the first is seen.
}

// newAPIRecord watches the one record of that name, and nothing else.
func newAPIRecord(config *rest.Config, namespace, name string) (*apiRecord, error) {
	scheme := runtime.NewScheme()
	if err := internalv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the API: %w", err)
	}
	watched, err := cache.New(config, cache.Options{
		Scheme:            scheme,
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		ByObject: map[client.Object]cache.ByObject{
			&internalv1.DataServer{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching the DataServer: %w", err)
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API: %w", err)
	}
	return &apiRecord{client: writer, cache: watched, records: make(chan *internalv1.DataServer, 1)}, nil
}

// run watches until the context ends.
func (a *apiRecord) run(ctx context.Context) error {
	informer, err := a.cache.GetInformer(ctx, &internalv1.DataServer{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching the DataServer: %w", err)
	}
	// A record that is deleted changes nothing: ganesha goes on with what it has until the pod goes.
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { a.seen(object) },
		UpdateFunc: func(_, object any) { a.seen(object) },
	})
	if err != nil {
		return fmt.Errorf("watching the DataServer: %w", err)
	}
	return a.cache.Start(ctx)
}

func (a *apiRecord) seen(object any) {
	record, ok := object.(*internalv1.DataServer)
	if !ok {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	known := a.newest
	if known != nil && known.UID == record.UID && !newer(record, known) {
		return // An echo of this manager's own write, or older than its answer.
	}
	a.newest = record.DeepCopy()
	if known != nil && known.UID == record.UID && known.Generation == record.Generation &&
		equality.Semantic.DeepEqual(known.Status, record.Status) {
		return // Labels or the like.
	}
	// Only the newest counts: replace one that was not taken yet.
	select {
	case <-a.records:
	default:
	}
	a.records <- record.DeepCopy()
}

// newer is true if a is a later version of the object than b.
func newer(a, b *internalv1.DataServer) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order > 0
}

// report patches the status subresource by a merge patch with what changed; no change, no write.
func (a *apiRecord) report(ctx context.Context, build func(internalv1.DataServerStatus) internalv1.DataServerStatus) error {
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
	if err := a.client.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
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

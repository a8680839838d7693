package fileshare

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/test/builders"
)

// indexes gives a client in memory the indexes of the cache for FileShares.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, object client.Object, field string, value client.IndexerFunc) error {
	if _, ok := object.(*v1alpha1.FileShare); ok {
		i.WithIndex(object, field, value)
	}
	return nil
}

// A pass over all shares of a FileServer is thousands of writes.
func TestATenantThatChangesItsPortsAllTheTimeMakesOnePassInFiveMinutes(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, internalv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		builders.FileShare("storage", "a", "fs").Build(), builders.FileShare("storage", "b", "fs").Build(), builders.FileShare("storage", "c", "other").Build())
	if err := index.Register(t.Context(), indexes{api}); err != nil {
		t.Fatal(err)
	}
	events := (&Reconciler{Client: api.Build()}).portsOfAttachments()
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](),
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Clock: clock})
	defer queue.ShutDown()
	attachment := func(ports v1alpha1.SourcePorts) *internalv1.ShareAttachment {
		return &internalv1.ShareAttachment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "tenant.data"},
			Spec: internalv1.ShareAttachmentSpec{
				FileServerRef: internalv1.FileServerReference{Name: "fs"}, Access: []v1alpha1.AccessRule{{SourcePorts: ports}},
			},
		}
	}
	strict, loose := attachment(v1alpha1.SourcePortsReserved), attachment(v1alpha1.SourcePortsAny)
	// passes waits for what the queue's own goroutine moves.
	passes := func(want int, when string) {
		t.Helper()
		for range 100 {
			if queue.Len() == want && want > 0 {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		if queue.Len() != want {
			t.Fatalf("%s: %d passes, want %d", when, queue.Len(), want)
		}
	}
	events.Create(t.Context(), event.CreateEvent{Object: loose}, queue)
	events.Create(t.Context(), event.CreateEvent{Object: strict}, queue)
	for range 20 {
		events.Update(t.Context(), event.UpdateEvent{ObjectOld: strict, ObjectNew: loose}, queue)
		clock.Step(5 * time.Second)
		events.Update(t.Context(), event.UpdateEvent{ObjectOld: loose, ObjectNew: strict}, queue)
		clock.Step(5 * time.Second)
	}
	passes(0, "within five minutes")
	clock.Step(portsDelay - 200*time.Second)
	passes(2, "after them")
}

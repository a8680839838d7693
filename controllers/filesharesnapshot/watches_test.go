package filesharesnapshot

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/test/builders"
)

// A tenant can make thousands of snapshots of a share that can have none, and directories all the time.
func TestSnapshotsHearOfAShareOnlyWhatTheyReadOfIt(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.FileShare)
		want   bool
	}{
		"a directory": {func(s *v1alpha1.FileShare) { s.Status.Directories.Count = ptr.To(int32(7)) }, false},
		"a message while it is served": {func(s *v1alpha1.FileShare) {
			conditions.SetSummary(&s.Status.Conditions, 1, noon, conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "7 directories"))
		}, false},
		"it ends":             {func(s *v1alpha1.FileShare) { s.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }, true},
		"it has no place now": {func(s *v1alpha1.FileShare) { s.Status.Mount.Address = "" }, true},
		"it is stalled": {func(s *v1alpha1.FileShare) {
			conditions.SetSummary(&s.Status.Conditions, 1, noon, conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonNamespaceNotAllowed, "ask"))
		}, true},
	} {
		before := seen().share
		after := before.DeepCopy()
		tc.change(after)
		if got := shareChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestASnapshotThatCantBeMadeAsksTheAPIForNothing(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, internalv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	o := seen()
	o.snapshot.Finalizers = []string{v1alpha1.SnapshotFinalizer}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o.snapshot, o.share, builders.FileServer("ml", "training").Build()).WithStatusSubresource(o.snapshot).
		WithIndex(&internalv1.ShareSnapshot{}, "howdah.snapshot", func(client.Object) []string { return nil }).Build()
	asked := 0
	live := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			asked++
			return c.Get(ctx, key, object, opts...)
		},
	})
	r := &Reconciler{Client: c, Live: live, Clock: testingclock.NewFakePassiveClock(noon), Events: events.NewFakeRecorder(10)}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o.snapshot)})
	if err != nil {
		t.Fatal(err)
	}
	if asked > 0 || result.RequeueAfter != 10*time.Minute {
		t.Errorf("%d requests, and again in %s", asked, result.RequeueAfter)
	}
}

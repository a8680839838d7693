package filesharesnapshot

import (
	"context"
	"strings"
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

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

// tenancy is namespace team with the UID "this", whose snapshot "now" of share "data" has a ShareSnapshot that a namespace with another UID made.
func tenancy(t *testing.T, handedOver bool, snapshot *v1alpha1.FileShareSnapshot, uid string) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, internalv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	fileServer := builders.FileServer("ml", "training").Build()
	if handedOver {
		fileServer.Spec.DataHandovers = []v1alpha1.DataHandover{{Namespace: "team", NamespaceUID: "this"}}
	}
	left := stored(conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "the snapshot is there"))
	left.Namespace, left.Name, left.Finalizers = "ml", "team.data.now", []string{v1alpha1.StoredSnapshotFinalizer}
	left.Spec.FileShareRef.Name, left.Spec.SnapshotName = "team.data", "now"
	left.Annotations = map[string]string{v1alpha1.OwnerAnnotation: naming.Owner("FileShareSnapshot", "team", "now"), v1alpha1.NamespaceUIDAnnotation: uid}
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "this"}}
	owners := func(o client.Object) []string { return []string{o.GetAnnotations()[v1alpha1.OwnerAnnotation]} }
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(fileServer, left, team, snapshot).WithStatusSubresource(snapshot).
		WithIndex(&internalv1.ShareSnapshot{}, "howdah.snapshot", owners).Build()
}

func newSnapshot() *v1alpha1.FileShareSnapshot {
	return &v1alpha1.FileShareSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "now", Finalizers: []string{v1alpha1.SnapshotFinalizer}},
		Spec:       v1alpha1.FileShareSnapshotSpec{FileShareRef: v1alpha1.FileShareReference{Name: "data"}},
	}
}

// A FileShare could be made from it, with the data of the earlier namespace.
func TestASnapshotOfAnEarlierNamespaceIsNotTakenOver(t *testing.T) {
	for name, tc := range map[string]struct {
		uid        string
		handedOver bool
		change     func(*v1alpha1.FileShareSnapshot)
		ready      bool
		// kept: its ShareSnapshot outlives it.
		kept bool
	}{
		"an earlier namespace made it":       {"earlier", false, nil, false, true},
		"which was handed over":              {"earlier", true, nil, true, false},
		"the namespace itself made it":       {"this", false, nil, true, false},
		"it is older than the rule":          {"", false, nil, true, false},
		"it was found to be of this already": {"earlier", false, func(s *v1alpha1.FileShareSnapshot) { s.Status.ReadyTime = ptr.To(metav1.NewTime(noon)) }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := newSnapshot()
			if tc.change != nil {
				tc.change(snapshot)
			}
			c := tenancy(t, tc.handedOver, snapshot, tc.uid)
			r := &Reconciler{Client: c, Live: c, Clock: testingclock.NewFakePassiveClock(noon), Events: events.NewFakeRecorder(10)}
			key := client.ObjectKeyFromObject(snapshot)
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			if err != nil || c.Get(t.Context(), key, snapshot) != nil {
				t.Fatal(err)
			}
			if conditions.IsTrue(snapshot.Status.Conditions, v1alpha1.ConditionReady) != tc.ready {
				t.Errorf("%+v", snapshot.Status.Conditions)
			}
			if message := conditions.Message(snapshot.Status.Conditions, v1alpha1.ConditionReady); !tc.ready &&
				(!strings.Contains(message, "spec.dataHandovers: [{namespace: team, namespaceUID: this}]") || result.RequeueAfter != time.Minute) {
				t.Errorf("again in %s: %s", result.RequeueAfter, message)
			}
			if err := c.Delete(t.Context(), snapshot); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			left := &internalv1.ShareSnapshot{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "team.data.now"}, left); err != nil {
				t.Fatal(err)
			}
			if kept := left.DeletionTimestamp == nil; kept != tc.kept {
				t.Errorf("kept: %v", kept)
			}
		})
	}
}

func TestANewSnapshotNamesItsNamespace(t *testing.T) {
	o := seen()
	o.fileServer = builders.FileServer("ml", "training").Provisioned().Build()
	o.snapshot.Namespace, o.share.Namespace, o.share.Spec.FileServerRef.Namespace, o.namespaceUID = "team", "team", "ml", "this"
	if d := decide(o); d.create == nil || d.create.Annotations[v1alpha1.NamespaceUIDAnnotation] != "this" {
		t.Errorf("%+v", d)
	}
	o.snapshot.Namespace, o.share.Namespace = "ml", "ml"
	if d := decide(o); d.create == nil || d.create.Annotations[v1alpha1.NamespaceUIDAnnotation] != "" {
		t.Errorf("beside its FileServer: %+v", d)
	}
}

// An operator that watches some namespaces has nothing of others in its cache. That a snapshot is not there does not mean that it is lost, or removed.
func TestASnapshotInANamespaceThatIsNotWatchedIsNotGone(t *testing.T) {
	for name, ready := range map[string]*metav1.Time{"it was made": ptr.To(metav1.NewTime(noon)), "it was not made": nil} {
		t.Run(name, func(t *testing.T) {
			snapshot := newSnapshot()
			snapshot.Status.ReadyTime = ready
			all := tenancy(t, false, snapshot, "this")
			share := builders.FileShare("team", "data", "training").Build()
			share.Spec.FileServerRef.Namespace = "ml"
			if err := all.Create(t.Context(), share); err != nil {
				t.Fatal(err)
			}
			cached := interceptor.NewClient(all, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					err := c.List(ctx, list, options...)
					if stored, is := list.(*internalv1.ShareSnapshotList); is {
						stored.Items = nil
					}
					return err
				},
			})
			r := &Reconciler{Client: cached, Live: all, Clock: testingclock.NewFakePassiveClock(noon), Events: events.NewFakeRecorder(10), WatchNamespaces: []string{"team"}}
			key := client.ObjectKeyFromObject(snapshot)
			pass := func() error {
				t.Helper()
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
				return all.Get(t.Context(), key, snapshot)
			}
			expect := func() {
				t.Helper()
				reason, message := conditions.Reason(snapshot.Status.Conditions, v1alpha1.ConditionReady), conditions.Message(snapshot.Status.Conditions, v1alpha1.ConditionReady)
				if reason != v1alpha1.ReasonNamespaceNotWatched || !strings.Contains(message, `namespace "ml"`) || !strings.Contains(message, "watchNamespaces") {
					t.Errorf("%s: %s", reason, message)
				}
			}
			if err := pass(); err != nil {
				t.Fatal(err)
			}
			expect()
			if err := all.Delete(t.Context(), snapshot); err != nil {
				t.Fatal(err)
			}
			if err := pass(); (err == nil) != (ready != nil) || client.IgnoreNotFound(err) != nil {
				t.Fatalf("after its deletion: %v", err)
			}
			if ready != nil {
				expect()
			}
		})
	}
}

package fileshare

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/test/builders"
)

// allIndexes gives a client in memory the indexes of the cache for the kinds that its scheme has.
type allIndexes struct {
	*fake.ClientBuilder
	scheme *runtime.Scheme
}

func (i allIndexes) IndexField(_ context.Context, object client.Object, field string, value client.IndexerFunc) error {
	if _, _, err := i.scheme.ObjectKinds(object); err == nil {
		i.WithIndex(object, field, value)
	}
	return nil
}

// tenancy is namespace team, made at noon with the UID "new", after the directory of its share s.
func tenancy(t *testing.T, objects ...client.Object) (*Reconciler, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, internalv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	fileServer := builders.FileServer("storage", "fs").Build()
	fileServer.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "new", CreationTimestamp: metav1.NewTime(noon)}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).WithObjects(append(objects, fileServer, team)...).
		WithStatusSubresource(&v1alpha1.FileShare{}, &internalv1.ShareDirectory{})
	if err := index.Register(t.Context(), allIndexes{builder, scheme}); err != nil {
		t.Fatal(err)
	}
	c := builder.Build()
	return &Reconciler{Client: c, Live: c, Applier: apply.New(c, c, FieldManager), Clock: testingclock.NewFakePassiveClock(noon.Add(time.Hour)), Events: events.NewFakeRecorder(100)}, c
}

// ofTeam is share s of namespace team, in its present state.
func ofTeam() *v1alpha1.FileShare {
	share := builders.FileShare("team", "s", "fs").OnNamespace("storage").ReclaimPolicy(v1alpha1.ReclaimDelete).Created(noon.Add(time.Minute)).Build()
	share.UID, share.Finalizers = "new-share", []string{v1alpha1.FileShareFinalizer}
	return share
}

// leftDirectory is what a share s of an earlier namespace team has on a data server.
func leftDirectory() *internalv1.ShareDirectory {
	directory := builders.ShareDirectory("storage", "fs", "team.s", "d", "fs-0")
	directory.Labels = map[string]string{v1alpha1.FileServerLabel: "fs", v1alpha1.FileShareLabel: "s", v1alpha1.FileShareNamespaceLabel: "team", v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	directory.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	directory.Status.State = internalv1.DirectoryReady
	return directory
}

// leftAttachment is the ShareAttachment of that share, which lost its finalizer while no operator looked.
func leftAttachment() *internalv1.ShareAttachment {
	earlier := ofTeam()
	earlier.UID = "old-share"
	attachment := desired.ShareAttachment(earlier)
	attachment.Spec.NamespaceUID, attachment.Spec.InventoryGeneration, attachment.Spec.Inventory = "old", 1, internalv1.InventoryComplete
	return attachment
}

func pass(t *testing.T, r *Reconciler, times int) {
	t.Helper()
	for range times {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "team", Name: "s"}}); err != nil {
			t.Fatal(err)
		}
	}
}

// expectKept checks that the directory is the earlier namespace's, and that the share is not attached.
func expectKept(t *testing.T, c client.Client, uid string) {
	t.Helper()
	kept := leftDirectory()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Fatal(err)
	}
	if !isRetained(kept) || kept.Annotations[v1alpha1.NamespaceUIDAnnotation] != uid {
		t.Errorf("the directory of namespace %s has labels %v and annotations %v", uid, kept.Labels, kept.Annotations)
	}
	var attachments internalv1.ShareAttachmentList
	if err := c.List(t.Context(), &attachments); err != nil || len(attachments.Items) > 0 {
		t.Errorf("attached: %+v, %v", attachments.Items, err)
	}
}

func expectRefused(t *testing.T, c client.Client) {
	t.Helper()
	share := ofTeam()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(share), share); err != nil {
		t.Fatal(err)
	}
	if reason := conditions.Reason(share.Status.Conditions, v1alpha1.FileSharePlaced); reason != v1alpha1.ReasonDataOfDeletedNamespace {
		t.Errorf("Placed is %s", reason)
	}
}

// A namespace can go without its shares' deletion: a person removed their finalizers while no operator ran.
func TestAShareDoesNotTakeOverTheAttachmentOfAnEarlierNamespace(t *testing.T) {
	r, c := tenancy(t, ofTeam(), leftDirectory(), leftAttachment())
	pass(t, r, 5)
	expectKept(t, c, "old")
	expectRefused(t, c)
}

func TestAShareThatIsDeletedAtOnceLeavesTheDataOfAnEarlierNamespace(t *testing.T) {
	r, c := tenancy(t, ofTeam(), leftDirectory(), leftAttachment())
	pass(t, r, 1)
	if err := c.Delete(t.Context(), ofTeam()); err != nil {
		t.Fatal(err)
	}
	pass(t, r, 5)
	expectKept(t, c, "old")
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "s"}, ofTeam()); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the share is still there: %v", err)
	}
}

// The cache of namespaces can be behind that of shares.
func TestAShareDoesNotTakeOverDataByAStaleNamespace(t *testing.T) {
	directory := leftDirectory()
	directory.Labels[v1alpha1.RetainedLabel] = v1alpha1.RetainedTrue
	bind(directory, "old")
	r, c := tenancy(t, ofTeam(), directory)
	stale, ok := c.(client.WithWatch)
	if !ok {
		t.Fatalf("%T", c)
	}
	r.Client = interceptor.NewClient(stale, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, object, opts...)
			if namespace, is := object.(*corev1.Namespace); is {
				namespace.UID = "old"
			}
			return err
		},
	})
	pass(t, r, 3)
	expectKept(t, c, "old")
	expectRefused(t, c)
}

// A share that is no longer allowed has no ShareAttachment. It can lose its finalizer all the same.
func TestWhatAShareThatWasNotAllowedLeftSaysWhichNamespaceItIsOf(t *testing.T) {
	young := leftDirectory()
	young.CreationTimestamp = metav1.NewTime(noon.Add(time.Minute))
	for uid, directory := range map[string]*internalv1.ShareDirectory{"unknown": leftDirectory(), "new": young} {
		r, c := tenancy(t, directory)
		pass(t, r, 2)
		expectKept(t, c, uid)
	}
}

package apply

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

// newShare is a share in an API server, and what is sent to it.
func newShare(t *testing.T) (client.Client, *v1alpha1.FileShare, *[]string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	sent := &[]string{}
	note := func(o client.Object, patch client.Patch) {
		data, err := patch.Data(o)
		if err != nil {
			t.Fatal(err)
		}
		*sent = append(*sent, string(data))
	}
	share := builders.FileShare("ns", "share", "fs").Access(v1alpha1.AccessReadWrite, v1alpha1.SquashNone, "10.0.0.0/8").Build()
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(share).WithStatusSubresource(share).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			note(o, patch)
			return c.Patch(ctx, o, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, what string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			note(o, patch)
			return c.SubResource(what).Patch(ctx, o, patch, opts...)
		},
	}).Build()
	return c, readShare(t, c), sent
}

func readShare(t *testing.T, c client.Client) *v1alpha1.FileShare {
	t.Helper()
	share := &v1alpha1.FileShare{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "share"}, share); err != nil {
		t.Fatal(err)
	}
	return share
}

// Only the difference of the statuses is sent, with integers as they are, and a later write knows the new version.
func TestAStatusIsSentAlone(t *testing.T) {
	c, before, sent := newShare(t)
	after := before.DeepCopy()
	after.Spec.Access = nil // That is of no matter.
	if err := (&Statuses{}).Write(t.Context(), c, before, after, time.Now()); err != nil || len(*sent) > 0 {
		t.Fatalf("without a difference: %v, %q", err, *sent)
	}
	const large = 1<<53 + 1
	after.Status.InventoryGeneration, after.Status.Directories.Count = large, ptr.To[int32](7)
	if err := (&Statuses{}).Write(t.Context(), c, before, after, time.Now()); err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"resourceVersion":"` + before.ResourceVersion + `"},"status":{"directories":{"count":7},"inventoryGeneration":9007199254740993}}`
	if len(*sent) != 1 || (*sent)[0] != want {
		t.Errorf("sent %q, want %s", *sent, want)
	}
	now := readShare(t, c)
	if now.Status.InventoryGeneration != large || len(now.Spec.Access) != 1 || after.ResourceVersion != now.ResourceVersion || after.ResourceVersion == before.ResourceVersion {
		t.Errorf("%+v; version %s", now, after.ResourceVersion)
	}
	stale := before.DeepCopy()
	stale.Status.InventoryGeneration = 1
	if err := (&Statuses{}).Write(t.Context(), c, before, stale, time.Now()); !apierrors.IsConflict(err) {
		t.Errorf("an object that changed: %v", err)
	}
}

func TestFinalizersOfOthersStay(t *testing.T) {
	c, share, _ := newShare(t)
	other := share.DeepCopy()
	other.Finalizers = []string{"example.org/other"}
	if err := c.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := AddFinalizer(t.Context(), c, share, "howdah.io/test"); !apierrors.IsConflict(err) {
		t.Errorf("a share that changed: %v", err)
	}
	share = readShare(t, c)
	for _, step := range []struct {
		do   func(context.Context, client.Client, client.Object, string) (bool, error)
		does bool
		want int
	}{{AddFinalizer, true, 2}, {AddFinalizer, false, 2}, {RemoveFinalizer, true, 1}, {RemoveFinalizer, false, 1}} {
		done, err := step.do(t.Context(), c, share, "howdah.io/test")
		now := readShare(t, c)
		if err != nil || done != step.does || len(now.Finalizers) != step.want || share.ResourceVersion != now.ResourceVersion || len(share.Finalizers) != step.want || now.Finalizers[0] != "example.org/other" {
			t.Errorf("%v, %v, %q, version %s of %s", done, err, now.Finalizers, share.ResourceVersion, now.ResourceVersion)
		}
	}
	if done, err := RemoveFinalizer(t.Context(), c, share, "example.org/other"); !done || err != nil || len(readShare(t, c).Finalizers) != 0 {
		t.Errorf("the last one: %v, %v", done, err)
	}
}

func TestAnObjectThatIsGoneHasNoFinalizer(t *testing.T) {
	c, share, _ := newShare(t)
	if err := c.Delete(t.Context(), &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "share"}}); err != nil {
		t.Fatal(err)
	}
	if done, err := AddFinalizer(t.Context(), c, share, "howdah.io/test"); done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
}

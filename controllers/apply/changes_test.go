package apply

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// newCluster has a pod and records what is written to it, in order.
func newCluster(t *testing.T, pods ...*corev1.Pod) (c client.Client, written *[]string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	written = &[]string{}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1.Pod{}).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			*written = append(*written, "patch "+o.GetName())
			return c.Patch(ctx, o, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, what string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			*written = append(*written, "patch "+what+" "+o.GetName())
			return c.SubResource(what).Patch(ctx, o, patch, opts...)
		},
	})
	for _, pod := range pods {
		builder = builder.WithObjects(pod)
	}
	return builder.Build(), written
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{"kept": "yes"}}}
}

func read(t *testing.T, c client.Client, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestAStatusIsWrittenBeforeTheRest(t *testing.T) {
	c, written := newCluster(t, newPod("a"))
	before := read(t, c, "a")
	before.Annotations = nil // The cache keeps less than the API server has.
	after := before.DeepCopy()
	after.Status.Phase, after.Labels = corev1.PodRunning, map[string]string{"new": "label"}
	if _, err := Execute(t.Context(), c, []Change{{Before: before, After: after}}); err != nil {
		t.Fatal(err)
	}
	if got := *written; len(got) != 2 || got[0] != "patch status a" || got[1] != "patch a" {
		t.Errorf("written: %q", got)
	}
	if got := read(t, c, "a"); got.Status.Phase != corev1.PodRunning || got.Labels["new"] != "label" || got.Annotations["kept"] != "yes" {
		t.Errorf("%+v", got)
	}
}

func TestNothingIsWrittenWithoutADifference(t *testing.T) {
	c, written := newCluster(t, newPod("a"))
	before := read(t, c, "a")
	if _, err := Execute(t.Context(), c, []Change{{Before: before, After: before.DeepCopy()}}); err != nil || len(*written) > 0 {
		t.Errorf("%v, written: %q", err, *written)
	}
}

func TestRaces(t *testing.T) {
	for name, tc := range map[string]struct {
		gone            bool
		race            Race
		conflict, found bool
	}{
		"changed, and no matter":        {race: RaceLost},
		"changed, and it matters":       {race: MustExistUnchanged, conflict: true},
		"changed, and it must exist":    {race: MustExist, conflict: true},
		"gone, and no matter":           {gone: true, race: RaceLost},
		"gone, and it may be":           {gone: true, race: MustExistUnchanged},
		"gone, and it must still exist": {gone: true, race: MustExist, found: true},
	} {
		c, _ := newCluster(t, newPod("a"))
		before := read(t, c, "a")
		other := before.DeepCopy()
		other.Labels = map[string]string{"by": "another"}
		err := c.Update(t.Context(), other)
		if tc.gone {
			err = errors.Join(err, c.Delete(t.Context(), other))
		}
		if err != nil {
			t.Fatal(err)
		}
		after := before.DeepCopy()
		after.Labels = map[string]string{"by": "us"}
		_, err = Execute(t.Context(), c, []Change{{Before: before, After: after, Race: tc.race}})
		if apierrors.IsConflict(err) != tc.conflict || apierrors.IsNotFound(err) != tc.found || err != nil && !tc.conflict && !tc.found {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStages(t *testing.T) {
	c, _ := newCluster(t, newPod("old"), newPod("there"))
	old := read(t, c, "old")
	created, err := Execute(t.Context(), c, []Change{{Create: newPod("new")}, {Create: newPod("there")}}, []Change{{Delete: old}})
	if err != nil || created != 2 {
		t.Errorf("%d created, %v", created, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("the old one: %v", err)
	}
	refused := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}} // It has no name.
	created, err = Execute(t.Context(), c, []Change{{Create: refused}}, []Change{{Delete: read(t, c, "new")}})
	if err == nil || created != 0 {
		t.Errorf("%d created, %v", created, err)
	}
	read(t, c, "new") // A later stage is not written after an error.
}

func TestAFinalizerIsReleased(t *testing.T) {
	pod := newPod("a")
	pod.Finalizers = []string{"howdah.io/test", "example.org/other"}
	c, _ := newCluster(t, pod)
	held := read(t, c, "a")
	if _, err := Execute(t.Context(), c, []Change{{Release: held, Finalizer: "howdah.io/test"}}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c, "a").Finalizers; len(got) != 1 || got[0] != "example.org/other" {
		t.Errorf("%q", got)
	}
	if len(held.Finalizers) != 2 {
		t.Error("the object of the cache was changed")
	}
}

package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// What follows from an earlier state of an object must not undo what others have written since.
func TestAChildThatFollowsFromItselfIsOnlyWrittenAsItWasRead(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "uid"}}
	wanted := func(value string) *corev1ac.ConfigMapApplyConfiguration {
		return corev1ac.ConfigMap("child", "ns").WithData(map[string]string{"key": value})
	}
	read := func() *corev1.ConfigMap {
		t.Helper()
		child := &corev1.ConfigMap{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "child"}, child); err != nil {
			t.Fatal(err)
		}
		return child
	}
	active, late := New(c, c, "howdah-test"), New(c, c, "howdah-test")
	if err := active.Apply(t.Context(), owner, Owned(wanted("a"))); err != nil {
		t.Fatal(err)
	}
	first := read()
	if err := active.Apply(t.Context(), owner, OwnedAsRead(wanted("b"), first)); err != nil {
		t.Fatal(err)
	}
	if err := late.Apply(t.Context(), owner, OwnedAsRead(wanted("a"), first)); !apierrors.IsConflict(err) || !isLostRace(err) {
		t.Errorf("another one, which has read it earlier, writes: %v", err)
	}
	if got := read().Data["key"]; got != "b" {
		t.Errorf("it has %q", got)
	}
	// What it was read with says nothing of what is wanted: an unchanged child is not written again.
	before := read().ResourceVersion
	if err := active.Apply(t.Context(), owner, OwnedAsRead(wanted("b"), first)); err != nil || read().ResourceVersion != before {
		t.Errorf("it is written again: %v", err)
	}
}

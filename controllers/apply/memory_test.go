package apply

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestChildrenOfOwnersThatAreGoneAreForgotten(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	a := New(c, c, "howdah-test")
	const owners = 500
	key := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("owner-", i)}
	}
	for i := range owners {
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: key(i).Name, UID: types.UID(fmt.Sprint("uid-", i))}}
		for _, name := range []string{"a", "b"} {
			if err := a.Apply(t.Context(), owner, Owned(corev1ac.ConfigMap(fmt.Sprint(name, "-", i), "ns"))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := a.Remembered(); got != 2*owners {
		t.Errorf("%d children are remembered, want %d", got, 2*owners)
	}
	for i := range owners - 1 {
		a.Forget("ConfigMap", key(i))
	}
	if got := a.Remembered(); got != 2 {
		t.Errorf("with one owner left %d children are remembered, want its 2", got)
	}
}

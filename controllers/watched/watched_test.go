package watched

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestOnlyWatchedNamespacesAreLookedAt(t *testing.T) {
	for name, tc := range map[string]struct {
		watched Namespaces
		want    []string
	}{
		"some": {Namespaces{"a", "c"}, []string{"a", "c"}},
		"all":  {nil, []string{"a", "b", "c"}},
	} {
		var got []string
		reconciler := tc.watched.Only(reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
			got = append(got, request.Namespace)
			return reconcile.Result{}, nil
		}))
		for _, namespace := range []string{"a", "b", "c"} {
			if _, err := reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "x"}}); err != nil {
				t.Error(err)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

package watched

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Namespaces are the Kubernetes namespaces that the operator watches; none means all. The cache has no objects of other
// namespaces.
type Namespaces []string

// Include reports whether the operator watches a Kubernetes namespace.
func (n Namespaces) Include(kubeNamespace string) bool {
	return len(n) == 0 || slices.Contains(n, kubeNamespace)
}

// Only is a reconciler that gets the requests about objects of watched Kubernetes namespaces. Others come from volumes, which have no namespace and may be
// another operator's, and from what objects of a namespace that was watched before have left in another one.
func (n Namespaces) Only(reconciler reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if !n.Include(request.Namespace) {
			return reconcile.Result{}, nil
		}
		return reconciler.Reconcile(ctx, request)
	})
}

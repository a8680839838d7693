package watched

import "slices"

// Namespaces are the Kubernetes namespaces that the operator watches; none means all. The cache has no objects of other
// namespaces.
type Namespaces []string

// Include reports whether the operator watches a Kubernetes namespace.
func (n Namespaces) Include(kubeNamespace string) bool {
	return len(n) == 0 || slices.Contains(n, kubeNamespace)
}

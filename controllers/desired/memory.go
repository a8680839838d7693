package desired

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/howdah/howdah/api/v1alpha1"
)

// The memory of a data server of whose memory spec.resources says nothing, in bytes (docs/operate/sizing.md has the reasons).
const (
	// defaultMemoryLimit is what all connections and sessions that a data server ever takes need, more than twice over.
	defaultMemoryLimit = 4 << 30
	// defaultMemoryRequest is what a data server with some hundred connections takes. Without it the limit would be the request.
	defaultMemoryRequest = 256 << 20
)

// The same of a namespace server. A quarter of the limit is for clients, and the rest is enough for about 100,000 directories (31 MB
// for 10,000).
const (
	namespaceMemoryLimit   = 512 << 20
	namespaceMemoryRequest = 64 << 20
)

// DataServerResources are those of a data server's container: what spec.resources says, with a limit of memory in any case, but for
// the limit 0, which means none.
func DataServerResources(fs *v1alpha1.FileServer) corev1.ResourceRequirements {
	return withMemory(fs.Spec.Resources, defaultMemoryRequest, defaultMemoryLimit)
}

// namespaceServerResources are those of a namespace server's container, in the same way.
func namespaceServerResources(fs *v1alpha1.FileServer) corev1.ResourceRequirements {
	var set *corev1.ResourceRequirements
	if fs.Spec.NamespaceServers != nil {
		set = fs.Spec.NamespaceServers.Resources
	}
	resources := withMemory(set, namespaceMemoryRequest, namespaceMemoryLimit)
	_, isRequested := resources.Requests[corev1.ResourceCPU]
	if _, isLimited := resources.Limits[corev1.ResourceCPU]; !isRequested && !isLimited {
		if resources.Requests == nil {
			resources.Requests = corev1.ResourceList{}
		}
		resources.Requests[corev1.ResourceCPU] = resource.MustParse("10m")
	}
	return resources
}

// withMemory is what a user has set, with a request and a limit of memory where nothing is set. The limit 0 means none.
func withMemory(set *corev1.ResourceRequirements, usualRequest, usualLimit int64) corev1.ResourceRequirements {
	var resources corev1.ResourceRequirements
	if set != nil {
		resources = *set.DeepCopy()
	}
	limit, isLimited := resources.Limits[corev1.ResourceMemory]
	request, isRequested := resources.Requests[corev1.ResourceMemory]
	if !isRequested && (!isLimited || limit.IsZero()) {
		request = *resource.NewQuantity(usualRequest, resource.BinarySI)
		resources.Requests = with(resources.Requests, request)
	}
	switch {
	case !isLimited:
		limit = *resource.NewQuantity(usualLimit, resource.BinarySI)
		if request.Cmp(limit) > 0 {
			limit = request
		}
		resources.Limits = with(resources.Limits, limit)
	case limit.IsZero():
		delete(resources.Limits, corev1.ResourceMemory)
	}
	return resources
}

func with(list corev1.ResourceList, memory resource.Quantity) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	list[corev1.ResourceMemory] = memory
	return list
}

// memoryOf is what a data server may use, in bytes: its limit, or without one what it asks for.
func memoryOf(fs *v1alpha1.FileServer) int64 {
	resources := DataServerResources(fs)
	if limit, isLimited := resources.Limits[corev1.ResourceMemory]; isLimited {
		return limit.Value()
	}
	if fs.Spec.Resources != nil {
		if request, isRequested := fs.Spec.Resources.Requests[corev1.ResourceMemory]; isRequested {
			return request.Value()
		}
	}
	return 0
}

package admissible

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// resources finds what the schema leaves of the resources of a container (pkg/apis/core/validation, validateResourceRequirements, which no library
// has). The schema compares requests and limits of CPU, memory and ephemeral storage.
func resources(set *corev1.ResourceRequirements, path *field.Path) (faults field.ErrorList) {
	if set == nil {
		return nil
	}
	limits, requests := path.Child("limits"), path.Child("requests")
	for _, name := range slices.Sorted(maps.Keys(set.Limits)) {
		faults = append(faults, amount(name, set.Limits[name], limits)...)
	}
	for _, name := range slices.Sorted(maps.Keys(set.Requests)) {
		request := set.Requests[name]
		wrong := amount(name, request, requests)
		faults = append(faults, wrong...)
		if len(wrong) > 0 || isShared(name) {
			continue
		}
		limit, isLimited := set.Limits[name]
		switch {
		case !isLimited:
			faults = append(faults, field.Required(limits.Key(string(name)), "there must be a limit, equal to the request: this resource can't be shared"))
		case request.Cmp(limit) != 0:
			faults = append(faults, field.Invalid(requests.Key(string(name)), request.String(), "it must be equal to the limit, "+limit.String()+": this resource can't be shared"))
		}
	}
	return faults
}

// withHugePages finds huge pages without CPU and memory. Servers always have memory.
func withHugePages(set *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	if set == nil {
		return nil
	}
	names := slices.Concat(slices.Collect(maps.Keys(set.Limits)), slices.Collect(maps.Keys(set.Requests)))
	if slices.ContainsFunc(names, isHugePages) && !slices.Contains(names, corev1.ResourceCPU) && !slices.Contains(names, corev1.ResourceMemory) {
		return field.ErrorList{field.Required(path, "huge pages need a request or limit of cpu or memory beside them")}
	}
	return nil
}

// amount finds out what is wrong with one entry.
func amount(name corev1.ResourceName, quantity resource.Quantity, path *field.Path) field.ErrorList {
	if wrong := resourceName(string(name)); wrong != "" {
		return field.ErrorList{field.Invalid(path, string(name), wrong)}
	}
	path = path.Key(string(name))
	switch {
	case quantity.Sign() < 0:
		return field.ErrorList{field.Invalid(path, quantity.String(), "it must not be below 0")}
	case isHugePages(name) && !isWholePages(name, quantity):
		return field.ErrorList{field.Invalid(path, quantity.String(), "it must be a multiple of the size in the name")}
	case !isNative(name) && quantity.MilliValue()%1000 != 0:
		return field.ErrorList{field.Invalid(path, quantity.String(), "it must be an integer")}
	}
	return nil
}

// resourceName is why a container can't have a resource of that name; "" if it can.
func resourceName(name string) string {
	if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
		return wrong[0]
	}
	usual := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	switch named := corev1.ResourceName(name); {
	case !strings.Contains(name, "/"):
		if !slices.Contains(usual, named) && !isHugePages(named) {
			return "a container has cpu, memory, ephemeral-storage, hugepages-SIZE, and resources with a domain in their names, such as example.com/nic"
		}
	case isNative(named):
	case strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix):
		return "leave " + corev1.DefaultResourceRequestsPrefix + " out: only a ResourceQuota has it"
	default: // The name that a ResourceQuota has for it must be one, too.
		if wrong := validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix + name); len(wrong) > 0 {
			return wrong[0]
		}
	}
	return ""
}

// isNative tells whether a resource is one of Kubernetes itself.
func isNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// isShared tells whether containers may use more of a resource than they request.
func isShared(name corev1.ResourceName) bool { return isNative(name) && !isHugePages(name) }

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func isWholePages(name corev1.ResourceName, quantity resource.Quantity) bool {
	page, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	return err == nil && page.Sign() > 0 && page.MilliValue()%1000 == 0 && quantity.Value()%page.Value() == 0
}

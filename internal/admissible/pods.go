package admissible

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/howdah/howdah/api/v1alpha1"
)

// labels finds keys and values that no label can have. A value is looked at only if its key is right, because the path has the key.
func labels(all map[string]string, path *field.Path) (faults field.ErrorList) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			faults = append(faults, field.Invalid(path, key, wrong[0]))
		} else if wrong := validation.IsValidLabelValue(all[key]); len(wrong) > 0 {
			faults = append(faults, field.Invalid(path.Key(key), all[key], wrong[0]))
		}
	}
	return faults
}

// annotations finds keys that no annotation can have. Any value will do, but all together have a limit.
func annotations(all map[string]string, path *field.Path) (faults field.ErrorList) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if wrong := validation.IsQualifiedName(strings.ToLower(key)); len(wrong) > 0 {
			faults = append(faults, field.Invalid(path, key, wrong[0]))
		}
	}
	if apivalidation.ValidateAnnotationsSize(all) != nil {
		faults = append(faults, field.TooLong(path, "", apivalidation.TotalAnnotationSizeLimitB))
	}
	return faults
}

// pods finds what can't be used of the settings of pods. container is the name of their container.
func pods(settings *v1alpha1.PodSettings, path *field.Path, container string) field.ErrorList {
	if settings == nil {
		return nil
	}
	faults := labels(settings.Labels, path.Child("labels"))
	path = path.Child("annotations")
	faults = append(faults, annotations(settings.Annotations, path)...)
	for _, key := range slices.Sorted(maps.Keys(settings.Annotations)) {
		value := settings.Annotations[key]
		if wrong := podAnnotation(key, value, container); wrong != "" {
			faults = append(faults, field.Invalid(path.Key(key), value, wrong))
		}
	}
	return faults
}

// Annotations of pods that the API server reads (pkg/apis/core/validation, ValidatePodSpecificAnnotations). Seccomp profiles must be those of the pods
// that Howdah makes.
const (
	deletionCostAnnotation = "controller.kubernetes.io/pod-deletion-cost"
	tolerationsAnnotation  = "scheduler.alpha.kubernetes.io/tolerations"
	seccompAnnotation      = "seccomp.security.alpha.kubernetes.io/pod"
	seccompPrefix          = "container.seccomp.security.alpha.kubernetes.io/"
	appArmorPrefix         = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix
)

// podAnnotation is why the API server refuses a pod with an annotation; "" if it does not.
func podAnnotation(key, value, container string) string {
	switch {
	case key == corev1.MirrorPodAnnotationKey:
		return "only the kubelet sets this annotation: leave it out"
	case key == deletionCostAnnotation:
		if _, err := strconv.ParseInt(value, 10, 32); err != nil || value[0] == '+' || value[0] == '0' && value != "0" {
			return "it must be an integer of 32 bits"
		}
	case key == tolerationsAnnotation && value != "":
		var all []corev1.Toleration
		if json.Unmarshal([]byte(value), &all) != nil || len(tolerations(all, field.NewPath(""))) > 0 {
			return "no scheduler reads this annotation: leave it out, and use tolerations of placement"
		}
	case key == seccompAnnotation:
		if value != "runtime/default" && value != "docker/default" {
			return "the pods have the profile runtime/default: leave this annotation out"
		}
	case strings.HasPrefix(key, seccompPrefix):
		if !slices.Contains([]string{"runtime/default", "docker/default", "unconfined"}, value) && !strings.HasPrefix(value, "localhost/") {
			return "it must be runtime/default, unconfined or localhost/PROFILE"
		}
	case strings.HasPrefix(key, appArmorPrefix):
		if strings.TrimPrefix(key, appArmorPrefix) != container {
			return "the pods have no such container: write " + appArmorPrefix + container
		}
		if !slices.Contains([]string{"", "runtime/default", "unconfined"}, value) && !strings.HasPrefix(value, "localhost/") {
			return "it must be runtime/default, unconfined or localhost/PROFILE"
		}
	}
	return ""
}

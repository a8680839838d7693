package admissible

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/howdah/howdah/api/v1alpha1"
)

func placement(set *v1alpha1.Placement, path *field.Path) field.ErrorList {
	if set == nil {
		return nil
	}
	return slices.Concat(
		labels(set.NodeSelector, path.Child("nodeSelector")),
		tolerations(set.Tolerations, path.Child("tolerations")),
		nodeAffinity(set.NodeAffinity, path.Child("nodeAffinity")),
	)
}

// tolerations finds what the schema leaves of a toleration (pkg/apis/core/validation, ValidateTolerations).
func tolerations(all []corev1.Toleration, path *field.Path) (faults field.ErrorList) {
	for i := range all {
		toleration, path := &all[i], path.Index(i)
		if toleration.Key == "" && toleration.Operator != corev1.TolerationOpExists {
			faults = append(faults, field.Required(path.Child("key"), "a toleration without a key must have the operator Exists: it is for all taints then"))
		}
		if wrong := validation.IsQualifiedName(toleration.Key); toleration.Key != "" && len(wrong) > 0 {
			faults = append(faults, field.Invalid(path.Child("key"), toleration.Key, wrong[0]))
		}
		if seconds := toleration.TolerationSeconds; seconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
			faults = append(faults, field.Invalid(path.Child("tolerationSeconds"), *seconds, "it goes with the effect NoExecute: leave it out, or set the effect"))
		}
		var wrong []string
		switch toleration.Operator {
		case corev1.TolerationOpLt, corev1.TolerationOpGt:
			wrong = content.IsDecimalInteger(toleration.Value)
			if _, err := strconv.ParseInt(toleration.Value, 10, 64); err != nil && len(wrong) == 0 {
				wrong = []string{"it must be an integer of 64 bits"}
			}
		case corev1.TolerationOpEqual, "":
			wrong = validation.IsValidLabelValue(toleration.Value)
		}
		if len(wrong) > 0 {
			faults = append(faults, field.Invalid(path.Child("value"), toleration.Value, wrong[0]))
		}
	}
	return faults
}

// nodeAffinity finds what the scheduler can't read, and what the API server refuses beyond that.
func nodeAffinity(affinity *corev1.NodeAffinity, path *field.Path) (faults field.ErrorList) {
	if affinity == nil {
		return nil
	}
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		path := path.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		if len(required.NodeSelectorTerms) == 0 {
			faults = append(faults, field.Required(path, "there must be at least one term: add one, or leave nodeAffinity out"))
		}
		for i := range required.NodeSelectorTerms {
			faults = append(faults, nodeSelectorTerm(&required.NodeSelectorTerms[i], path.Index(i))...)
		}
	}
	path = path.Child("preferredDuringSchedulingIgnoredDuringExecution")
	for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		preferred, path := &affinity.PreferredDuringSchedulingIgnoredDuringExecution[i], path.Index(i)
		if preferred.Weight < 1 || preferred.Weight > 100 {
			faults = append(faults, field.Invalid(path.Child("weight"), preferred.Weight, "it must be from 1 to 100"))
		}
		faults = append(faults, nodeSelectorTerm(&preferred.Preference, path.Child("preference"))...)
	}
	return faults
}

func nodeSelectorTerm(term *corev1.NodeSelectorTerm, path *field.Path) (faults field.ErrorList) {
	_, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{*term}})
	var found utilerrors.Aggregate
	if errors.As(err, &found) {
		for _, err := range found.Errors() {
			var fault *field.Error
			if errors.As(err, &fault) {
				// It ends in the label's key where the value of a label is wrong.
				at, _, isValue := strings.Cut(strings.TrimPrefix(fault.Field, "nodeSelectorTerms[0]"), "][")
				if isValue {
					at += "]"
				}
				fault.Field = path.String() + at
				faults = append(faults, fault)
			}
		}
	}
	for i, requirement := range term.MatchFields {
		path := path.Child("matchFields").Index(i)
		if requirement.Key != metav1.ObjectNameField {
			faults = append(faults, field.NotSupported(path.Child("key"), requirement.Key, []string{metav1.ObjectNameField}))
		}
		for j, name := range requirement.Values {
			if wrong := apivalidation.NameIsDNSSubdomain(name, false); len(wrong) > 0 {
				faults = append(faults, field.Invalid(path.Child("values").Index(j), name, wrong[0]))
			}
		}
	}
	return faults
}

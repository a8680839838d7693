package admissible

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// ofBatchJobs are the labels that Kubernetes sets on the pods of batch Jobs. A Job with other values is refused.
var ofBatchJobs = []string{"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"}

// Job finds the values of an MLPerfStorageJob that can't be used in its client pods.
func Job(spec *v1alpha1.MLPerfStorageJobSpec) field.ErrorList {
	path := field.NewPath("spec")
	faults := slices.Concat(placement(spec.Placement, path.Child("placement")), pods(spec.Pods, path.Child("pods"), naming.BenchmarkContainer))
	if spec.Pods != nil {
		for _, key := range ofBatchJobs {
			if value, is := spec.Pods.Labels[key]; is {
				faults = append(faults, field.Invalid(path.Child("pods", "labels").Key(key), value, "Kubernetes sets this label: leave it out"))
			}
		}
	}
	return slices.Concat(faults, resources(spec.Resources, path.Child("resources")), withHugePages(spec.Resources, path.Child("resources")))
}

// Owner finds out why client pods can't run as the owner of a share. Files can have owners that pods can't have.
func Owner(spec *v1alpha1.FileShareSpec) (faults field.ErrorList) {
	path := field.NewPath("spec")
	if spec.UID != nil {
		for _, fault := range validation.IsValidUserID(*spec.UID) {
			faults = append(faults, field.Invalid(path.Child("uid"), *spec.UID, fault))
		}
	}
	if spec.GID != nil {
		for _, fault := range validation.IsValidGroupID(*spec.GID) {
			faults = append(faults, field.Invalid(path.Child("gid"), *spec.GID, fault))
		}
	}
	return faults
}

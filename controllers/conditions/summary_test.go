package conditions

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/howdah/howdah/api/v1alpha1"
)

func TestReadyTellsWaitingFromFailureAndOutage(t *testing.T) {
	const ready, gone, waits, change, user = v1alpha1.ReasonReady, v1alpha1.ReasonServersNotReady,
		v1alpha1.ReasonFileServerNotFound, v1alpha1.ReasonConfigPending, v1alpha1.ReasonNameTaken
	// A step is a reason and whether the specification was changed before it ("+").
	for name, tc := range map[string]struct {
		steps []string
		want  metav1.ConditionStatus
	}{
		"the first wait":                             {[]string{gone}, metav1.ConditionUnknown},
		"a wait for what does not exist yet":         {[]string{waits}, metav1.ConditionUnknown},
		"ready":                                      {[]string{gone, ready}, metav1.ConditionTrue},
		"an outage":                                  {[]string{ready, gone}, metav1.ConditionFalse},
		"an outage that lasts":                       {[]string{ready, gone, gone}, metav1.ConditionFalse},
		"an outage that lasts over a change":         {[]string{ready, gone, "+" + gone}, metav1.ConditionFalse},
		"a change of what was ready":                 {[]string{ready, "+" + gone}, metav1.ConditionUnknown},
		"what comes with the shares":                 {[]string{ready, change}, metav1.ConditionUnknown},
		"a mistake from the start":                   {[]string{user}, metav1.ConditionFalse},
		"a mistake in what was ready":                {[]string{ready, "+" + user}, metav1.ConditionFalse},
		"a mistake that was mended, on the way":      {[]string{user, gone}, metav1.ConditionUnknown},
		"a mistake that was mended":                  {[]string{user, ready}, metav1.ConditionTrue},
		"a deletion":                                 {[]string{ready, "+" + v1alpha1.ReasonDeleting}, metav1.ConditionFalse},
		"what was never ready, after a second pass":  {[]string{gone, gone}, metav1.ConditionUnknown},
		"what was never ready, after another change": {[]string{gone, "+" + gone}, metav1.ConditionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			var list []metav1.Condition
			generation := int64(1)
			for _, step := range tc.steps {
				if step[0] == '+' {
					generation, step = generation+1, step[1:]
				}
				found := False(v1alpha1.ConditionReady, step, "because")
				if step == ready {
					found.Status = metav1.ConditionTrue
				}
				SetSummary(&list, generation, noon, found)
			}
			if got := meta.FindStatusCondition(list, v1alpha1.ConditionReady).Status; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// kstatus is what Flux, and others that wait by kstatus, make of an object with these conditions.
func kstatus(list []metav1.Condition, generation, observed int64) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.FileServer{
		ObjectMeta: metav1.ObjectMeta{Generation: generation},
		Status:     v1alpha1.FileServerStatus{Conditions: list, ObservedGeneration: &observed},
	})
	if err != nil {
		return err.Error()
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		return err.Error()
	}
	return result.Status.String()
}

func TestWhatTheUserHasWaitIsNotUnderWay(t *testing.T) {
	var list []metav1.Condition
	SetSummary(&list, 1, noon, Unknown(v1alpha1.JobSucceeded, v1alpha1.ReasonRunning, "it runs"))
	SetSummary(&list, 2, noon, Unknown(v1alpha1.JobSucceeded, v1alpha1.ReasonSuspended, "it waits"))
	if got := kstatus(list, 2, 2); got != "Current" || len(list) != 1 {
		t.Errorf("%s: %+v", got, list)
	}
}

func TestWhatKstatusMakesOfEachReason(t *testing.T) {
	for reason, want := range map[string]string{
		v1alpha1.ReasonReady:                    "Current",
		v1alpha1.ReasonServersShareNodes:        "Current",
		v1alpha1.ReasonNotDrained:               "Current",
		v1alpha1.ReasonConnectionsNearLimit:     "Current",
		v1alpha1.ReasonRestartPending:           "Current",
		v1alpha1.ReasonVolumesNearlyFull:        "Current",
		v1alpha1.ReasonVolumesFull:              "Current",
		v1alpha1.ReasonExpansionFailing:         "InProgress",
		v1alpha1.ReasonDirectoryInUse:           "Current",
		v1alpha1.ReasonTooManyDirectories:       "Current",
		v1alpha1.ReasonPending:                  "InProgress",
		v1alpha1.ReasonProgressing:              "InProgress",
		v1alpha1.ReasonServersNotReady:          "InProgress",
		v1alpha1.ReasonDataServersUnavailable:   "InProgress",
		v1alpha1.ReasonNamespaceServersNotReady: "InProgress",
		v1alpha1.ReasonClaimsPending:            "InProgress",
		v1alpha1.ReasonConfigPending:            "InProgress",
		v1alpha1.ReasonStorageClassNotFound:     "InProgress",
		v1alpha1.ReasonFileServerNotFound:       "InProgress",
		v1alpha1.ReasonFileServerNotReady:       "InProgress",
		v1alpha1.ReasonExportsPending:           "InProgress",
		v1alpha1.ReasonDirectoriesPending:       "InProgress",
		v1alpha1.ReasonFileShareNotFound:        "InProgress",
		v1alpha1.ReasonWaitingForShare:          "InProgress",
		v1alpha1.ReasonGeneratingDataset:        "InProgress",
		v1alpha1.ReasonRunning:                  "InProgress",
		v1alpha1.ReasonSharedFileSystems:        "Current",
		v1alpha1.ReasonVolumeRefused:            "Failed",
		v1alpha1.ReasonApplyFailed:              "Failed",
		v1alpha1.ReasonNameTaken:                "Failed",
		v1alpha1.ReasonPodsRefused:              "Failed",
		v1alpha1.ReasonInvalidSpec:              "Failed",
		v1alpha1.ReasonExpansionRefused:         "Failed",
		v1alpha1.ReasonTooFewNodes:              "Failed",
		v1alpha1.ReasonHostPortsTaken:           "Failed",
		v1alpha1.ReasonNodeAddressMissing:       "Failed",
		v1alpha1.ReasonScaleInRefused:           "Failed",
		v1alpha1.ReasonInUse:                    "Failed",
		v1alpha1.ReasonPathConflict:             "Failed",
		v1alpha1.ReasonTooManyShares:            "Failed",
		v1alpha1.ReasonInvalidDirectories:       "Failed",
		v1alpha1.ReasonUtilizationTooLow:        "Failed",
		v1alpha1.ReasonMeasurementInvalid:       "Failed",
		v1alpha1.ReasonClientFailed:             "Failed",
		v1alpha1.ReasonPreparing:                "InProgress",
		v1alpha1.ReasonDeadlineExceeded:         "Failed",
	} {
		for _, summary := range []string{v1alpha1.ConditionReady, v1alpha1.JobSucceeded} {
			var list []metav1.Condition
			found := False(summary, reason, "because")
			if want == "Current" {
				found.Status = metav1.ConditionTrue
			}
			// The opposite was there before: it must go.
			SetSummary(&list, 1, noon, False(summary, v1alpha1.ReasonNameTaken, ""))
			SetSummary(&list, 1, noon, False(summary, v1alpha1.ReasonPending, ""))
			SetSummary(&list, 1, noon, found)
			if got := kstatus(list, 1, 1); got != want {
				t.Errorf("%s for %s is %s, want %s: %+v", reason, summary, got, want, list)
			}
			if IsStalled(list) != (want == "Failed") {
				t.Errorf("%s for %s: stalled = %v", reason, summary, IsStalled(list))
			}
		}
	}
}

package kubeapi

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/fill"
)

func TestUsageIsReportedInStepsThatDoNotFlap(t *testing.T) {
	const step = 1 << 20
	at := func(used int64) fill.Amount { return fill.Amount{Total: 64 * step, Used: used} }
	tests := map[string]struct {
		real, reported fill.Amount
		want           int64
	}{
		"an empty volume":                    {at(0), fill.Amount{}, 0},
		"one byte":                           {at(1), fill.Amount{}, step},
		"a full volume":                      {at(64 * step), fill.Amount{}, 64 * step},
		"within the reported step":           {at(5*step - 1), at(5 * step), 5 * step},
		"a little above the reported step":   {at(5*step + 1), at(5 * step), 6 * step},
		"a little below the reported step":   {at(4*step - 1), at(5 * step), 5 * step},
		"well below the reported step":       {at(4*step - step/2), at(5 * step), 4 * step},
		"all removed":                        {at(0), at(5 * step), 0},
		"a volume that grew":                 {fill.Amount{Total: 128 * step, Used: step}, at(5 * step), 2 * step},
		"a volume of fewer bytes than steps": {fill.Amount{Total: 10, Used: 3}, fill.Amount{}, 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := coarse(tc.real, tc.reported); got.Used != tc.want || got.Total != tc.real.Total {
				t.Errorf("%+v, not %d", got, tc.want)
			}
		})
	}
}

func TestTheStatusSaysHowTheStorageIs(t *testing.T) {
	status := StatusFrom(internalv1.DataServerStatus{}, Observation{Ready: true, Reason: v1alpha1.ReasonReady}, metav1.Now())
	for name, tc := range map[string]struct {
		health       backend.Health
		want         metav1.ConditionStatus
		reason, says string
	}{
		"well":                 {backend.Health{}, metav1.ConditionTrue, v1alpha1.ReasonReady, "the storage is well"},
		"degraded":             {backend.Health{Degraded: "osd.1"}, metav1.ConditionTrue, v1alpha1.ReasonStorageDegraded, "osd.1"},
		"failing":              {backend.Health{Failing: "full"}, metav1.ConditionFalse, v1alpha1.ReasonStorageFailing, "full"},
		"failing and degraded": {backend.Health{Failing: "full", Degraded: "osd.1"}, metav1.ConditionFalse, v1alpha1.ReasonStorageFailing, "full; osd.1"},
	} {
		status = WithHealth(status, tc.health, metav1.Now())
		got := meta.FindStatusCondition(status.Conditions, internalv1.StorageHealthy)
		if got == nil || got.Status != tc.want || got.Reason != tc.reason || got.Message != tc.says {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// A pass writes what it knows, and leaves this.
	after := StatusFrom(status, Observation{Reason: internalv1.ReasonServerDown}, metav1.Now())
	if len(after.Conditions) != 2 || meta.FindStatusCondition(after.Conditions, internalv1.StorageHealthy) == nil {
		t.Errorf("%+v", after.Conditions)
	}
}

func TestTheStatusSaysWhatIsServed(t *testing.T) {
	now := metav1.Now()
	seen := Observation{
		NodeName: "node1", PodIP: "10.0.0.1", Generation: 4, Loaded: true, Ready: true, Reason: v1alpha1.ReasonReady, Message: "all",
		Usage: []backend.Usage{{Usage: fill.Usage{Bytes: fill.Amount{Total: 6400, Used: 150, Free: 6250}}}},
	}
	good := StatusFrom(internalv1.DataServerStatus{}, seen, now)
	if *good.ObservedGeneration != 4 || *good.Volumes[0].UsedBytes != 200 {
		t.Errorf("%+v", good)
	}
	if again := StatusFrom(good, seen, metav1.NewTime(now.Add(1e9))); !equality.Semantic.DeepEqual(good, again) {
		t.Error("the same observation a second later is another status")
	}
	seen.Generation, seen.Loaded, seen.Ready, seen.Reason, seen.Usage = 5, false, false, internalv1.ReasonReloadFailed, nil
	seen.Message = strings.Repeat("ä", maxMessage)
	bad := StatusFrom(good, seen, now)
	condition := meta.FindStatusCondition(bad.Conditions, v1alpha1.ConditionReady)
	if *bad.ObservedGeneration != 4 || condition.Status != metav1.ConditionFalse || condition.ObservedGeneration != 5 || len(bad.Volumes) != 1 {
		t.Errorf("%+v", bad)
	}
	if len(condition.Message) > maxMessage || strings.ContainsRune(condition.Message, '\uFFFD') {
		t.Errorf("a message of %d bytes", len(condition.Message))
	}
}

func TestTheStatusOfAnExport(t *testing.T) {
	now := metav1.Now()
	served := ExportStatusFrom(internalv1.ShareExportStatus{}, ExportObservation{Generation: 1, IDs: []int32{7}, Serves: true}, now)
	broken := NewFault(internalv1.ReasonExportsFailing, errors.New("/a/0: no such path"))
	for name, tc := range map[string]struct {
		earlier internalv1.ShareExportStatus
		seen    ExportObservation
		// serving and removed are reason and status of the conditions, "" where there is none.
		serving, removed string
		observed         int64
	}{
		"not checked yet":            {internalv1.ShareExportStatus{}, ExportObservation{Generation: 1}, "", "", 0},
		"served":                     {internalv1.ShareExportStatus{}, ExportObservation{Generation: 1, Serves: true, IDs: []int32{7}}, "True Ready", "", 1},
		"a new generation is served": {served, ExportObservation{Generation: 2, Serves: true, IDs: []int32{7}}, "True Ready", "", 2},
		"served once, not looked at": {served, ExportObservation{Generation: 2}, "True Ready", "", 1},
		"failing":                    {served, ExportObservation{Generation: 2, Fault: broken}, "False ExportsFailing", "", 1},
		"served, and a fault":        {served, ExportObservation{Generation: 1, Serves: true, Fault: broken}, "False ExportsFailing", "", 1},
		"being deleted":              {served, ExportObservation{Generation: 2, Deleting: true}, "True Ready", "", 1},
		"gone":                       {served, ExportObservation{Generation: 2, Deleting: true, Removed: true}, "False Removed", "True Removed", 2},
		"can't be dropped":           {served, ExportObservation{Generation: 2, Deleting: true, Fault: broken}, "True Ready", "False ExportsFailing", 1},
	} {
		t.Run(name, func(t *testing.T) {
			status := ExportStatusFrom(tc.earlier, tc.seen, now)
			reported := func(kind string) string {
				if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
					return string(c.Status) + " " + c.Reason
				}
				return ""
			}
			observed := int64(0)
			if status.ObservedGeneration != nil {
				observed = *status.ObservedGeneration
			}
			if reported(internalv1.ExportServing) != tc.serving || reported(internalv1.ExportRemoved) != tc.removed || observed != tc.observed {
				t.Errorf("%+v", status)
			}
			if again := ExportStatusFrom(status, tc.seen, metav1.NewTime(now.Add(1e9))); !equality.Semantic.DeepEqual(status, again) {
				t.Error("the same sight a second later is another status")
			}
		})
	}
}

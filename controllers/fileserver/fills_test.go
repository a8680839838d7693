package fileserver

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/volumes"
	"github.com/howdah/howdah/test/builders"
)

func TestVolumesThatFillUpMakeOneEvent(t *testing.T) {
	of := func(reason string, fills ...v1alpha1.VolumeFill) *v1alpha1.FileServerStatus {
		status := &v1alpha1.FileServerStatus{Conditions: []metav1.Condition{{Type: v1alpha1.FileServerStorageAvailable, Status: metav1.ConditionTrue, Reason: reason}}}
		for i, fill := range fills {
			status.Servers = append(status.Servers, v1alpha1.FileServerServerStatus{Name: []string{"fs-0", "fs-1"}[i], Fill: fill})
		}
		return status
	}
	const ready, nearly, full = v1alpha1.ReasonReady, v1alpha1.ReasonVolumesNearlyFull, v1alpha1.ReasonVolumesFull
	for name, tc := range map[string]struct {
		before, after *v1alpha1.FileServerStatus
		// want are type and reason of the events.
		want string
	}{
		"nothing changes":                       {of(ready, "", ""), of(ready, "", ""), ""},
		"the first: the condition tells it":     {of(ready, "", ""), of(nearly, v1alpha1.FillAbove80, ""), ""},
		"fuller":                                {of(nearly, v1alpha1.FillAbove80, ""), of(nearly, v1alpha1.FillAbove90, ""), "Warning VolumeFillingUp"},
		"a second one":                          {of(nearly, v1alpha1.FillAbove90, ""), of(nearly, v1alpha1.FillAbove90, v1alpha1.FillAbove80), "Warning VolumeFillingUp"},
		"less full":                             {of(nearly, v1alpha1.FillAbove90, ""), of(nearly, v1alpha1.FillAbove80, ""), ""},
		"full: the condition tells it":          {of(nearly, v1alpha1.FillAbove95, ""), of(full, v1alpha1.FillFull, ""), ""},
		"a second one is full":                  {of(full, v1alpha1.FillFull, v1alpha1.FillAbove95), of(full, v1alpha1.FillFull, v1alpha1.FillFull), "Warning VolumeFull"},
		"room again":                            {of(nearly, v1alpha1.FillAbove80, ""), of(ready, "", ""), "Normal VolumeHasRoom"},
		"another reason hides the condition's":  {of(ready, ""), of(v1alpha1.ReasonProgressing, v1alpha1.FillAbove80), "Warning VolumeFillingUp"},
		"a new data server":                     {of(nearly, v1alpha1.FillAbove80), of(nearly, v1alpha1.FillAbove80, v1alpha1.FillAbove80), "Warning VolumeFillingUp"},
		"one that is scaled in takes its level": {of(nearly, v1alpha1.FillAbove80, v1alpha1.FillAbove80), of(nearly, v1alpha1.FillAbove80), ""},
	} {
		o := &observed{fileServer: builders.FileServer("n", "fs").Build(), storage: &volumes.Storage{}, dataServers: map[string]internalv1.DataServer{}}
		for _, server := range tc.after.Servers {
			dataServer := internalv1.DataServer{}
			dataServer.Status.Volumes = []internalv1.VolumeUsage{{Index: ptr.To[int32](0), Fill: server.Fill}}
			o.dataServers[server.Name] = dataServer
		}
		var got []string
		for _, e := range o.fillEvents(tc.before, tc.after) {
			got = append(got, e.kind+" "+e.reason)
			if e.kind == corev1.EventTypeWarning && !strings.Contains(e.message, "claim data-0-fs-") {
				t.Errorf("%s: %q does not name the claim", name, e.message)
			}
		}
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: %v, want %q", name, got, tc.want)
		}
	}
}

package command

import (
	"fmt"
	"testing"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/test/builders"
)

func TestARequestIsTakenBack(t *testing.T) {
	one := placement.Request{Share: "unet3d", Path: "train/7", To: "training-2"}
	other := placement.Request{Share: "unet3d", Path: "train/8", To: "training-2"}
	for name, tc := range map[string]struct {
		annotation string
		patch      string
		bad        bool
	}{
		"the only one":     {placement.FormatRequests([]placement.Request{one}), `{"metadata":{"resourceVersion":"7","annotations":{"howdah.io/move-directories":null}}}`, false},
		"one of two":       {placement.FormatRequests([]placement.Request{other, one}), fmt.Sprintf(`{"metadata":{"resourceVersion":"7","annotations":{"howdah.io/move-directories":%q}}}`, placement.FormatRequests([]placement.Request{other})), false},
		"none of it":       {placement.FormatRequests([]placement.Request{other}), "", false},
		"no annotation":    {"", "", false},
		"one that is none": {"train/7", "", true},
	} {
		fs := builders.FileServer("default", "training").Build()
		fs.ResourceVersion, fs.Annotations = "7", map[string]string{v1alpha1.MovesAnnotation: tc.annotation}
		left, was, err := withoutRequest(fs, "unet3d", "train/7")
		if (err != nil) != tc.bad || (was == one) != (tc.patch != "") {
			t.Errorf("%s: %+v, %v", name, was, err)
		}
		if tc.patch == "" {
			continue
		}
		if patch, err := patchOf(fs, left); err != nil || string(patch) != tc.patch {
			t.Errorf("%s: %s, %v", name, patch, err)
		}
	}
}

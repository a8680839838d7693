package controllers

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

// The cache leaves labels out; a patch made from what it has must leave them in.
func TestPatchesOfSlimDirectoriesTouchNoOtherLabel(t *testing.T) {
	for name, tc := range map[string]struct {
		retained bool
		change   func(*internalv1.ShareDirectory)
		patch    string
	}{
		"the label comes": {false, func(d *internalv1.ShareDirectory) {
			d.Labels[v1alpha1.RetainedLabel] = v1alpha1.RetainedTrue
		}, `{"metadata":{"labels":{"howdah.io/retained":"true"}}}`},
		"the label goes": {
			true, func(d *internalv1.ShareDirectory) { delete(d.Labels, v1alpha1.RetainedLabel) },
			`{"metadata":{"labels":{"howdah.io/retained":null}}}`,
		},
		"nothing changes": {true, func(*internalv1.ShareDirectory) {}, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			directory := builders.ShareDirectory("ns", "fs", "share", "d", "fs-0")
			if tc.retained {
				directory.Labels[v1alpha1.RetainedLabel] = v1alpha1.RetainedTrue
			}
			object, err := slimDirectory(directory)
			if err != nil {
				t.Fatal(err)
			}
			slim := object.(*internalv1.ShareDirectory)
			after := slim.DeepCopy()
			tc.change(after)
			patch, err := client.MergeFrom(slim).Data(after)
			if err != nil || string(patch) != tc.patch {
				t.Errorf("patch %s, error %v; want %s", patch, err, tc.patch)
			}
		})
	}
}

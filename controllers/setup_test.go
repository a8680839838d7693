package controllers

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
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

// A share with the longest access rules has an export on each data server: the cache must not hold them all.
func TestCachedExportsHaveADigestOfTheirRules(t *testing.T) {
	export := func(clients ...string) *internalv1.ShareExport {
		share := builders.FileShare("ns", "s", "fs").Access(v1alpha1.AccessReadWrite, v1alpha1.SquashNone, clients...).Build()
		return desired.ShareExport(share, "fs-0")
	}
	slim := func(export *internalv1.ShareExport) *internalv1.ShareExport {
		object, err := slimExport(export)
		if err != nil {
			t.Fatal(err)
		}
		return object.(*internalv1.ShareExport)
	}
	long := slim(export(slices.Repeat([]string{"2001:db8:1:1:ffff:ffff:ffff:ffff/128"}, 64)...))
	if text, err := json.Marshal(long); err != nil || len(text) > 1000 {
		t.Errorf("%d bytes of an export, error %v", len(text), err)
	}
	if client := long.Spec.Access[0].Clients[0]; len(client) <= 43 {
		t.Errorf("%q is short enough for the schema: it could be written by mistake", client)
	}
	one := slim(export("10.0.0.1"))
	for name, tc := range map[string]struct {
		other *internalv1.ShareExport
		equal bool
	}{
		"the same rules":                   {slim(export("10.0.0.1")), true},
		"a cache that transforms it twice": {slim(slim(export("10.0.0.1"))), true},
		"another rule":                     {slim(export("10.0.0.2")), false},
		"two clients that make one text":   {slim(export("10.0.0.1", "")), false},
	} {
		if equal := equality.Semantic.DeepEqual(one.Spec, tc.other.Spec); equal != tc.equal {
			t.Errorf("%s: equal %t", name, equal)
		}
	}
	after := one.DeepCopy()
	after.Spec.DataPolicy, after.Finalizers = internalv1.DataDelete, nil
	if patch, err := client.MergeFrom(one).Data(after); err != nil || strings.Contains(string(patch), "access") {
		t.Errorf("a patch of other fields touches the rules: %s, error %v", patch, err)
	}
}

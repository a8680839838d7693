package namespace

import (
	"encoding/json"
	"slices"
	"testing"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/test/builders"
)

// A share with the longest access rules has an export on each data server, and namespace servers read none of them.
func TestTheCacheHoldsNoAccessRulesOfExports(t *testing.T) {
	clients := slices.Repeat([]string{"2001:db8:1:1:ffff:ffff:ffff:ffff/128"}, 64)
	export := desired.ShareExport(builders.FileShare("ns", "s", "fs").Access(v1alpha1.AccessReadWrite, v1alpha1.SquashNone, clients...).Build(), "fs-0")
	for range 2 { // A cache may ask again.
		object, err := slimExport(export)
		if err != nil {
			t.Fatal(err)
		}
		export = object.(*internalv1.ShareExport)
	}
	if text, err := json.Marshal(export); err != nil || len(text) > 1000 || export.Spec.DataServerRef.Name != "fs-0" {
		t.Errorf("%d bytes of the export of %q, error %v", len(text), export.Spec.DataServerRef.Name, err)
	}
}

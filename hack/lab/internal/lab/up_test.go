package lab

import (
	"strings"
	"testing"

	"github.com/howdah/howdah/hack/lab/internal/plan"
)

// The cluster's DNS has an address of each family, and pods use the first.
func TestClusterDNSHasTheFamiliesOfTheLab(t *testing.T) {
	for family, want := range map[plan.Family][2]string{
		"":        {`"10.96.0.10"`, `["10.96.0.10"]`},
		plan.IPv6: {`"fd00:10:96::10"`, `["fd00:10:96::10"]`},
		plan.Dual: {`"10.96.0.10"`, `["10.96.0.10", "fd00:10:96::10"]`},
	} {
		text, err := addonText("dns:1", plan.Settings{Family: family})
		if err != nil {
			t.Fatal(err)
		}
		for i, field := range []string{"clusterIP", "clusterIPs"} {
			if line := "\n  " + field + ": " + want[i] + "\n"; !strings.Contains(text, line) {
				t.Errorf("%q: no line %q in\n%s", family, line, text)
			}
		}
		if strings.Contains(text, "@") {
			t.Errorf("%q: a value is missing in\n%s", family, text)
		}
	}
}

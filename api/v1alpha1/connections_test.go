package v1alpha1

import "testing"

func TestConnectionsAreReportedCoarsely(t *testing.T) {
	for name, test := range map[string]struct{ earlier, used, limit, want int32 }{
		"the first":                         {0, 1, 1000, 1},
		"one mount more":                    {16, 18, 1000, 16},
		"many more":                         {16, 32, 1000, 32},
		"fewer":                             {100, 50, 1000, 50},
		"a few fewer":                       {100, 90, 1000, 100},
		"none":                              {3, 0, 1000, 0},
		"a few more, and users are warned":  {795, 805, 1000, 805},
		"a few fewer, and no longer warned": {805, 795, 1000, 795},
	} {
		if got := CoarseConnections(test.earlier, test.used, test.limit); got != test.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

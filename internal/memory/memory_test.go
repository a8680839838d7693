package memory

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestTheCollectorKeepsATenthFree(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for name, tc := range map[string]struct {
		limit int64
		set   string
		want  int64
	}{
		"a limit":                {1000 << 20, "", 900 << 20},
		"none":                   {0, "", math.MaxInt64},
		"one that the user gave": {1000 << 20, "10MiB", math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", tc.set)
			debug.SetMemoryLimit(math.MaxInt64)
			KeepWithin(tc.limit)
			if got := debug.SetMemoryLimit(-1); got != tc.want {
				t.Errorf("%d, not %d", got, tc.want)
			}
		})
	}
}

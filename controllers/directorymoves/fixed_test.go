package directorymoves

import (
	"strings"
	"testing"
)

func TestSmallestKeepsTheFirstInAnyOrder(t *testing.T) {
	for _, order := range [][]string{{"a", "b", "c", "d", "e", "f", "g"}, {"g", "f", "e", "d", "c", "b", "a"}, {"d", "a", "g", "c", "f", "b", "e"}} {
		var kept []string
		for _, value := range order {
			kept = smallest(kept, value)
		}
		if got := strings.Join(kept, ""); got != "abcde" {
			t.Errorf("%v: kept %q", order, got)
		}
	}
}

package realtest

import (
	"fmt"
	"testing"
)

func TestFailuresInsideAreRepeated(t *testing.T) {
	l := &lines{t: t}
	for _, line := range []string{
		"=== RUN   TestX/a", "    x_test.go:1: of a", "=== RUN   TestX/b", "    x_test.go:2: of b", "=== NAME  TestX/a", "    x_test.go:3: a again",
		"    --- FAIL: TestX/a (0.10s)", "    --- PASS: TestX/b (0.10s)", "FAIL",
	} {
		fmt.Fprintln(l, line)
	}
	want := "failed inside: TestX/a\n    x_test.go:1: of a\n    x_test.go:3: a again\n"
	if got := l.failures(); got != want || !l.passed {
		t.Errorf("passed %v, got %q, want %q", l.passed, got, want)
	}
}

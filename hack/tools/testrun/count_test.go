package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func lines(events ...string) string { return strings.Join(events, "\n") }

func end(action, test string) string {
	return fmt.Sprintf(`{"Action":%q,"Package":"p","Test":%q}`, action, test)
}

func output(test, text string) string {
	quoted, err := json.Marshal(text) // %q would write escapes that JSON does not have
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"Action":"output","Package":"p","Test":%q,"Output":%s}`, test, quoted)
}

func TestCounting(t *testing.T) {
	for name, tc := range map[string]struct {
		events string
		want   Tally
	}{
		"tests count one each":                      {lines(end("pass", "A"), end("skip", "B"), end("fail", "C"), end("fail", "")), Tally{Passed: 1, Failed: 1, Skipped: 1}},
		"a test with subtests counts its leaves":    {lines(end("pass", "A/x"), end("pass", "A/y"), end("pass", "A"), end("pass", "")), Tally{Passed: 2}},
		"a failed subtest is not counted twice":     {lines(end("fail", "A/x"), end("pass", "A/y"), end("fail", "A"), end("fail", "")), Tally{Passed: 1, Failed: 1}},
		"a failure after good subtests counts":      {lines(end("pass", "A/x"), end("fail", "A"), end("fail", "")), Tally{Passed: 1, Failed: 1}},
		"a package that does not build is failed":   {lines(`{"Action":"build-fail","ImportPath":"p"}`, end("fail", "")), Tally{Failed: 1}},
		"a test that never ends is failed, too":     {lines(end("run", "A"), end("pass", "B")), Tally{Passed: 1, Failed: 2}},
		"a package that never ends is failed":       {lines(end("pass", "A")), Tally{Passed: 1, Failed: 1}},
		"a suite counts its specs":                  {lines(output("S", "\x1b[32mok\x1b[0m -- \x1b[1m3 Passed\x1b[0m | 0 Failed | 1 Pending | 2 Skipped\n"), end("pass", "S"), end("pass", "")), Tally{Passed: 3, Skipped: 3}},
		"a suite that fails outside specs counts":   {lines(output("S", "-- 0 Passed | 0 Failed | 0 Pending | 4 Skipped\n"), end("fail", "S"), end("fail", "")), Tally{Failed: 1, Skipped: 4}},
		"a package without tests counts as nothing": {lines(end("skip", "")), Tally{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := count(strings.NewReader(tc.events), io.Discard, false)
			if err != nil {
				t.Fatal(err)
			}
			got.Failures = nil // TestFailuresAreRepeated
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestOutputThatIsNotJSONIsAnError(t *testing.T) {
	if _, err := count(strings.NewReader("go: cannot find main module"), io.Discard, false); err == nil {
		t.Error("no error")
	}
}

func TestTheClosingLineSumsTheStages(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"1.json": `{"stage":"unit","passed":10,"failed":0,"skipped":1,"seconds":2}`,
		"2.json": `{"stage":"e2e","passed":3,"failed":2,"skipped":0,"seconds":60}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	failed, err := summarize(&out, []string{filepath.Join(folder, "1.json"), filepath.Join(folder, "2.json")})
	if err != nil || !failed {
		t.Errorf("failed %v, error %v", failed, err)
	}
	if !strings.HasSuffix(out.String(), "\n13 passed, 2 failed, 1 skipped\n") {
		t.Errorf("closing line: %q", out.String())
	}
}

func TestNoStageIsAFailure(t *testing.T) {
	var out strings.Builder
	if failed, _ := summarize(&out, nil); !failed || out.String() != "0 passed, 1 failed, 0 skipped\n" {
		t.Errorf("%v %q", failed, out.String())
	}
}

func TestFailuresAreRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		events string
		want   []string
	}{
		"the last lines of a test": {
			lines(output("A", "    a_test.go:7: got 1\n"), end("fail", "A"), end("pass", "B"), end("fail", "")),
			[]string{"FAILED p A", "    a_test.go:7: got 1"},
		},
		"messages of the compiler": {
			lines(`{"Action":"build-output","ImportPath":"p","Output":"# p\n"}`, `{"Action":"build-output","ImportPath":"p","Output":"a.go:1: undefined: x\n"}`,
				`{"Action":"build-fail","ImportPath":"p"}`, output("", "FAIL\tp [build failed]\n"), end("fail", "")),
			[]string{"FAILED p outside its tests", "a.go:1: undefined: x", "FAIL\tp [build failed]"},
		},
		"the reason of a spec, not its place in the timeline": {
			lines(output("S", "  \x1b[38;5;9m[FAILED] in [It] - x_test.go:1 @ 1\x1b[0m\n"), output("S", "  [FAILED] Timed out after 2s.\n"), output("S", "  Expected 1\n"), output("S", "------------\n"),
				output("S", "-- 1 Passed | 1 Failed | 0 Pending | 0 Skipped\n"), end("fail", "S"), end("fail", "")),
			[]string{"FAILED p S", "  [FAILED] Timed out after 2s.", "  Expected 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := count(strings.NewReader(tc.events), io.Discard, false)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Failures, tc.want) {
				t.Errorf("got %q, want %q", got.Failures, tc.want)
			}
		})
	}
}

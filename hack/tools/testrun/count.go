package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"

	"gotest.tools/gotestsum/testjson"
)

// Tally is the outcome of a stage.
type Tally struct {
	Stage   string  `json:"stage"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"`
	Seconds float64 `json:"seconds"`
	// Failures has the place and message of each failure, for the end of a long log.
	Failures []string `json:"failures,omitempty"`
}

func (t Tally) add(o Tally) Tally {
	t.Passed += o.Passed
	t.Failed += o.Failed
	t.Skipped += o.Skipped
	t.Seconds += o.Seconds
	t.Failures = append(t.Failures, o.Failures...)
	return t
}

var (
	ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")
	// specs is the closing line of a Ginkgo suite.
	specs = regexp.MustCompile(`-- (\d+) Passed \| (\d+) Failed \| (\d+) Pending \| (\d+) Skipped`)
)

// watcher is what testjson tells of each event.
type watcher struct {
	show   io.Writer
	format testjson.EventFormatter
	suites map[string]Tally // Ginkgo suites by suiteKey
	ended  map[string]bool  // packages
	shown  *progress
}

func suiteKey(pkg, test string) string { return pkg + " " + test }

func (w *watcher) Event(event testjson.TestEvent, execution *testjson.Execution) error {
	w.shown.hear(event)
	switch {
	case event.Action == testjson.ActionBuild:
		_, err := fmt.Fprint(w.show, event.Output)
		return err
	case event.Action == testjson.ActionOutput:
		if match := specs.FindStringSubmatch(ansi.ReplaceAllString(event.Output, "")); match != nil {
			number := func(i int) int { n, _ := strconv.Atoi(match[i]); return n }
			w.suites[suiteKey(event.Package, event.Test)] = Tally{Passed: number(1), Failed: number(2), Skipped: number(3) + number(4)}
		}
	case event.PackageEvent() && event.Action.IsTerminal():
		w.ended[event.Package] = true
	}
	return w.format.Format(event, execution)
}

// Err is for standard error, which goes its own way.
func (w *watcher) Err(string) error { return nil }

// count reads what go test -json wrote. The tally is good also if there is an error.
func count(events io.Reader, show io.Writer, stream bool) (Tally, error) {
	return countWith(&progress{}, events, show, stream)
}

// countWith tells how far it is beside.
func countWith(shown *progress, events io.Reader, show io.Writer, stream bool) (Tally, error) {
	format := "pkgname-and-test-fails"
	if stream {
		format = "standard-verbose"
	}
	w := &watcher{
		show: show, shown: shown, suites: map[string]Tally{}, ended: map[string]bool{},
		format: testjson.NewEventFormatter(show, format, testjson.FormatOptions{HideEmptyPackages: true, Icons: "text"}),
	}
	execution, err := testjson.ScanTestOutput(testjson.ScanConfig{Stdout: events, Handler: w})
	var total Tally
	for _, name := range execution.Packages() {
		total = total.add(w.countPackage(execution, name))
	}
	for _, test := range testjson.FilterFailedUnique(execution.Failed()) {
		total = total.add(w.countFailure(execution, test))
	}
	if err != nil {
		err = fmt.Errorf("not the output of go test -json: %w", err)
	}
	return total, err
}

// countPackage counts what passed and was skipped, by the leaves of the tree of tests.
func (w *watcher) countPackage(execution *testjson.Execution, name string) (t Tally) {
	pkg := execution.Package(name)
	parents := map[string]bool{}
	for _, test := range pkg.TestCases() {
		for parent := test.Test.Parent(); parent != ""; parent = testjson.TestName(parent).Parent() {
			parents[parent] = true
		}
	}
	for _, test := range pkg.Passed {
		suite, isSuite := w.suites[suiteKey(name, test.Test.Name())]
		switch {
		case isSuite:
			t = t.add(suite)
		case !parents[test.Test.Name()]:
			t.Passed++
		}
	}
	for _, test := range pkg.Skipped {
		if !parents[test.Test.Name()] {
			t.Skipped++
		}
	}
	// Build output comes without a package's name.
	if name != "" && !w.ended[name] {
		t.Failed++
		t.Failures = append(t.Failures, "FAILED "+name+" did not end")
	}
	return t
}

// countFailure counts a failed test, or a package that failed outside its tests.
func (w *watcher) countFailure(execution *testjson.Execution, test testjson.TestCase) Tally {
	name, output := test.Test.Name(), execution.OutputLines(test)
	if name == "" {
		name = "outside its tests"
		if execution.Package(test.Package).Total == 0 {
			output = append(execution.Errors(), output...)
		}
	}
	t := w.suites[suiteKey(test.Package, test.Test.Name())]
	t.Failed = max(t.Failed, 1) // a suite may fail outside its specs
	t.Failures = describeFailure(test.Package, name, output)
	return t
}

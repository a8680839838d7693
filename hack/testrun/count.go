package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// event is a line of go test -json (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64
	Output     string
}

// Tally is the outcome of a stage.
type Tally struct {
	Stage   string  `json:"stage"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"`
	Seconds float64 `json:"seconds"`
	// Failures says of each failure where it was and what it said, for the end of a long log.
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

// packageRun is what is known of a package while it runs.
type packageRun struct {
	tally  Tally
	output map[string][]string // by test; "" is the package's own
	parent map[string]bool     // tests that have subtests: only the leaves count
	result map[string]string
	suites map[string]Tally // tests that are Ginkgo suites
}

// counter reads events and shows each package when it ends.
type counter struct {
	show   io.Writer
	stream bool // show every line of output as it comes
	runs   map[string]*packageRun
	total  Tally
}

func newCounter(show io.Writer, stream bool) *counter {
	return &counter{show: show, stream: stream, runs: map[string]*packageRun{}}
}

func (c *counter) read(events io.Reader) error {
	decoder := json.NewDecoder(events)
	for {
		var e event
		if err := decoder.Decode(&e); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("not the output of go test -json: %w", err)
		}
		c.take(e)
	}
}

func (c *counter) take(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(c.show, e.Output)
		return
	case "build-fail", "start", "run", "pause", "cont", "bench", "attr":
		return
	}
	run := c.runs[e.Package]
	if run == nil {
		run = &packageRun{output: map[string][]string{}, parent: map[string]bool{}, result: map[string]string{}, suites: map[string]Tally{}}
		c.runs[e.Package] = run
	}
	switch {
	case e.Action == "output":
		run.takeOutput(e)
		if c.stream {
			fmt.Fprint(c.show, e.Output)
		}
	case e.Test != "":
		run.result[e.Test] = e.Action
		for i := strings.LastIndexByte(e.Test, '/'); i > 0; i = strings.LastIndexByte(e.Test[:i], '/') {
			run.parent[e.Test[:i]] = true
		}
	default:
		c.finish(e, run)
		delete(c.runs, e.Package)
	}
}

func (r *packageRun) takeOutput(e event) {
	r.output[e.Test] = append(r.output[e.Test], e.Output)
	if match := specs.FindStringSubmatch(ansi.ReplaceAllString(e.Output, "")); match != nil {
		number := func(i int) int { n, _ := strconv.Atoi(match[i]); return n }
		r.suites[e.Test] = Tally{Passed: number(1), Failed: number(2), Skipped: number(3) + number(4)}
	}
}

// finish counts a package that ended and shows it: a line if it passed, all
// that its failed tests wrote if not.
func (c *counter) finish(e event, run *packageRun) {
	for test, result := range run.result {
		counted := run.count(test, result)
		if counted.Failed > 0 {
			counted.Failures = describeFailure(e.Package, test, run.output[test])
		}
		run.tally = run.tally.add(counted)
	}
	if e.Action == "fail" && run.tally.Failed == 0 {
		run.tally.Failed = 1 // it did not build, or died outside a test
		run.tally.Failures = describeFailure(e.Package, "outside its tests", run.output[""])
	}
	c.total = c.total.add(run.tally)
	if e.Action == "fail" && !c.stream {
		for test, lines := range run.output {
			if test == "" || run.result[test] != "pass" && run.result[test] != "skip" {
				fmt.Fprint(c.show, strings.Join(lines, ""))
			}
		}
	}
	switch {
	case e.Action == "fail":
		fmt.Fprintf(c.show, "FAIL  %6.1f s  %s: %d failed, %d passed\n", e.Elapsed, e.Package, run.tally.Failed, run.tally.Passed)
	case run.tally.Passed+run.tally.Skipped > 0:
		fmt.Fprintf(c.show, "ok    %6.1f s  %s: %d passed, %d skipped\n", e.Elapsed, e.Package, run.tally.Passed, run.tally.Skipped)
	}
}

func (r *packageRun) count(test, result string) Tally {
	if suite, ok := r.suites[test]; ok {
		if result == "fail" && suite.Failed == 0 {
			suite.Failed = 1 // a failure outside the specs
		}
		return suite
	}
	switch {
	case result == "fail" && r.parent[test] && r.childFailed(test):
		return Tally{}
	case result == "fail":
		return Tally{Failed: 1}
	case r.parent[test]:
		return Tally{}
	case result == "skip":
		return Tally{Skipped: 1}
	}
	return Tally{Passed: 1}
}

func (r *packageRun) childFailed(test string) bool {
	for name, result := range r.result {
		if result == "fail" && strings.HasPrefix(name, test+"/") {
			return true
		}
	}
	return false
}

// close counts packages that never ended: go test itself was stopped.
func (c *counter) close() {
	for name := range c.runs {
		c.total.Failed++
		fmt.Fprintf(c.show, "FAIL  %s did not end\n", name)
	}
}

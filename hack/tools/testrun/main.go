package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	stage := flag.String("stage", "", "name of the stage whose go test -json is on standard input")
	into := flag.String("into", "", "file to keep the stage's count in")
	stream := flag.Bool("stream", false, "show all output as it comes")
	total := flag.Bool("total", false, "print the closing summary of the files that are given")
	flag.Parse()
	var failed bool
	var err error
	if *total {
		failed, err = summarize(os.Stdout, flag.Args())
	} else {
		failed, err = runStage(*stage, *into, *stream)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

func runStage(stage, into string, stream bool) (failed bool, err error) {
	start := time.Now()
	shown := &progress{}
	if !stream { // What is streamed tells by itself.
		defer shown.remind(os.Stderr, stage, remindEvery)()
	}
	t, err := countWith(shown, os.Stdin, os.Stdout, stream)
	t.Stage, t.Seconds = stage, time.Since(start).Seconds()
	if err != nil || t.Passed+t.Failed == 0 {
		t.Failed++ // what ran no test has not passed
	}
	text, marshalErr := json.Marshal(t)
	if marshalErr != nil {
		return true, marshalErr
	}
	if writeErr := os.WriteFile(into, text, 0o600); writeErr != nil {
		return true, writeErr
	}
	return t.Failed > 0, err
}

// summarize prints what failed, a line for each stage and, as the very last line, the sums.
func summarize(out io.Writer, files []string) (failed bool, err error) {
	var sum Tally
	var table strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return true, err
		}
		var t Tally
		if err := json.Unmarshal(text, &t); err != nil {
			return true, fmt.Errorf("%s: %w", file, err)
		}
		fmt.Fprintf(&table, "%-12s %5d passed %4d failed %4d skipped  %7.1f s\n", t.Stage, t.Passed, t.Failed, t.Skipped, t.Seconds)
		sum = sum.add(t)
	}
	// Before the table, so that the end of a log has both.
	for _, line := range sum.Failures {
		fmt.Fprintln(out, line)
	}
	fmt.Fprint(out, table.String())
	if sum.Passed == 0 && sum.Failed == 0 {
		sum.Failed = 1
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", sum.Passed, sum.Failed, sum.Skipped)
	return sum.Failed > 0, nil
}

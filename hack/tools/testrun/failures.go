package main

import (
	"regexp"
	"slices"
	"strings"
)

const (
	// failureLines and failureWidth bound what is repeated of a failure.
	failureLines = 12
	failureWidth = 600
)

// ginkgoFailure is the line above what a spec of Ginkgo says of its failure.
var ginkgoFailure = regexp.MustCompile(`^\s*\[(FAILED|TIMEDOUT|PANICKED|INTERRUPTED|ABORTED)\] `)

// describeFailure is the name of a failed test and its message: the first
// failures of a Ginkgo suite, or else the last lines of the output.
func describeFailure(pkg, test string, output []string) []string {
	var lines []string
	for _, line := range output {
		line = strings.TrimRight(ansi.ReplaceAllString(line, ""), "\n")
		if len(line) > failureWidth {
			line = line[:failureWidth] + " ..."
		}
		lines = append(lines, line)
	}
	described := []string{"FAILED " + pkg + " " + test}
	found := false
	for i := 0; i < len(lines); i++ {
		// The timeline of a spec has the same words with "in [It]" and nothing of the reason.
		if !ginkgoFailure.MatchString(lines[i]) || strings.Contains(lines[i], "] in [") {
			continue
		}
		found = true
		end := min(i+failureLines, len(lines))
		// A line of dashes ends the output of a spec.
		if rule := slices.IndexFunc(lines[i:end], func(line string) bool { return strings.HasPrefix(line, "-----") }); rule > 0 {
			end = i + rule
		}
		described = append(described, lines[i:end]...)
		i = end - 1
	}
	if !found {
		described = append(described, lines[max(0, len(lines)-failureLines):]...)
	}
	return described[:min(len(described), 5*failureLines)]
}

package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/howdah/howdah/test/verdict"
)

const (
	// goalGrowth is what the job must get of the links of all servers afterwards.
	goalGrowth = 0.85
	// longestMove is how long work by paths may wait for a move (docs/operate/operations.md): 5 s for files that are open, and 30 s for the end.
	longestMove = 35
	// every10 is the length of the parts of the course that is printed, in seconds.
	every10 = 10
)

// growthReport is what the command prints of a run in which data servers are added. capBytes is the cap of one server's link in bytes per second.
func growthReport(g growth, first, all int, capBytes float64) (string, verdict.Outcome) {
	reasons := whyInvalid(g.links, g.windows)
	result := verdict.GoalsMet
	var text strings.Builder
	fmt.Fprintf(&text, "\nOne mount, %d directories, %d processes that read around the page cache; MB = 10^6 bytes of file data\n",
		grownDirectories, readersEach*grownDirectories)
	fmt.Fprintf(&text, "%-52s %8.1f MB/s\n", "cap of one server's link (all bytes on the wire)", capBytes/1e6)
	for _, l := range g.links {
		fmt.Fprintf(&text, "%-52s %8.1f MB/s\n", "before: "+l.Name, l.Rate/1e6)
	}
	judge := func(what, value string, met bool, goal string) {
		judged := ""
		if goal != "" && len(reasons) == 0 {
			judged = "  goal " + goal + ": met"
			if !met {
				judged, result = "  goal "+goal+": NOT MET", verdict.GoalsNotMet
			}
		}
		fmt.Fprintf(&text, "%-52s %8s%s\n", what, value, judged)
	}
	if len(g.samples) > 0 {
		growthFigures(&text, g, first, all, capBytes, judge)
	}
	for _, w := range g.windows {
		fmt.Fprintf(&text, "CPU of this machine, %-38s %5.1f %% idle\n", w.Name, 100*w.Use.Idle)
	}
	if len(reasons) > 0 {
		text.WriteString(verdict.NotJudged(verdict.NotLinksAlone, reasons, ", or with a lower cap (HOWDAH_GROW_CAP)"))
		return text.String(), verdict.Invalid
	}
	return text.String(), result
}

func growthFigures(text *strings.Builder, g growth, first, all int, capBytes float64, judge func(what, value string, met bool, goal string)) {
	before, after := rateOf(g.samples, g.before), rateOf(g.samples, g.after)
	grows := span{g.labelled, g.moved}
	fmt.Fprintf(text, "%-52s %8.1f MB/s\n", fmt.Sprintf("the job with %d data server", first), before/1e6)
	fmt.Fprintf(text, "%-52s %8.1f MB/s, %.0f s\n", "the job from the label to the last move", rateOf(g.samples, grows)/1e6, grows.to-grows.from)
	fmt.Fprintf(text, "%-52s %8.1f MB/s\n", fmt.Sprintf("the job with %d data servers", all), after/1e6)
	fmt.Fprintf(text, "new data servers serve after %.0f s; %d directories moved in %.0f s; events MoveDelayed: %d\n",
		g.serving-g.labelled, g.directories, g.moved-g.serving, g.delayed)
	var course []string
	for from := g.before.from; from+every10 <= g.after.to; from += every10 {
		course = append(course, fmt.Sprintf("%.1f", rateOf(g.samples, span{from, from + every10})/1e6))
	}
	fmt.Fprintf(text, "every %d s, MB/s: %s\n\n", every10, strings.Join(course, " "))

	ratio := func(value float64) string { return fmt.Sprintf("%.3f", value) }
	judge(fmt.Sprintf("before / (%d x cap)", first), ratio(before/(float64(first)*capBytes)), true, "")
	part := after / (float64(all) * capBytes)
	judge(fmt.Sprintf("after / (%d x cap)", all), ratio(part), part >= goalGrowth, fmt.Sprintf(">= %.2f", goalGrowth))
	judge("after / before", ratio(after/before), true, "")
	longest, errors, failed := 0.0, 0, ""
	for _, r := range g.samples {
		longest = math.Max(longest, r.longest)
		if errors == 0 && r.errors > 0 {
			failed = r.failed
		}
		errors += r.errors
	}
	judge("longest wait for an open, a read or a close, s", fmt.Sprintf("%.1f", longest), longest <= longestMove, fmt.Sprintf("<= %d", longestMove))
	judge("errors of the job", fmt.Sprint(errors), errors == 0, "0")
	judge("remounts, restarts, changed files", fmt.Sprint(len(g.wrong)), len(g.wrong) == 0, "0")
	judge("other pods on storage-only nodes", fmt.Sprint(len(g.others)), len(g.others) == 0, "0")
	for _, what := range append(g.wrong, g.others...) {
		fmt.Fprintf(text, "  - %s\n", what)
	}
	if failed != "" {
		fmt.Fprintf(text, "  - %s\n", failed)
	}
}

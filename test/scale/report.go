package main

import (
	"fmt"
	"strings"

	"github.com/howdah/howdah/test/verdict"
)

// Goals of the project for this benchmark.
const (
	goalScaling   = 0.95
	goalNamespace = 0.98
)

// outcome is all that a run has found out.
type outcome struct {
	figures []figure
	links   []verdict.Link
	windows []verdict.Window
}

// report is what the command prints: every figure with its rounds, then the ratios that count, or why none does.
// capBytes is the nominal cap of one server's link in bytes per second.
func report(o outcome, servers int, capBytes float64, seconds, rounds int) (string, verdict.Outcome) {
	reasons := whyInvalid(o.links, o.windows)
	result := verdict.GoalsMet
	median := map[string]float64{}
	var text strings.Builder
	fmt.Fprintf(&text, "\nReading around the page cache, %d rounds of %d s, medians; MB = 10^6 bytes of file data\n", rounds, seconds)
	fmt.Fprintf(&text, "%-44s %8.1f MB/s\n", "cap of one server's link (all bytes on the wire)", capBytes/1e6)
	for _, l := range o.links {
		fmt.Fprintf(&text, "%-44s %8.1f MB/s\n", "before: "+l.Name, l.Rate/1e6)
	}
	for _, f := range o.figures {
		median[f.name] = verdict.Median(f.rounds)
		each := make([]string, 0, len(f.rounds))
		for _, r := range f.rounds {
			each = append(each, fmt.Sprintf("%.1f", r/1e6))
		}
		fmt.Fprintf(&text, "%-44s %8.1f MB/s   (%s)\n", f.name, median[f.name]/1e6, strings.Join(each, " "))
	}
	n := float64(servers)
	text.WriteString("\n")
	ratio := func(what string, value, goal float64) {
		judged := ""
		if goal > 0 && len(reasons) == 0 {
			judged = fmt.Sprintf("  goal >= %.2f: met", goal)
			if value < goal {
				judged, result = fmt.Sprintf("  goal >= %.2f: NOT MET", goal), verdict.GoalsNotMet
			}
		}
		fmt.Fprintf(&text, "%-66s %5.3f%s\n", what, value, judged)
	}
	if len(o.figures) > 0 {
		ratio(fmt.Sprintf("one mount over %d servers / (%d x cap)", servers, servers), median[allServers]/(n*capBytes), goalScaling)
		ratio(fmt.Sprintf("one mount over %d servers / (%d x raw TCP of one link)", servers, servers), median[allServers]/(n*median[rawTCP]), 0)
		ratio(fmt.Sprintf("%d servers / (%d x 1 server), through one mount", servers, servers), median[allServers]/(n*median[oneServer]), 0)
		ratio("namespace mount / direct mounts", median[allServers]/median[directMount], goalNamespace)
		ratio("nconnect=16 / nconnect=1", median[allServers]/median[narrowMount], 0)
	}
	for _, w := range o.windows {
		fmt.Fprintf(&text, "CPU of this machine, %-53s %5.1f %% idle\n", w.Name, 100*w.Use.Idle)
	}
	if len(reasons) > 0 {
		text.WriteString(verdict.NotJudged(verdict.NotLinksAlone, reasons, ", or with a lower cap (HOWDAH_SCALE_CAP)"))
		return text.String(), verdict.Invalid
	}
	return text.String(), result
}

package main

import (
	"fmt"
	"strings"
)

// Goals of DESIGN section 9.
const (
	goalScaling   = 0.95
	goalNamespace = 0.98
)

// report is what the command prints: every figure with its rounds, then the ratios that count.
// capBytes is the nominal cap of one server's link in bytes per second.
func report(figures []figure, servers int, capBytes float64, seconds, rounds int) string {
	median := map[string]float64{}
	var text strings.Builder
	fmt.Fprintf(&text, "\nReading around the page cache, %d rounds of %d s, medians; MB = 10^6 bytes of file data\n", rounds, seconds)
	fmt.Fprintf(&text, "%-44s %8.1f MB/s\n", "cap of one server's link (all bytes on the wire)", capBytes/1e6)
	for _, f := range figures {
		median[f.name] = f.median()
		each := make([]string, 0, len(f.rounds))
		for _, r := range f.rounds {
			each = append(each, fmt.Sprintf("%.1f", r/1e6))
		}
		fmt.Fprintf(&text, "%-44s %8.1f MB/s   (%s)\n", f.name, f.median()/1e6, strings.Join(each, " "))
	}
	n := float64(servers)
	text.WriteString("\n")
	ratio := func(what string, value, goal float64) {
		verdict := ""
		if goal > 0 {
			verdict = fmt.Sprintf("  goal >= %.2f: %s", goal, map[bool]string{true: "met", false: "NOT MET"}[value >= goal])
		}
		fmt.Fprintf(&text, "%-66s %5.3f%s\n", what, value, verdict)
	}
	ratio(fmt.Sprintf("one mount over %d servers / (%d x cap)", servers, servers), median[allServers]/(n*capBytes), goalScaling)
	ratio(fmt.Sprintf("one mount over %d servers / (%d x raw TCP of one link)", servers, servers), median[allServers]/(n*median[rawTCP]), 0)
	ratio(fmt.Sprintf("%d servers / (%d x 1 server), through one mount", servers, servers), median[allServers]/(n*median[oneServer]), 0)
	ratio("namespace mount / direct mounts", median[allServers]/median[directMount], goalNamespace)
	ratio("nconnect=16 / nconnect=1", median[allServers]/median[narrowMount], 0)
	return text.String()
}

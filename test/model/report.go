package model

import (
	"fmt"
	"strings"
	"time"

	"github.com/howdah/howdah/test/verdict"
)

// Goals of issue 27, for links of 100 MB/s.
const (
	// goalScaling is the least that N servers must give of N links, through one mount.
	goalScaling = 0.96
	// goalNamespace is the least that the namespace mount must give of what direct mounts give.
	goalNamespace = 0.99
	// leastIdle of this machine's CPUs in a measurement: with less, it is the CPU that is measured.
	leastIdle = 0.05
	// leastRaw is what plain TCP must get of a link's cap. A packet of 1,514 bytes has 1,448 of payload: 0.956 at best.
	leastRaw = 0.9
)

// Spoilt gives the reasons why the run can't be judged; none is good.
func (r *Run) Spoilt() (reasons []string) {
	for _, f := range r.Figures {
		if f.Kind == RawTCP {
			link := verdict.Link{Name: plural(f.Servers, "link"), Rate: f.Median(), Cap: float64(f.Servers) * r.Link / 8}
			reasons = append(reasons, link.Spoilt(leastRaw)...)
		}
	}
	for _, w := range r.Windows {
		reasons = append(reasons, w.Spoilt(leastIdle)...)
	}
	return reasons
}

// Report is what bench-model prints: each figure with its rounds, then the ratios with their goals, or why none is judged.
func (r *Run) Report() (string, verdict.Outcome) {
	reasons := r.Spoilt()
	var text strings.Builder
	fmt.Fprintf(&text, "%s, Linux %s as client, %d CPUs for all, links of %.0f Mbit/s\n", r.When.UTC().Format(time.DateOnly), r.Kernel, r.CPUs, r.Link/1e6)
	text.WriteString("Medians (each round); MB = 10^6 bytes of file data\n\n")
	for _, f := range r.Figures {
		fmt.Fprintf(&text, "%-100s %9s   (%s)\n", f.Way, number(f.Kind, f.Median()), strings.Join(each(f), " "))
	}
	outcome := verdict.GoalsMet
	text.WriteString("\n")
	for _, ratio := range r.ratios() {
		judged := ""
		if ratio.goal > 0 && len(reasons) == 0 {
			judged = fmt.Sprintf("  goal >= %.2f: met", ratio.goal)
			if ratio.value < ratio.goal {
				judged, outcome = fmt.Sprintf("  goal >= %.2f: NOT MET", ratio.goal), verdict.GoalsNotMet
			}
		}
		fmt.Fprintf(&text, "%-100s %9.3f%s\n", ratio.what, ratio.value, judged)
	}
	if slope, explained, ok := r.fit(); ok {
		fmt.Fprintf(&text, "\nStraight line through the reads: %.1f MB/s for each server, R² = %.4f\n", slope/1e6, explained)
	}
	if len(reasons) == 0 {
		return text.String(), outcome
	}
	text.WriteString("\nINVALID: nothing is judged, for it was not the links alone that were measured\n")
	const most = 8
	for i, reason := range reasons {
		if i == most {
			fmt.Fprintf(&text, "  - and %d more\n", len(reasons)-most)
			break
		}
		fmt.Fprintf(&text, "  - %s\n", reason)
	}
	text.WriteString("Run it again when the machine has nothing else to do, or with slower links (HOWDAH_MODEL_LINK).\n")
	return text.String(), verdict.Invalid
}

// String names a way in the report.
func (w Way) String() string {
	text := string(w.Kind)
	if w.Servers > 0 {
		text += ", " + plural(w.Servers, "server")
	}
	if w.Connections > 0 && w.Connections != UsualConnections {
		text += fmt.Sprintf(", nconnect=%d", w.Connections)
	}
	if w.Delay > 0 {
		text += fmt.Sprintf(", %s of delay", w.Delay)
		if w.Connections == UsualConnections {
			text += fmt.Sprintf(", nconnect=%d", w.Connections)
		}
	}
	if w.ReadAhead > 0 && w.ReadAhead != UsualReadAhead {
		text += fmt.Sprintf(", read-ahead %d KiB", w.ReadAhead)
	}
	return text
}

type ratio struct {
	what        string
	value, goal float64
}

// ratios are those that count, of what the run has measured.
func (r *Run) ratios() (found []ratio) {
	link := r.of(RawTCP, 1).Median()
	add := func(what string, above, below, goal float64) {
		if above > 0 && below > 0 {
			found = append(found, ratio{what, above / below, goal})
		}
	}
	for _, kind := range []Kind{Reads, Writes} {
		goal := 0.0
		if kind == Reads {
			goal = goalScaling
		}
		for n := 1; n <= r.Servers; n++ {
			add(fmt.Sprintf("%s, %s / (%d x plain TCP of one link)", kind, plural(n, "server"), n), r.of(kind, n).Median(), float64(n)*link, goal)
		}
	}
	add("namespace mount / direct mounts, "+plural(r.Servers, "server"), r.of(Reads, r.Servers).Median(), r.of(DirectReads, r.Servers).Median(), goalNamespace)
	return found
}

// fit is the straight line through the reads by the number of servers.
func (r *Run) fit() (slope, explained float64, ok bool) {
	var servers, rates []float64
	for n := 1; n <= r.Servers; n++ {
		if f := r.of(Reads, n); len(f.Rounds) > 0 {
			servers, rates = append(servers, float64(n)), append(rates, f.Median())
		}
	}
	if len(servers) < 3 {
		return 0, 0, false
	}
	slope, _, explained = line(servers, rates)
	return slope, explained, true
}

func each(f Figure) (texts []string) {
	for _, value := range f.Rounds {
		texts = append(texts, strings.TrimSuffix(number(f.Kind, value), " MB/s"))
	}
	return texts
}

// number writes a value with its unit.
func number(kind Kind, value float64) string {
	switch kind {
	case Mkdir, MkdirMany, Entries:
		return fmt.Sprintf("%.1f /s", value)
	}
	return fmt.Sprintf("%.1f MB/s", value/1e6)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

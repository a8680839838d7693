package model

import (
	"fmt"
	"slices"
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
	// goalHot is the least that N data servers of one hot directory must give N clients of N times what one gives the same clients.
	goalHot = 0.9
	// leastIdle of this machine's CPUs in a measurement: with less, it is the CPU that is measured.
	leastIdle = 0.05
	// leastRaw is what plain TCP must get of a link's cap. A packet of 1,514 bytes has 1,448 of payload: 0.956 at best.
	leastRaw = 0.9
)

// hotNote says what the figures of a hot directory are not.
const hotNote = "\nThe data servers of the one directory have one local file system below them in place of CephFS: referrals, the choice of data servers and\n" +
	"the network were measured, and not Ceph, its capabilities or its metadata servers.\n"

// Spoilt gives the reasons why the run can't be judged; none is good.
func (r *Run) Spoilt() (reasons []string) {
	if r.CPUs < r.MachineCPUs {
		// What is idle is known of the whole machine only.
		reasons = append(reasons, fmt.Sprintf("the run may use %d of this machine's %d CPUs only (its affinity or its cpuset)", r.CPUs, r.MachineCPUs))
	}
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
	fmt.Fprintf(&text, "%s, Linux %s as client, %d CPUs for all (%s), links of %.0f Mbit/s\n",
		r.When.UTC().Format(time.DateOnly), r.Kernel, r.CPUs, r.Processor, r.Link/1e6)
	text.WriteString("Medians (each round), CPU seconds of the serving processes for each GB; MB = 10^6 bytes of file data\n\n")
	for _, f := range r.Figures {
		fmt.Fprintf(&text, "%-100s %9s   (%s)", f.Way, number(f.Kind, f.Median()), strings.Join(each(f), " "))
		if len(f.CPU) > 0 {
			fmt.Fprintf(&text, "   %.2f s/GB", verdict.Median(f.CPU))
		}
		text.WriteString("\n")
	}
	outcome := verdict.GoalsMet
	text.WriteString("\n")
	for _, ratio := range append(r.ratios(), r.besideRatios()...) {
		judged := ""
		if ratio.goal > 0 && len(reasons) == 0 {
			judged = fmt.Sprintf("  goal >= %.2f: met", ratio.goal)
			if ratio.value < ratio.goal {
				judged, outcome = fmt.Sprintf("  goal >= %.2f: NOT MET", ratio.goal), verdict.GoalsNotMet
			}
		}
		fmt.Fprintf(&text, "%-100s %9.3f%s\n", ratio.what, ratio.value, judged)
	}
	paper := ""
	if len(reasons) == 0 {
		paper = r.paper()
	}
	for _, part := range []string{r.lines(), paper, r.settings()} {
		if part != "" {
			text.WriteString("\n" + part)
		}
	}
	if slices.ContainsFunc(r.Figures, func(f Figure) bool { return f.Kind == HotReads }) {
		text.WriteString(hotNote)
	}
	for _, missing := range r.Missing {
		fmt.Fprintf(&text, "\nNot measured: %s\n", missing)
	}
	if len(reasons) == 0 {
		return text.String(), outcome
	}
	text.WriteString(verdict.NotJudged(verdict.NotLinksAlone, reasons, ", or with slower links (HOWDAH_MODEL_LINK)"))
	return text.String(), verdict.Invalid
}

// String names a way in the report.
func (w Way) String() string {
	text := string(w.Kind)
	switch {
	case w.By != "":
		text += ", " + string(w.By)
	case w.Servers > 0:
		text += ", " + plural(w.Servers, "server")
	}
	if w.Clients > 1 {
		text += ", " + plural(w.Clients, "client")
	}
	if w.Percent > 0 {
		text += fmt.Sprintf(", each with %d %% of a CPU", w.Percent)
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

// ratios are those that count, of what the run has measured of Howdah.
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
	for _, f := range r.Figures {
		if one := f.Way; f.Kind == HotReads && f.Servers > 1 {
			one.Servers = 1
			below := r.find(func(w Way) bool { return w == one }).Median()
			add(fmt.Sprintf("%s / (%d x one server)", f.Way, f.Servers), f.Median(), float64(f.Servers)*below, goalHot)
		}
	}
	for _, f := range r.Figures {
		if f.Clients > 1 && f.By == "" && f.Kind != RawTCP {
			add(fmt.Sprintf("%s / (%d x plain TCP of one link)", f.Way, f.Servers), f.Median(), float64(f.Servers)*link, 0)
		}
	}
	for _, f := range r.Figures {
		if f.Percent > 0 && f.By == "" && f.Servers > 1 && slices.Contains(SmallFiles, f.Kind) {
			one := f.Way
			one.Servers = 1
			below := r.find(func(w Way) bool { return w == one }).Median()
			add(fmt.Sprintf("%s / (%d x one server)", f.Way, f.Servers), f.Median(), float64(f.Servers)*below, 0)
		}
	}
	return found
}

// besideRatios are one of Howdah's data servers beside others, and the CPU that they take.
func (r *Run) besideRatios() (found []ratio) {
	for _, f := range r.Figures {
		if f.By == "" {
			continue
		}
		own := f.Way
		own.By = ""
		howdah := r.find(func(w Way) bool { return w == own })
		if f.Median() > 0 && howdah.Median() > 0 {
			limited := ""
			if f.Percent > 0 {
				limited = fmt.Sprintf(", %d %% of a CPU", f.Percent)
			}
			found = append(found, ratio{what: fmt.Sprintf("%s%s: one of Howdah's servers / %s", f.Kind, limited, f.By), value: howdah.Median() / f.Median()})
		}
		if len(f.CPU) > 0 && len(howdah.CPU) > 0 {
			found = append(found, ratio{
				what:  fmt.Sprintf("CPU per GB, %s: one of Howdah's servers / %s", f.Kind, f.By),
				value: verdict.Median(howdah.CPU) / verdict.Median(f.CPU),
			})
		}
	}
	return found
}

// Line is the straight line through what Howdah's servers gave, by their number.
type Line struct {
	Kind    Kind
	Percent int
	// Offset and Slope are in the kind's unit: rate = Offset + Slope × servers.
	Offset, Slope float64
	// Residual is how far the farthest median is from the line, as a part of it. Explained is R².
	Residual, Explained float64
}

// Lines are those through all that was measured with three numbers of servers or more.
func (r *Run) Lines() (found []Line) {
	type series struct {
		kind    Kind
		percent int
	}
	var all []series
	for _, f := range r.Figures {
		of := f.Way
		of.Percent = 0
		if s := (series{f.Kind, f.Percent}); of.usual() && f.Kind != RawTCP && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	for _, s := range all {
		var servers, rates []float64
		for n := 1; n <= r.Servers; n++ {
			f := r.find(func(w Way) bool {
				of := w
				of.Percent = 0
				return of.usual() && w.Kind == s.kind && w.Percent == s.percent && w.Servers == n
			})
			if len(f.Rounds) > 0 {
				servers, rates = append(servers, float64(n)), append(rates, f.Median())
			}
		}
		if len(servers) < 3 {
			continue
		}
		l := fit(servers, rates)
		found = append(found, Line{
			Kind: s.kind, Percent: s.percent, Offset: l.offset, Slope: l.slope,
			Residual: l.residual / l.at(float64(r.Servers)), Explained: l.explained,
		})
	}
	return found
}

func (r *Run) lines() string {
	var text strings.Builder
	for _, l := range r.Lines() {
		way := Way{Kind: l.Kind, Percent: l.Percent}
		fmt.Fprintf(&text, "%-100s %s + %s x servers; farthest point %.1f %%, R² = %.4f\n", way, number(l.Kind, l.Offset), number(l.Kind, l.Slope),
			100*l.Residual, l.Explained)
	}
	return text.String()
}

func each(f Figure) (texts []string) {
	for _, value := range f.Rounds {
		texts = append(texts, strings.TrimSuffix(number(f.Kind, value), " MB/s"))
	}
	return texts
}

// number writes a value with its unit.
func number(kind Kind, value float64) string {
	if !kind.IsBytes() {
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

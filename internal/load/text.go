package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Text is the result as a table, with what needs attention below it.
func (r Result) Text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s from %s", r.Run, seconds(r.Seconds), r.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	if r.OwnPause > 0 {
		fmt.Fprintf(&text, "; this client itself paused for %s at most", seconds(r.OwnPause))
	}
	text.WriteString("\n\n")
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DIRECTORY\tOPERATIONS\tCHECKED\tLONGEST STALL\tERRORS\tESTALE\tBAD BLOCKS\tSTOLEN LOCKS\tLOST NAMES\tEXTRA NAMES")
	for _, d := range r.Directories {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", d.Path, d.Operations, d.Checked, d.Longest,
			d.ErrorCount()-d.Stale, d.Stale, d.BadBlocks, d.StolenLocks, d.LostNames, d.ExtraNames)
	}
	_ = table.Flush() // It writes to memory.
	for _, d := range r.Directories {
		d.details(&text)
	}
	if r.Together != nil {
		for _, effect := range r.Together.Effects {
			fmt.Fprintf(&text, "\nall directories: %s", effect)
		}
		text.WriteString("\n")
	}
	return text.String()
}

func (d Directory) details(text *strings.Builder) {
	line := func(format string, args ...any) { fmt.Fprintf(text, "\n"+d.Path+": "+format, args...) }
	if d.Random != nil {
		least, at := d.Random.Least()
		line("random 8 KiB, 70 %% reads: median %d operations per second, least %d at %s", d.Random.Median(), least, at.Format(clockFormat))
		for _, effect := range d.Random.Effects {
			line("%s", effect)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Errors)) {
		line("%d errors %s", d.Errors[name], name)
	}
	if d.FirstError != "" {
		line("first error: %s", d.FirstError)
	}
	if d.Doubtful > 0 {
		line("%d operations were done before they were asked for again", d.Doubtful)
	}
	for _, stall := range d.Stalls {
		line("stall of %s", stall)
	}
	for _, unfinished := range d.Unfinished {
		line("not finished: %s", unfinished)
	}
	for _, finding := range d.Findings {
		line("WRONG: %s", finding)
	}
	if !strings.HasSuffix(text.String(), "\n") {
		text.WriteString("\n")
	}
}

// String is how long it took, when, and what.
func (s Stall) String() string {
	if s.Operation == "" {
		return "none"
	}
	return fmt.Sprintf("%s at %s (%s)", seconds(s.Seconds), s.At.UTC().Format(clockFormat), s.Operation)
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}

// Verdict is an error if the result has errors or wrong data, or, with a maxStall over 0, a stall over it.
func (r Result) Verdict(maxStall time.Duration) error {
	var wrong []string
	for _, d := range r.Directories {
		if n := d.ErrorCount(); n > 0 {
			wrong = append(wrong, fmt.Sprintf("%s had %d errors", d.Path, n))
		}
		if n := d.Wrong(); n > 0 {
			wrong = append(wrong, fmt.Sprintf("%s has wrong data (%d findings)", d.Path, n))
		}
		if maxStall > 0 && d.Longest.Seconds > maxStall.Seconds() {
			wrong = append(wrong, fmt.Sprintf("%s stalled for %s, which is more than %s", d.Path, seconds(d.Longest.Seconds), maxStall))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return nil
}

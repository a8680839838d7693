package benchmark

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/howdah/howdah/api/v1alpha1"
)

// Table is a result as text. MB is 10^6 bytes; MLPerf's own tables have MiB of nominal sizes.
func Table(p Plan, r *v1alpha1.BenchmarkResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "unet3d, %d x %s, %d clients, %d epochs of %d steps, %d samples of %s on average\n",
		p.Accelerators, p.AcceleratorType, p.Clients, p.Epochs, p.Steps(), p.Samples, megabytes(p.SampleSize))
	fmt.Fprintf(&b, "VERDICT: %s (AU %s %%, at least %.0f %% is required)\n", strings.ToUpper(string(r.Verdict)), r.AUPercent, PassAUPercent)
	if r.Message != "" {
		fmt.Fprintf(&b, "The figures do not measure the share: %s.\n", r.Message)
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }
	row("accelerators", fmt.Sprint(r.Accelerators))
	row("AU", r.AUPercent+" %")
	row("samples/s", r.SamplesPerSecond)
	row("read", mbps(*r.BytesPerSecond)+" MB/s", "("+megabytes(*r.BytesRead)+")")
	flush(w, &b)
	row("client", "node", "AU %", "MB/s", "CPU left %")
	for _, c := range r.PerClient {
		row(c.Name, dash(c.NodeName), c.AUPercent, mbps(*c.BytesPerSecond), dash(c.CPUIdlePercent))
	}
	flush(w, &b)
	if len(r.PerServer) == 0 {
		fmt.Fprintln(&b, "data servers: could not read their counters")
	} else {
		row("data server", "MB read", "MB/s")
		for _, s := range r.PerServer {
			row(s.Name, mbps(*s.BytesRead), mbps(*s.BytesPerSecond))
		}
		_ = w.Flush() // a strings.Builder never fails
		fmt.Fprintf(&b, "busiest/least busy data server: %s\n", Balance(r.PerServer))
	}
	b.WriteByte('\n')
	row("MLPerf Storage rule", "", "")
	for _, rule := range r.Rules {
		row(rule.Name, strings.ToLower(string(rule.State)), rule.Message)
	}
	_ = w.Flush()
	fmt.Fprintf(&b, "\nThis result is %s. MB is 10^6 bytes; bytes are those that were read.\n", r.Label)
	return b.String()
}

func flush(w *tabwriter.Writer, b *strings.Builder) {
	_ = w.Flush() // a strings.Builder never fails
	b.WriteByte('\n')
}

// Balance is the ratio of the bytes of the busiest data server to those of the least busy: "1.08"; "infinite" if one read nothing.
func Balance(servers []v1alpha1.ServerResult) string {
	busiest, idlest := int64(0), int64(-1)
	for _, s := range servers {
		busiest = max(busiest, *s.BytesRead)
		if idlest < 0 || *s.BytesRead < idlest {
			idlest = *s.BytesRead
		}
	}
	if idlest <= 0 {
		return "infinite"
	}
	return decimal(float64(busiest) / float64(idlest))
}

func mbps(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/1e6) }

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

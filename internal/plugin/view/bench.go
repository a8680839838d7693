package view

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/text"
)

// Bench is an MLPerfStorageJob with its progress or its result.
type Bench struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Share     string `json:"share"`
	Condition
	What     string                    `json:"what"`
	Progress string                    `json:"progress,omitempty"`
	Took     string                    `json:"took,omitempty"`
	Result   *v1alpha1.BenchmarkResult `json:"result,omitempty"`
}

// NewBench makes the report of a job.
func NewBench(job *v1alpha1.MLPerfStorageJob) Bench {
	b := Bench{
		Namespace: job.Namespace, Name: job.Name, Share: job.Spec.FileShareRef.Name, Condition: summary(job.Status.Conditions, v1alpha1.JobSucceeded),
		What: fmt.Sprintf("%s with %d %s, %s", job.Spec.Workload, job.Spec.Accelerator.Count, job.Spec.Accelerator.Type, plural(int(job.Spec.Clients), "client")),
	}
	if job.Status.CompletionTime == nil {
		b.Progress = job.Status.Progress
	} else if job.Status.StartTime != nil {
		b.Took = age(job.Status.CompletionTime.Time, *job.Status.StartTime)
	}
	if job.Status.Result.Verdict != "" {
		b.Result = job.Status.Result.DeepCopy()
	}
	return b
}

// Ended reports whether the job is over.
func (b Bench) Ended() bool { return b.Health == Well || b.Health == Stuck }

// Verdict is the job's verdict; "" if it has none.
func (b Bench) Verdict() v1alpha1.Verdict {
	if b.Result == nil {
		return ""
	}
	return b.Result.Verdict
}

// Line is the progress in one line.
func (b Bench) Line() string {
	line := strings.TrimPrefix(b.Reason+": "+b.Message, ": ")
	if b.Progress != "" {
		line = b.Reason + ": " + b.Progress
	}
	return text.Clean(line)
}

// Latest is the newest job of a share; nil if it has none.
func Latest(jobs []v1alpha1.MLPerfStorageJob, share string) (latest *v1alpha1.MLPerfStorageJob) {
	for i := range jobs {
		if jobs[i].Spec.FileShareRef.Name == share && (latest == nil || latest.CreationTimestamp.Before(&jobs[i].CreationTimestamp)) {
			latest = &jobs[i]
		}
	}
	return latest
}

// Text is the report.
func (b Bench) Text(page text.Page) string {
	var s strings.Builder
	head := append([]text.Span{text.S(text.Strong, "MLPerfStorageJob "+b.Namespace+"/"+b.Name)}, b.words()...)
	if b.Health == Well {
		head[1].Text = v1alpha1.JobSucceeded
	}
	s.WriteString(page.Paragraph("", "  ", append(head, some(b.What, "share "+b.Share, b.Progress)...)...))
	r := b.Result
	if r == nil {
		if b.Ended() {
			s.WriteString(page.Paragraph("", "  ", text.S(text.Plain, "The job ended without a result. For the reason: kubectl howdah explain mlps/"+b.Name+" -n "+b.Namespace)))
		}
		return s.String()
	}
	style := map[v1alpha1.Verdict]text.Style{v1alpha1.VerdictPassed: text.Good, v1alpha1.VerdictFailed: text.Bad}[r.Verdict]
	if style == text.Plain {
		style = text.Busy
	}
	s.WriteString("\n" + page.Paragraph("", "  ", append([]text.Span{text.S(style, strings.ToUpper(string(r.Verdict)))}, some(
		"AU "+r.AUPercent+" %", r.SamplesPerSecond+" samples/s", rate(r.BytesPerSecond), bytes(ptr.Deref(r.BytesRead, 0))+"B read", b.Took)...)...))
	if r.Message != "" {
		s.WriteString(page.Paragraph("  ", "  ", text.S(text.Plain, r.Message)))
	}
	clients := [][]text.Span{}
	for _, c := range r.PerClient {
		left := "?"
		if c.CPUIdlePercent != "" {
			left = c.CPUIdlePercent + " %"
		}
		clients = append(clients, row(c.Name, c.AUPercent+" %", rate(c.BytesPerSecond), left, c.NodeName))
	}
	if len(clients) > 0 {
		s.WriteString("\n" + page.Table([]string{"CLIENT", "AU", "READ", "CPU LEFT", "NODE"}, clients))
	}
	servers := [][]text.Span{}
	perServer := slices.SortedFunc(slices.Values(r.PerServer), func(x, y v1alpha1.ServerResult) int { return placement.CompareNatural(x.Name, y.Name) })
	for _, v := range perServer {
		servers = append(servers, row(v.Name, rate(v.BytesPerSecond), bytes(ptr.Deref(v.BytesRead, 0))+"B"))
	}
	if len(servers) > 0 {
		s.WriteString("\n" + page.Table([]string{"SERVER", "READ", "TOTAL"}, servers))
	}
	rules := [][]text.Span{}
	for _, rule := range r.Rules {
		style := text.Good
		if rule.State != v1alpha1.RuleKept {
			style = text.Busy
		}
		rules = append(rules, []text.Span{text.S(text.Plain, rule.Name), text.S(style, string(rule.State)), text.S(text.Plain, rule.Message)})
	}
	if len(rules) > 0 {
		s.WriteString("\n" + page.Table([]string{"MLPERF STORAGE RULE", "", ""}, rules))
	}
	s.WriteString("\n" + page.Paragraph("", "", text.S(text.Faint, r.Label)))
	return s.String()
}

func rate(bytesPerSecond *int64) string {
	return fmt.Sprintf("%.4g MB/s", float64(ptr.Deref(bytesPerSecond, 0))/1e6)
}

// row is a row of a table, with its name first.
func row(cells ...string) []text.Span {
	spans := []text.Span{}
	for i, cell := range cells {
		style := text.Plain
		if i == 0 {
			style = text.Strong
		}
		spans = append(spans, text.S(style, cell))
	}
	return spans
}

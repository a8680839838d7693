package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/text"
)

// Counted is what a data server has counted since the last start of its ganesha.
type Counted struct {
	// Start counts ganesha's starts.
	Start int
	// Time is when it was counted.
	Time time.Time
	// Requests are NFS compounds.
	Requests uint64
	// CPUSeconds is the processor time at CPUTime; 0 if it is not known.
	CPUSeconds float64
	CPUTime    time.Time
	// Shares are by share key; nil if the server is of an older release.
	Shares map[string]CountedShare
}

// CountedShare is what was read and written of a share.
type CountedShare struct{ ReadBytes, WrittenBytes, Reads, Writes uint64 }

// Sample is what a data server answered at the begin and the end of a measurement.
type Sample struct {
	Server        string
	Before, After Counted
	// Error is why it could not be asked; "" if it was.
	Error string
}

// Top is what each data server of a FileServer does now.
type Top struct {
	FileServer string `json:"fileServer"`
	// Servers begin with the busiest.
	Servers []TopServer `json:"servers"`
	// Unanswered are servers of which nothing is known, with the reason.
	Unanswered []Unanswered `json:"unanswered,omitempty"`
	Hidden     []Hidden     `json:"hidden,omitempty"`
}

// Throughput is per second.
type Throughput struct {
	ReadBytes    float64 `json:"readBytesPerSecond"`
	WrittenBytes float64 `json:"writtenBytesPerSecond"`
	// Operations of a server are its NFS requests. Those of a share are its READs and WRITEs: ganesha counts no others by share.
	Operations float64 `json:"operationsPerSecond"`
}

func (t Throughput) bytes() float64 { return t.ReadBytes + t.WrittenBytes }

// TopServer is what a data server does.
type TopServer struct {
	Server string `json:"server"`
	Node   string `json:"node,omitempty"`
	Throughput
	// Seconds is how long was measured.
	Seconds float64 `json:"seconds"`
	// CPU is how many processors ganesha kept busy; nil if it is not known.
	CPU *float64 `json:"cpu,omitempty"`
	// Shares begin with the busiest. Shares without I/O are left out.
	Shares []TopShare `json:"shares,omitempty"`
}

// TopShare is what a data server does for a share.
type TopShare struct {
	Namespace string `json:"namespace"`
	Share     string `json:"share"`
	Throughput
}

// NewTop makes rates of what was counted.
func NewTop(w *World, fs *v1alpha1.FileServer, samples []Sample) Top {
	top := Top{FileServer: fs.Namespace + "/" + fs.Name, Servers: []TopServer{}, Hidden: w.Hidden}
	nodes := map[string]string{}
	for _, s := range fs.Status.Servers {
		nodes[s.Name] = s.NodeName
	}
	for _, sample := range samples {
		if problem := sample.problem(); problem != "" {
			top.Unanswered = append(top.Unanswered, Unanswered{sample.Server, problem})
			continue
		}
		server := sample.rates(fs.Namespace)
		server.Node = nodes[sample.Server]
		top.Servers = append(top.Servers, server)
	}
	slices.SortFunc(top.Servers, func(a, b TopServer) int {
		return cmp.Or(-cmp.Compare(a.bytes(), b.bytes()), -cmp.Compare(a.Operations, b.Operations), placement.CompareNatural(a.Server, b.Server))
	})
	return top
}

// problem is why two answers give no rates; "" if they do.
func (s Sample) problem() string {
	switch {
	case s.Error != "":
		return s.Error
	case s.Before.Shares == nil || s.After.Shares == nil:
		return "the server is of an older release that does not report this; upgrade it"
	case s.Before.Start != s.After.Start:
		return "ganesha was restarted during the measurement: try again"
	case !s.After.Time.After(s.Before.Time):
		return "its counters have not been updated since the first reading: measure for longer (--for)"
	}
	return ""
}

func (s Sample) rates(namespace string) TopServer {
	seconds := s.After.Time.Sub(s.Before.Time).Seconds()
	per := func(before, after uint64) float64 { return max(0, float64(after)-float64(before)) / seconds }
	server := TopServer{Server: s.Server, Seconds: seconds}
	for _, key := range slices.Sorted(maps.Keys(s.After.Shares)) {
		before, after := s.Before.Shares[key], s.After.Shares[key]
		var share TopShare
		share.Namespace, share.Share = naming.ShareOfKey(namespace, key)
		share.ReadBytes, share.WrittenBytes = per(before.ReadBytes, after.ReadBytes), per(before.WrittenBytes, after.WrittenBytes)
		share.Operations = per(before.Reads, after.Reads) + per(before.Writes, after.Writes)
		server.ReadBytes += share.ReadBytes
		server.WrittenBytes += share.WrittenBytes
		if share.Operations > 0 {
			server.Shares = append(server.Shares, share)
		}
	}
	slices.SortStableFunc(server.Shares, func(a, b TopShare) int { return -cmp.Compare(a.bytes(), b.bytes()) })
	server.Operations = per(s.Before.Requests, s.After.Requests)
	if during := s.After.CPUTime.Sub(s.Before.CPUTime).Seconds(); s.Before.CPUSeconds > 0 && s.After.CPUSeconds > 0 && during > 0 {
		cpu := max(0, s.After.CPUSeconds-s.Before.CPUSeconds) / during
		server.CPU = &cpu
	}
	return server
}

// Text is the model as text.
func (t Top) Text(page text.Page) string {
	var b strings.Builder
	var sum Throughput
	for _, s := range t.Servers {
		sum.ReadBytes += s.ReadBytes
		sum.WrittenBytes += s.WrittenBytes
		sum.Operations += s.Operations
	}
	head := []text.Span{text.S(text.Strong, "FileServer "+t.FileServer)}
	if len(t.Servers) > 0 {
		head = append(head, some(megabytes(sum.ReadBytes)+" MB/s read", megabytes(sum.WrittenBytes)+" MB/s written", perSecond(sum.Operations)+" operations/s")...)
	}
	b.WriteString(page.Paragraph("", "  ", head...))
	rows := [][]text.Span{}
	for _, s := range t.Servers {
		cpu := "?"
		if s.CPU != nil {
			cpu = fmt.Sprintf("%.2f", *s.CPU)
		}
		rows = append(rows, row(s.Server, part(s.bytes(), sum.bytes()), megabytes(s.ReadBytes), megabytes(s.WrittenBytes), perSecond(s.Operations), cpu, cmp.Or(s.Node, "?")))
		for _, share := range s.Shares {
			name := share.Share
			if namespace, _, _ := strings.Cut(t.FileServer, "/"); share.Namespace != namespace {
				name = share.Namespace + "/" + name
			}
			cells := row("  "+name, part(share.bytes(), sum.bytes()), megabytes(share.ReadBytes), megabytes(share.WrittenBytes), perSecond(share.Operations))
			cells[0].Style = text.Plain
			rows = append(rows, append(cells, text.Span{}, text.Span{}))
		}
	}
	if len(rows) > 0 {
		b.WriteString("\n" + page.Table([]string{"SERVER", "PART", "READ MB/s", "WRITTEN MB/s", "OPERATIONS/s", "CPU", "NODE"}, rows))
	}
	if len(t.Unanswered) > 0 {
		b.WriteByte('\n')
		byMessage := map[string][]string{}
		for _, s := range t.Unanswered {
			byMessage[s.Message] = append(byMessage[s.Message], s.Pod)
		}
		for _, message := range slices.Sorted(maps.Keys(byMessage)) {
			b.WriteString(page.Paragraph("Not measured: ", "  ", text.S(text.Busy, strings.Join(byMessage[message], ", ")+": "+message)))
		}
	}
	b.WriteString(hiddenText(page, t.Hidden))
	return b.String()
}

func megabytes(bytesPerSecond float64) string { return short(bytesPerSecond / 1e6) }

func perSecond(n float64) string { return short(n) }

// short has two digits behind the point of small numbers, and none of large ones.
func short(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n < 10:
		return fmt.Sprintf("%.2f", n)
	case n < 100:
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.0f", n)
}

// part is a percentage of all bytes; "-" if there are none.
func part(bytes, all float64) string {
	if all <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*bytes/all)
}

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Process is what exposes a metric.
type Process string

// Processes.
const (
	Operator        Process = "operator"
	NamespaceServer Process = "namespace server"
	DataServer      Process = "data server"
	// Everywhere: all of them.
	Everywhere Process = "every process"
)

// Type is a metric's type, in Prometheus' words.
type Type string

// Types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Labels that all metrics of a process have: whose servers they are.
const (
	LabelNamespace  = "namespace"
	LabelFileServer = "file_server"
	LabelDataServer = "data_server"
)

// IdentityLabels are the labels that every metric of a process has beside its own.
func IdentityLabels(process Process) []string {
	switch process {
	case NamespaceServer:
		return []string{LabelFileServer, LabelNamespace}
	case DataServer:
		return []string{LabelDataServer, LabelFileServer, LabelNamespace}
	}
	return nil
}

// Metric is one metric of a process.
type Metric struct {
	Process Process
	Name    string
	Type    Type
	Help    string
	// Labels are those beside IdentityLabels.
	Labels []string
	// Buckets are a histogram's upper bounds.
	Buckets []float64

	// desc is made once: there can be 100,000 samples, and making it costs more than the sample.
	desc *prometheus.Desc
}

var catalogue []*Metric

// All are the metrics of the catalogue, in the order of the files.
func All() []*Metric { return slices.Clone(catalogue) }

func add(process Process, kind Type, name, help string, labels ...string) *Metric {
	m := &Metric{Process: process, Type: kind, Name: name, Help: help, Labels: labels, desc: prometheus.NewDesc(name, help, labels, nil)}
	catalogue = append(catalogue, m)
	return m
}

func counter(process Process, name, help string, labels ...string) *Metric {
	return add(process, Counter, name, help, labels...)
}

func gauge(process Process, name, help string, labels ...string) *Metric {
	return add(process, Gauge, name, help, labels...)
}

func histogram(process Process, name, help string, buckets []float64, labels ...string) *Metric {
	m := add(process, Histogram, name, help, labels...)
	m.Buckets = buckets
	return m
}

// Desc describes the metric to Prometheus' library.
func (m *Metric) Desc() *prometheus.Desc { return m.desc }

// Sample is a value of a counter or a gauge that something else counts.
func (m *Metric) Sample(value float64, labels ...string) prometheus.Metric {
	kind := prometheus.GaugeValue
	if m.Type == Counter {
		kind = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(m.Desc(), kind, value, labels...)
}

// CounterVec is a counter to count with.
func (m *Metric) CounterVec() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// NewCounter is a counter without labels.
func (m *Metric) NewCounter() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: m.Name, Help: m.Help})
}

// NewGauge is a gauge without labels.
func (m *Metric) NewGauge() prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: m.Name, Help: m.Help})
}

// GaugeVec is a gauge with labels.
func (m *Metric) GaugeVec() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// HistogramVec is a histogram with labels.
func (m *Metric) HistogramVec() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets}, m.Labels)
}

// NewHistogram is a histogram without labels.
func (m *Metric) NewHistogram() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets})
}

// Func is a collector of the metric, without labels, whose value is looked up when it is asked for.
func (m *Metric) Func(value func() float64) prometheus.Collector {
	if m.Type == Counter {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, value)
	}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, value)
}

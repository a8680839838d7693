package server

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/metrics"
	"github.com/howdah/howdah/internal/naming"
)

// Metrics are the metrics of a data server.
type Metrics struct {
	Registry *prometheus.Registry
	own      prometheus.Registerer

	ready, generation, shares, failing prometheus.Gauge
	ends                               *prometheus.CounterVec
	reloads                            prometheus.Histogram
	ReloadFailures                     prometheus.Counter
	tlsConnections                     prometheus.Gauge
	tlsRefused                         prometheus.Counter
	size, used, free                   *prometheus.GaugeVec
	filesUsed, filesFree               *prometheus.GaugeVec

	// wanted are the keys of the shares that are to be served.
	wanted atomic.Pointer[map[string]bool]
}

// NewMetrics makes and registers the metrics of a data server.
func NewMetrics(kubeNamespace, dataServer string) *Metrics {
	registry := prometheus.NewRegistry()
	m := &Metrics{
		Registry: registry,
		own: prometheus.WrapRegistererWith(prometheus.Labels{
			metrics.LabelNamespace: kubeNamespace, metrics.LabelFileServer: naming.FileServerOf(dataServer), metrics.LabelDataServer: dataServer,
		}, registry),
		ready:          metrics.DataServerReady.NewGauge(),
		generation:     metrics.DataServerGeneration.NewGauge(),
		shares:         metrics.DataServerShares.NewGauge(),
		failing:        metrics.DataServerSharesFailing.NewGauge(),
		ends:           metrics.DataServerGaneshaEnds.CounterVec(),
		reloads:        metrics.DataServerReloadDuration.NewHistogram(),
		ReloadFailures: metrics.DataServerReloadFailures.NewCounter(),
		tlsConnections: metrics.DataServerTLSConnections.NewGauge(),
		tlsRefused:     metrics.DataServerTLSRefused.NewCounter(),
		size:           metrics.VolumeSize.GaugeVec(),
		used:           metrics.VolumeUsed.GaugeVec(),
		free:           metrics.VolumeFree.GaugeVec(),
		filesUsed:      metrics.VolumeFilesUsed.GaugeVec(),
		filesFree:      metrics.VolumeFilesFree.GaugeVec(),
	}
	m.own.MustRegister(m.ready, m.generation, m.shares, m.failing, m.ends, m.reloads, m.ReloadFailures, m.tlsConnections, m.tlsRefused,
		m.size, m.used, m.free, m.filesUsed, m.filesFree)
	metrics.RegisterProcess(m.own, true)
	// Prometheus sees a first end only if there was a 0 before it.
	for _, signal := range []string{"SIGABRT", "SIGKILL", "SIGSEGV", "exit"} {
		m.ends.WithLabelValues(signal)
	}
	return m
}

// Register adds the counters of ganesha and the metrics of its process.
func (m *Metrics) Register(ganesha *ganeshaCollector) {
	m.own.MustRegister(ganesha)
	m.own.MustRegister(ganesha.process())
}

// GaneshaEnded counts an end of ganesha that was not asked for, by its signal, or "exit".
func (m *Metrics) GaneshaEnded(signal string) { m.ends.WithLabelValues(signal).Inc() }

// Reloaded counts a reload that succeeded.
func (m *Metrics) Reloaded(took time.Duration) { m.reloads.Observe(took.Seconds()) }

// Observe sets the gauges from the observation of a pass.
func (m *Metrics) Observe(seen kubeapi.Observation) {
	m.ready.Set(0)
	if seen.Ready {
		m.ready.Set(1)
	}
	m.generation.Set(float64(seen.Generation))
	m.shares.Set(float64(seen.Shares))
	m.failing.Set(float64(seen.Failing))
	for i, volume := range seen.Usage {
		label := strconv.Itoa(i)
		m.size.WithLabelValues(label).Set(float64(volume.Bytes.Total))
		m.used.WithLabelValues(label).Set(float64(volume.Bytes.Used))
		m.free.WithLabelValues(label).Set(float64(volume.Bytes.Free))
		if volume.Files.Total > 0 {
			m.filesUsed.WithLabelValues(label).Set(float64(volume.Files.Used))
			m.filesFree.WithLabelValues(label).Set(float64(volume.Files.Free))
		}
	}
}

// SetShares sets the shares that are to be served. Until its next restart ganesha also counts removed shares.
func (m *Metrics) SetShares(exports []*internalv1.ShareExport) {
	wanted := map[string]bool{}
	for _, export := range exports {
		wanted[kubeapi.ShareOf(export)] = true
	}
	m.wanted.Store(&wanted)
}

// Serves reports whether the share with this key is to be served.
func (m *Metrics) Serves(share string) bool {
	wanted := m.wanted.Load()
	return wanted != nil && (*wanted)[share]
}

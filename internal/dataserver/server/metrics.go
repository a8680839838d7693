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

// Metrics are those of a data server.
type Metrics struct {
	Registry *prometheus.Registry
	own      prometheus.Registerer

	ready, generation, shares, failing prometheus.Gauge
	reloads                            prometheus.Histogram
	ReloadFailures                     prometheus.Counter
	tlsConnections                     prometheus.Gauge
	tlsRefused                         prometheus.Counter
	size, used                         *prometheus.GaugeVec

	// wished are the keys of the shares that there are to serve.
	wished atomic.Pointer[map[string]bool]
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
		reloads:        metrics.DataServerReloadDuration.NewHistogram(),
		ReloadFailures: metrics.DataServerReloadFailures.NewCounter(),
		tlsConnections: metrics.DataServerTLSConnections.NewGauge(),
		tlsRefused:     metrics.DataServerTLSRefused.NewCounter(),
		size:           metrics.VolumeSize.GaugeVec(),
		used:           metrics.VolumeUsed.GaugeVec(),
	}
	m.own.MustRegister(m.ready, m.generation, m.shares, m.failing, m.reloads, m.ReloadFailures, m.tlsConnections, m.tlsRefused, m.size, m.used)
	metrics.RegisterProcess(m.own, true)
	return m
}

// Register adds what ganesha counts, and the metrics of its process.
func (m *Metrics) Register(ganesha *ganeshaCollector) {
	m.own.MustRegister(ganesha)
	m.own.MustRegister(ganesha.process())
}

// Reloaded counts a reload that succeeded.
func (m *Metrics) Reloaded(took time.Duration) { m.reloads.Observe(took.Seconds()) }

// Observe takes what a pass has seen.
func (m *Metrics) Observe(seen kubeapi.Observation) {
	m.ready.Set(0)
	if seen.Ready {
		m.ready.Set(1)
	}
	m.generation.Set(float64(seen.Generation))
	m.shares.Set(float64(seen.Shares))
	m.failing.Set(float64(seen.Failing))
	for i, volume := range seen.Usage {
		m.size.WithLabelValues(strconv.Itoa(i)).Set(float64(volume.Total))
		m.used.WithLabelValues(strconv.Itoa(i)).Set(float64(volume.Used))
	}
}

// SetShares tells which shares there are. Ganesha goes on counting those that have left, until it is started again.
func (m *Metrics) SetShares(exports []*internalv1.ShareExport) {
	wished := map[string]bool{}
	for _, export := range exports {
		wished[kubeapi.ShareOf(export)] = true
	}
	m.wished.Store(&wished)
}

// Serves is true of the key of a share that is to be served.
func (m *Metrics) Serves(share string) bool {
	wished := m.wished.Load()
	return wished != nil && (*wished)[share]
}

package dataserver

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/metrics"
	"github.com/howdah/howdah/internal/naming"
)

// serverMetrics are those of a data server.
type serverMetrics struct {
	registry *prometheus.Registry
	own      prometheus.Registerer

	ready, generation, shares, failing prometheus.Gauge
	reloads                            prometheus.Histogram
	reloadFailures                     prometheus.Counter
	tlsConnections                     prometheus.Gauge
	tlsRefused                         prometheus.Counter
	size, used                         *prometheus.GaugeVec

	// wished are the keys of the shares that there are to serve.
	wished atomic.Pointer[map[string]bool]
}

func newMetrics(kubeNamespace, dataServer string) *serverMetrics {
	registry := prometheus.NewRegistry()
	m := &serverMetrics{
		registry: registry,
		own: prometheus.WrapRegistererWith(prometheus.Labels{
			metrics.LabelNamespace: kubeNamespace, metrics.LabelFileServer: naming.FileServerOf(dataServer), metrics.LabelDataServer: dataServer,
		}, registry),
		ready:          metrics.DataServerReady.NewGauge(),
		generation:     metrics.DataServerGeneration.NewGauge(),
		shares:         metrics.DataServerShares.NewGauge(),
		failing:        metrics.DataServerSharesFailing.NewGauge(),
		reloads:        metrics.DataServerReloadDuration.NewHistogram(),
		reloadFailures: metrics.DataServerReloadFailures.NewCounter(),
		tlsConnections: metrics.DataServerTLSConnections.NewGauge(),
		tlsRefused:     metrics.DataServerTLSRefused.NewCounter(),
		size:           metrics.VolumeSize.GaugeVec(),
		used:           metrics.VolumeUsed.GaugeVec(),
	}
	m.own.MustRegister(m.ready, m.generation, m.shares, m.failing, m.reloads, m.reloadFailures, m.tlsConnections, m.tlsRefused, m.size, m.used)
	metrics.RegisterProcess(m.own, true)
	return m
}

func (m *serverMetrics) register(ganesha *ganeshaCollector) {
	m.own.MustRegister(ganesha)
	m.own.MustRegister(ganesha.process())
}

func (m *serverMetrics) reloaded(took time.Duration) { m.reloads.Observe(took.Seconds()) }

func (m *serverMetrics) observe(seen observation) {
	m.ready.Set(0)
	if seen.ready {
		m.ready.Set(1)
	}
	m.generation.Set(float64(seen.generation))
	m.shares.Set(float64(seen.shares))
	m.failing.Set(float64(seen.failing))
	for i, volume := range seen.usage {
		m.size.WithLabelValues(strconv.Itoa(i)).Set(float64(volume.Total))
		m.used.WithLabelValues(strconv.Itoa(i)).Set(float64(volume.Used))
	}
}

// setShares tells which shares there are. Ganesha goes on counting those that have left, until it is started again.
func (m *serverMetrics) setShares(exports []*internalv1.ShareExport) {
	wished := map[string]bool{}
	for _, export := range exports {
		wished[shareOf(export)] = true
	}
	m.wished.Store(&wished)
}

func (m *serverMetrics) serves(share string) bool {
	wished := m.wished.Load()
	return wished != nil && (*wished)[share]
}

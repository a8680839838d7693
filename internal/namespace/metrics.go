package namespace

import (
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// metrics are those of one namespace server.
type metrics struct {
	registry   *prometheus.Registry
	operations *prometheus.CounterVec
	mkdir      *prometheus.HistogramVec
	keeper     prometheus.Gauge
	reachable  *prometheus.GaugeVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "howdah_namespace_operations_total",
			Help: "NFS operations on files and directories by name (RFC 8881) and status.",
		}, []string{"operation", "status"}),
		mkdir: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "howdah_namespace_mkdir_seconds",
			Help:    "Time from a client's mkdir to its answer, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 14),
		}, []string{"status"}),
		keeper: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "howdah_namespace_keeper",
			Help: "1 while this namespace server is the keeper of its FileServer's directories.",
		}),
	}
	m.reachable = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "howdah_namespace_data_server_reachable",
		Help: "1 if the data server answers NFS at its address, 0 if not. Only the keeper has it.",
	}, []string{"data_server"})
	m.registry.MustRegister(m.operations, m.mkdir, m.keeper, m.reachable,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) observeOperation(op nfsv4.NfsOpnum4, status nfsv4.Nfsstat4) {
	name, ok := nfsv4.NfsOpnum4_name[op]
	if !ok {
		name = "OP_ILLEGAL"
	}
	m.operations.WithLabelValues(name, nfs.StatusName(status)).Inc()
}

func (m *metrics) observeMkdir(status nfsv4.Nfsstat4, took time.Duration) {
	m.mkdir.WithLabelValues(nfs.StatusName(status)).Observe(took.Seconds())
}

// gauge adds a number that is looked up when it is asked for.
func (m *metrics) gauge(name, help string, value func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(value()) }))
}

package namespace

import (
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/howdah/howdah/internal/metrics"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

// serverMetrics are those of one namespace server.
type serverMetrics struct {
	registry   *prometheus.Registry
	own        prometheus.Registerer
	operations *prometheus.CounterVec
	durations  *prometheus.HistogramVec
	mkdir      *prometheus.HistogramVec
	leader     prometheus.Gauge
	elections  prometheus.Counter
	reachable  *prometheus.GaugeVec
	refusals   prometheus.Counter
	waiting    prometheus.Counter
}

func newMetrics(kubeNamespace, fileServer string) *serverMetrics {
	registry := prometheus.NewRegistry()
	m := &serverMetrics{
		registry: registry,
		own: prometheus.WrapRegistererWith(prometheus.Labels{
			metrics.LabelNamespace: kubeNamespace, metrics.LabelFileServer: fileServer,
		}, registry),
		operations: metrics.NamespaceOperations.CounterVec(),
		durations:  metrics.NamespaceOperationDuration.HistogramVec(),
		mkdir:      metrics.NamespaceMkdirDuration.HistogramVec(),
		leader:     metrics.NamespaceLeader.NewGauge(),
		elections:  metrics.NamespaceLeaderElections.NewCounter(),
		reachable:  metrics.NamespaceReachable.GaugeVec(),
		refusals:   metrics.NamespaceRefusedLookups.NewCounter(),
		waiting:    metrics.NamespaceWaitingRoom.NewCounter(),
	}
	m.own.MustRegister(m.operations, m.durations, m.mkdir, m.leader, m.elections, m.reachable, m.refusals, m.waiting)
	metrics.RegisterProcess(m.own, true)
	return m
}

// observeOperation counts an operation. What a client may choose is bounded: operations without a name are one.
func (m *serverMetrics) observeOperation(op nfsv4.NfsOpnum4, status nfsv4.Nfsstat4, took time.Duration) {
	name, ok := nfsv4.NfsOpnum4_name[op]
	if !ok {
		name = "OP_ILLEGAL"
	}
	m.operations.WithLabelValues(name, nfs.StatusName(status)).Inc()
	m.durations.WithLabelValues(name).Observe(took.Seconds())
}

func (m *serverMetrics) observeMkdir(status nfsv4.Nfsstat4, took time.Duration) {
	m.mkdir.WithLabelValues(nfs.StatusName(status)).Observe(took.Seconds())
}

func (m *serverMetrics) becameLeader() {
	m.leader.Set(1)
	m.elections.Inc()
}

// tell adds numbers that are looked up when they are asked for.
func (m *serverMetrics) tell(numbers map[*metrics.Metric]func() int) {
	for metric, value := range numbers {
		m.own.MustRegister(metric.Func(func() float64 { return float64(value()) }))
	}
}

// countTree adds the metrics of what there is to serve.
func (s *server) countTree() {
	s.metrics.tell(map[*metrics.Metric]func() int{
		metrics.NamespaceReady: func() int {
			if s.ready() == nil {
				return 1
			}
			return 0
		},
		metrics.NamespaceShares:      func() int { return s.tree.Sizes().Shares },
		metrics.NamespaceDirectories: func() int { return s.tree.Sizes().Directories },
		metrics.NamespaceJunctions:   func() int { return s.tree.Sizes().Junctions },
		metrics.NamespaceUnfinished:  func() int { return s.tree.Sizes().Unfinished },
		metrics.NamespaceOwnersDown:  s.prober.Down,
	})
}

// countServing adds the metrics of what is served, once there is a server.
func (s *server) countServing(sessions *session.Server, calls *rpc.Server) {
	s.metrics.tell(map[*metrics.Metric]func() int{
		metrics.NamespaceClients:              func() int { return sessions.Stats().Clients - sessions.Stats().SilentClients },
		metrics.NamespaceClientsLimit:         func() int { return sessions.Limits().Clients },
		metrics.NamespaceSessions:             func() int { return sessions.Stats().Sessions },
		metrics.NamespaceSessionsLimit:        func() int { return sessions.Limits().Sessions },
		metrics.NamespaceConnections:          func() int { return calls.Stats().Connections },
		metrics.NamespaceConnectionsLimit:     func() int { return calls.Limits().Connections },
		metrics.NamespaceAddresses:            func() int { return calls.Stats().Addresses },
		metrics.NamespaceRequests:             func() int { return calls.Stats().Requests },
		metrics.NamespaceRequestsLimit:        func() int { return calls.Limits().Requests },
		metrics.NamespaceReplyBytes:           func() int { return calls.Stats().ReplyBytes },
		metrics.NamespaceReplyBytesLimit:      func() int { return calls.Limits().ReplyBytes },
		metrics.NamespaceConnectionsRefused:   func() int { return int(calls.Totals().Refused) },
		metrics.NamespaceConnectionsDisplaced: func() int { return int(calls.Totals().Displaced) },
		metrics.NamespaceChangesDelayed:       func() int { return int(sessions.Delayed().Changes) },
		metrics.NamespaceClientsDelayed:       func() int { return int(sessions.Delayed().Clients) },
		metrics.NamespaceSessionsDelayed:      func() int { return int(sessions.Delayed().Sessions) },
	})
}

package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/ganesha/counters"
	"github.com/howdah/howdah/internal/metrics"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

const (
	// ganeshaTimeout bounds one reading of ganesha's counters: 30 to 130 ms, more with a thousand shares.
	ganeshaTimeout = 5 * time.Second
	// ganeshaEvery is how often ganesha is asked at most: whoever reaches the port may ask here all the time.
	ganeshaEvery = 5 * time.Second
	// maxGaneshaText bounds what is read of its answer, in bytes: a thousand shares have some 15 MB.
	maxGaneshaText = 64 << 20
)

// ganeshaSource reads ganesha's counters, and not too often.
type ganeshaSource struct {
	url    string
	client *http.Client
	now    func() time.Time

	mutex sync.Mutex
	at    time.Time
	last  *counters.Counters
	err   error
}

func newGaneshaSource(url string) *ganeshaSource {
	return &ganeshaSource{
		url: url, now: time.Now,
		// No proxy, whatever the environment says: it is this very pod.
		client: &http.Client{Timeout: ganeshaTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// read gives the counters, some seconds old at most, and when they were read.
func (g *ganeshaSource) read() (*counters.Counters, time.Time, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.at.IsZero() || g.now().Sub(g.at) >= ganeshaEvery {
		g.last, g.err = g.ask()
		g.at = g.now()
	}
	return g.last, g.at, g.err
}

// forget has the next reading ask again: what was counted is of a process that has ended.
func (g *ganeshaSource) forget() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.at, g.last, g.err = time.Time{}, nil, nil
}

func (g *ganeshaSource) ask() (*counters.Counters, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, g.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := g.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ganesha's exporter answers %s", response.Status)
	}
	return counters.Read(io.LimitReader(response.Body, maxGaneshaText))
}

// ganeshaCollector tells at each scrape what ganesha counts, under names and in units that Prometheus' conventions ask for, by
// share instead of by export number, and without what has an unbounded number of values: its own exporter counts by client address.
type ganeshaCollector struct {
	kubeNamespace string
	state         func() supervisor.State
	connections   func() (int32, error)
	serves        func(share string) bool
	source        *ganeshaSource
	log           *slog.Logger

	mutex  sync.Mutex
	starts int
}

// NewGaneshaCollector collects the counters of the ganesha whose state is given, for the shares that serves is true of.
func NewGaneshaCollector(kubeNamespace string, state func() supervisor.State, serves func(share string) bool, log *slog.Logger) *ganeshaCollector {
	return &ganeshaCollector{
		kubeNamespace: kubeNamespace, state: state, connections: ReadConnections, serves: serves, source: newGaneshaSource(GaneshaMetrics), log: log,
	}
}

var ganeshaOwn = []*metrics.Metric{
	metrics.DataServerStarts, metrics.DataServerInGrace, metrics.DataServerConnections, metrics.DataServerConnectionsLimit,
	metrics.GaneshaScraped, metrics.GaneshaOperations, metrics.GaneshaOperationDuration, metrics.GaneshaClients, metrics.GaneshaLeasesExpired,
	metrics.GaneshaRequests, metrics.GaneshaLocks, metrics.GaneshaCache,
	metrics.ShareReadBytes, metrics.ShareWrittenBytes, metrics.ShareReads, metrics.ShareWrites,
}

// Describe names them.
func (c *ganeshaCollector) Describe(to chan<- *prometheus.Desc) {
	for _, metric := range ganeshaOwn {
		to <- metric.Desc()
	}
}

// process is what the kernel tells of ganesha's process.
func (c *ganeshaCollector) process() prometheus.Collector {
	return collectors.NewProcessCollector(collectors.ProcessCollectorOpts{
		Namespace: "ganesha",
		PidFn: func() (int, error) {
			pid := c.state().PID
			if pid == 0 {
				return 0, fmt.Errorf("ganesha is not running")
			}
			return pid, nil
		},
	})
}

// Collect tells them.
func (c *ganeshaCollector) Collect(to chan<- prometheus.Metric) {
	state := c.state()
	to <- metrics.DataServerStarts.Sample(float64(state.Starts))
	to <- metrics.DataServerInGrace.Sample(oneIf(state.InGrace))
	to <- metrics.DataServerConnectionsLimit.Sample(float64(state.ConnectionsAllowed()))
	if n, err := c.connections(); err == nil {
		to <- metrics.DataServerConnections.Sample(float64(n))
	} else {
		c.log.Error("the clients' connections were not counted", "err", err)
	}
	counted, _, err := c.read(state)
	to <- metrics.GaneshaScraped.Sample(oneIf(err == nil))
	if err != nil {
		c.log.Debug("ganesha's counters were not read", "err", err)
		return
	}
	for _, metric := range c.translate(counted) {
		to <- metric
	}
}

func (c *ganeshaCollector) read(state supervisor.State) (*counters.Counters, time.Time, error) {
	c.mutex.Lock()
	if c.starts != state.Starts {
		c.starts = state.Starts
		c.source.forget()
	}
	c.mutex.Unlock()
	if !state.Initialized {
		return nil, time.Time{}, fmt.Errorf("ganesha is not up")
	}
	return c.source.read()
}

// Served is how much clients have read and written of each share since ganesha's start.
func (c *ganeshaCollector) Served() (serverpod.Served, error) {
	state := c.state()
	counted, at, err := c.read(state)
	if err != nil {
		return serverpod.Served{}, fmt.Errorf("ganesha's counters were not read: %w", err)
	}
	told := serverpod.Served{Start: state.Starts, Time: at, Bytes: map[string]uint64{}}
	for pseudo, export := range counted.Exports {
		if key := naming.ShareOfExport(pseudo); c.serves(key) {
			told.Bytes[key] += export.ReadBytes + export.WrittenBytes
		}
	}
	return told, nil
}

// translate is a pure function of what ganesha has counted and of the shares that there are.
func (c *ganeshaCollector) translate(counted *counters.Counters) []prometheus.Metric {
	var list []prometheus.Metric
	add := func(metric *metrics.Metric, value uint64, labels ...string) {
		list = append(list, metric.Sample(float64(value), labels...))
	}
	add(metrics.GaneshaClients, counted.Clients)
	add(metrics.GaneshaLeasesExpired, counted.LeasesExpired)
	add(metrics.GaneshaRequests, counted.Requests)
	add(metrics.GaneshaLocks, counted.LocksHeld, "held")
	add(metrics.GaneshaLocks, counted.LocksAwaited, "waiting")
	for operation, count := range counted.Operations {
		add(metrics.GaneshaOperations, count, operation.Name, operation.Status)
	}
	for operation, duration := range counted.Durations {
		list = append(list, histogramOf(operation, duration))
	}
	for operation, count := range counted.CacheHits {
		add(metrics.GaneshaCache, count, operation, "hit")
	}
	for operation, count := range counted.CacheMisses {
		add(metrics.GaneshaCache, count, operation, "miss")
	}
	for _, pseudo := range slices.Sorted(maps.Keys(counted.Exports)) {
		key := naming.ShareOfExport(pseudo)
		if !c.serves(key) {
			continue
		}
		namespace, share := naming.ShareOfKey(c.kubeNamespace, key)
		volume := strings.TrimPrefix(pseudo, "/"+key+"/")
		export := counted.Exports[pseudo]
		add(metrics.ShareReadBytes, export.ReadBytes, namespace, share, volume)
		add(metrics.ShareWrittenBytes, export.WrittenBytes, namespace, share, volume)
		add(metrics.ShareReads, export.Reads, namespace, share, volume)
		add(metrics.ShareWrites, export.Writes, namespace, share, volume)
	}
	return list
}

// histogramOf makes seconds of ganesha's milliseconds; of its 31 bounds those of the catalogue are kept.
func histogramOf(operation string, duration *counters.Duration) prometheus.Metric {
	buckets := map[float64]uint64{}
	for _, bound := range metrics.GaneshaOperationDuration.Buckets {
		for milliseconds, count := range duration.AtMost {
			if difference := milliseconds - bound*1000; difference < 1e-6 && difference > -1e-6 {
				buckets[bound] = count
			}
		}
	}
	return prometheus.MustNewConstHistogram(metrics.GaneshaOperationDuration.Desc(), duration.Count, duration.Millisecond/1000, buckets, operation)
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

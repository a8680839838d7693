package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
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
	// ganeshaTimeout limits one read of ganesha's counters. It takes 30 to 130 ms, and more with a thousand shares.
	ganeshaTimeout = 5 * time.Second
	// ganeshaEvery is the minimum time between two reads: everybody who reaches our port may ask all the time.
	ganeshaEvery = 5 * time.Second
	// maxGaneshaText is the maximum size of ganesha's answer in bytes; a thousand shares have about 15 MB.
	maxGaneshaText = 64 << 20
)

// ganeshaSource reads and caches ganesha's counters.
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
		// The transport uses no HTTP proxy, because ganesha is in this pod.
		client: &http.Client{Timeout: ganeshaTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// read returns the counters, at most ganeshaEvery old, and when they were read.
func (g *ganeshaSource) read() (*counters.Counters, time.Time, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.at.IsZero() || g.now().Sub(g.at) >= ganeshaEvery {
		g.last, g.err = g.ask()
		g.at = g.now()
	}
	return g.last, g.at, g.err
}

// forget clears the cache, because the counters are of a process that has ended.
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
		return nil, fmt.Errorf("ganesha's metrics port answers %s", response.Status)
	}
	return counters.Read(io.LimitReader(response.Body, maxGaneshaText))
}

// ganeshaCollector collects ganesha's counters at each scrape. Names and units follow Prometheus' conventions, and
// counters are by share instead of by export ID. It leaves out the counters by client address, because they have no
// bound.
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

// NewGaneshaCollector collects the counters of the ganesha with this state, for the shares for which serves is true.
func NewGaneshaCollector(kubeNamespace string, ganesha Ganesha, state func() supervisor.State, serves func(share string) bool, log *slog.Logger) *ganeshaCollector {
	return &ganeshaCollector{
		kubeNamespace: kubeNamespace, state: state, connections: ganesha.ReadConnections, serves: serves, source: newGaneshaSource(ganesha.MetricsURL()), log: log,
	}
}

var ganeshaOwn = []*metrics.Metric{
	metrics.DataServerStarts, metrics.DataServerInGrace, metrics.DataServerConnections, metrics.DataServerConnectionsLimit,
	metrics.GaneshaScraped, metrics.GaneshaOperations, metrics.GaneshaOperationDuration, metrics.GaneshaClients, metrics.GaneshaLeasesExpired,
	metrics.GaneshaRequests, metrics.GaneshaLocks, metrics.GaneshaCache,
	metrics.ShareReadBytes, metrics.ShareWrittenBytes, metrics.ShareReads, metrics.ShareWrites,
}

// Describe sends the descriptions of all metrics.
func (c *ganeshaCollector) Describe(to chan<- *prometheus.Desc) {
	for _, metric := range ganeshaOwn {
		to <- metric.Desc()
	}
}

// process collects the kernel's metrics of ganesha's process.
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

// Collect sends all metrics.
func (c *ganeshaCollector) Collect(to chan<- prometheus.Metric) {
	state := c.state()
	to <- metrics.DataServerStarts.Sample(float64(state.Starts))
	to <- metrics.DataServerInGrace.Sample(oneIf(state.InGrace))
	to <- metrics.DataServerConnectionsLimit.Sample(float64(state.ConnectionsAllowed()))
	if n, err := c.connections(); err == nil {
		to <- metrics.DataServerConnections.Sample(float64(n))
	} else {
		c.log.Error("can't count the clients' connections", "err", err)
	}
	counted, _, err := c.read(state)
	to <- metrics.GaneshaScraped.Sample(oneIf(err == nil))
	if err != nil {
		c.log.Debug("can't read ganesha's counters", "err", err)
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

// Served returns what clients have read and written of each share since ganesha's start, and what that took.
func (c *ganeshaCollector) Served() (serverpod.Served, error) {
	state := c.state()
	counted, at, err := c.read(state)
	if err != nil {
		return serverpod.Served{}, fmt.Errorf("can't read ganesha's counters: %w", err)
	}
	served := serverpod.Served{Start: state.Starts, Time: at, Bytes: map[string]uint64{}, Shares: map[string]serverpod.ServedShare{}}
	for pseudo, export := range counted.Exports {
		if key := naming.ShareOfExport(pseudo); c.serves(key) {
			served.Bytes[key] += export.ReadBytes + export.WrittenBytes
			share := served.Shares[key] // A share has an export for each volume.
			share.ReadBytes += export.ReadBytes
			share.WrittenBytes += export.WrittenBytes
			share.Reads += export.Reads
			share.Writes += export.Writes
			served.Shares[key] = share
		}
	}
	for operation, count := range counted.Operations {
		if operation.Name == "SEQUENCE" { // Each compound begins with one.
			served.Requests += count
		}
	}
	if seconds, err := cpuSeconds(state.PID); err == nil {
		served.CPUSeconds, served.CPUTime = seconds, time.Now()
	} else {
		c.log.Debug("can't read ganesha's processor time", "err", err)
	}
	return served, nil
}

// translate makes metrics of ganesha's counters, for the shares for which serves is true.
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

// histogramOf converts ganesha's milliseconds to seconds. It keeps only the buckets of the metric's definition, of
// ganesha's 31.
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

// ticks is how many a second the kernel counts in /proc (USER_HZ), on all processors that Kubernetes runs on.
const ticks = 100

// cpuSeconds is the processor time that a process has used.
func cpuSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// man 5 proc_pid_stat: the second field, in parentheses, may have any character; utime and stime are the 14th and 15th.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	sum := uint64(0)
	for _, field := range fields[11:13] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		sum += n
	}
	return float64(sum) / ticks, nil
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

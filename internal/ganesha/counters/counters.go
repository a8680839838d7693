package counters

import (
	"bufio"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Counters are what ganesha has counted since it was started, and what it has at present.
type Counters struct {
	// Operations by name ("GETATTR") and status ("NFS4_OK").
	Operations map[Operation]uint64
	// Durations by name of the operation.
	Durations map[string]*Duration
	// Exports by pseudo path. Ganesha counts READ and WRITE by export, and nothing else.
	Exports map[string]*Export
	// CacheHits and CacheMisses by operation ("lookup").
	CacheHits, CacheMisses map[string]uint64
	// Clients have a confirmed client ID; LeasesExpired are those that were silent for too long.
	Clients, LeasesExpired uint64
	// Requests are being executed.
	Requests uint64
	// LocksHeld and LocksAwaited are byte-range locks.
	LocksHeld, LocksAwaited uint64
}

// Operation is an operation with its outcome.
type Operation struct{ Name, Status string }

// Duration is a histogram. Ganesha counts whole milliseconds.
type Duration struct {
	Count       uint64
	Millisecond float64
	// AtMost has for an upper bound in milliseconds how many took no longer.
	AtMost map[float64]uint64
}

// Export is what was read and written of an export.
type Export struct{ ReadBytes, WrittenBytes, Reads, Writes uint64 }

// Families of ganesha 9.14 that are read here.
const (
	operations    = "nfsv4__op_count"
	durations     = "nfsv4__op_latency"
	readBytes     = "nfs_bytes_received_by_export_total" // Ganesha calls READ "received": its file system layer received it.
	writtenBytes  = "nfs_bytes_sent_by_export_total"
	sizes         = "nfs_request_size_by_export_bytes_count"
	cacheHits     = "mdcache_cache_hits_total"
	cacheMisses   = "mdcache_cache_misses_total"
	clients       = "clients__confirmed_count"
	leasesExpired = "clients__lease_expire_count"
	requests      = "rpcs_in_flight"
	locks         = "locks__count"
)

// families are the beginnings of the lines that matter: with a thousand shares nine of ten lines don't.
var families = []string{operations, durations, readBytes, writtenBytes, sizes, cacheHits, cacheMisses, clients, leasesExpired, requests, locks}

// errNothing: the text is not ganesha's.
var errNothing = errors.New("the answer has no counters of ganesha's: it needs Enable_Metrics and Enable_Dynamic_Metrics")

// maxLine is the longest line; ganesha's have some 200 bytes and a path.
const maxLine = 64 << 10

// Read reads the text of ganesha's exporter.
func Read(text io.Reader) (*Counters, error) {
	c := &Counters{
		Operations: map[Operation]uint64{}, Durations: map[string]*Duration{}, Exports: map[string]*Export{},
		CacheHits: map[string]uint64{}, CacheMisses: map[string]uint64{},
	}
	known := false
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := lines.Text()
		if !slices.ContainsFunc(families, func(family string) bool { return strings.HasPrefix(line, family) }) {
			continue
		}
		if name, labels, value, ok := ParseSample(line); ok {
			known = true
			c.take(name, labels, value)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if !known {
		return nil, errNothing
	}
	return c, nil
}

func (c *Counters) take(name string, labels map[string]string, value float64) {
	count := uint64(value)
	switch name {
	case operations:
		c.Operations[Operation{labels["op"], labels["status"]}] += count
	case durations + "_count":
		c.duration(labels["op"]).Count += count
	case durations + "_sum":
		c.duration(labels["op"]).Millisecond += value
	case durations + "_bucket":
		if bound, err := strconv.ParseFloat(labels["le"], 64); err == nil && !math.IsInf(bound, 1) {
			c.duration(labels["op"]).AtMost[bound] += count
		}
	case readBytes:
		c.export(labels["path"]).ReadBytes += count
	case writtenBytes:
		c.export(labels["path"]).WrittenBytes += count
	case sizes:
		switch labels["operation"] {
		case "read":
			c.export(labels["path"]).Reads += count
		case "write":
			c.export(labels["path"]).Writes += count
		}
	case cacheHits:
		c.CacheHits[labels["operation"]] += count
	case cacheMisses:
		c.CacheMisses[labels["operation"]] += count
	default:
		c.number(name, labels, count)
	}
}

// number takes what is one number for all of ganesha.
func (c *Counters) number(name string, labels map[string]string, count uint64) {
	switch name {
	case clients:
		c.Clients = count
	case leasesExpired:
		c.LeasesExpired = count
	case requests:
		c.Requests = count
	case locks:
		switch labels["lock_type"] {
		case "holders":
			c.LocksHeld = count
		case "waiters":
			c.LocksAwaited = count
		}
	}
}

func (c *Counters) duration(operation string) *Duration {
	if c.Durations[operation] == nil {
		c.Durations[operation] = &Duration{AtMost: map[float64]uint64{}}
	}
	return c.Durations[operation]
}

func (c *Counters) export(path string) *Export {
	if c.Exports[path] == nil {
		c.Exports[path] = &Export{}
	}
	return c.Exports[path]
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/benchmark"
)

const (
	scrapeTimeout = 15 * time.Second
	// maxMetrics is the longest answer of a data server, in bytes; a thousand shares have about 15 MB.
	maxMetrics = 64 << 20
)

// counters reads the data servers' own counters of READ, before and after a run.
type counters struct {
	servers []benchmark.Server
	log     *slog.Logger
	first   map[string]int64
}

func (c *counters) before(ctx context.Context) { c.first = c.scrapeAll(ctx) }

// after is what each server has read since before. A server whose counters could not be read both times is left out: unknown is not 0.
func (c *counters) after(ctx context.Context) []benchmark.ServerBytes {
	last := c.scrapeAll(ctx)
	var bytes []benchmark.ServerBytes
	for _, s := range c.servers {
		first, known := c.first[s.Name]
		value, still := last[s.Name]
		if !known || !still {
			continue
		}
		if value < first {
			c.log.Warn("a data server was restarted during the run; what it read before is not counted", "server", s.Name)
			first = 0
		}
		bytes = append(bytes, benchmark.ServerBytes{Name: s.Name, Bytes: value - first})
	}
	return bytes
}

func (c *counters) scrapeAll(ctx context.Context) map[string]int64 {
	var mutex sync.Mutex
	var group sync.WaitGroup
	values := map[string]int64{}
	for _, s := range c.servers {
		group.Go(func() {
			value, err := scrape(ctx, s)
			if err != nil {
				c.log.Warn("the counters of a data server could not be read", "server", s.Name, "error", err)
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			values[s.Name] = value
		})
	}
	group.Wait()
	return values
}

// scrape asks a server at each of its addresses until one answers.
func scrape(ctx context.Context, s benchmark.Server) (int64, error) {
	err := errors.New("the data server has no known address")
	for _, address := range s.Addresses {
		var value int64
		if value, err = scrapeAddress(ctx, address, s.Exports); err == nil {
			return value, nil
		}
	}
	return 0, err
}

// direct uses no proxy: the data servers are in the cluster.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func scrapeAddress(ctx context.Context, address string, exports []int32) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(address, strconv.Itoa(v1alpha1.MetricsPort))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := direct.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", address, response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxMetrics+1))
	if err != nil {
		return 0, err
	}
	if len(text) > maxMetrics {
		return 0, fmt.Errorf("%s: the counters have more than %d bytes", address, maxMetrics) // What is cut off would count as 0.
	}
	return benchmark.ReadBytes(text, exports)
}

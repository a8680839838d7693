package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/howdah/howdah/internal/dataserver/supervisor"
)

// ganeshaText is an excerpt of the metrics of ganesha 9.14.
const ganeshaText = `# HELP nfsv4__op_count NFSv4 Operations Counter
# TYPE nfsv4__op_count counter
nfsv4__op_count{op="GETATTR",status="NFS4_OK"} 7
clients__confirmed_count 1
nfs_bytes_received_by_export_total{export="export_id=1",operation="read",path="/alpha/0"} 4000
nfsv4__op_latency_count{op="GETATTR",status="NFS4_OK"} 7
nfsv4__op_latency_sum{op="GETATTR",status="NFS4_OK"} 250
nfsv4__op_latency_bucket{op="GETATTR",status="NFS4_OK",le="1"} 5
nfsv4__op_latency_bucket{op="GETATTR",status="NFS4_OK",le="256"} 7
client_requests_total{client="10.1.2.3",operation="read"} 1
`

func collectorOf(t *testing.T, handler http.HandlerFunc, state *supervisor.State) *ganeshaCollector {
	t.Helper()
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return &ganeshaCollector{
		kubeNamespace: "default", state: func() supervisor.State { return *state }, connections: func() (int32, error) { return 3, nil },
		serves: func(share string) bool { return share == "alpha" }, source: newGaneshaSource(web.URL), log: quiet,
	}
}

func textOf(t *testing.T, collector prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	mustWork(t, "gather", err)
	var text strings.Builder
	for _, family := range families {
		_, err := expfmt.MetricFamilyToText(&text, family)
		mustWork(t, "format", err)
	}
	return text.String()
}

// Everybody who reaches the port may scrape. Ganesha is asked every 5 s at most, because each answer costs it work.
func TestGaneshaIsNotAskedForEveryScrape(t *testing.T) {
	asked := 0
	state := &supervisor.State{Starts: 1, PID: 1, Initialized: true}
	collector := collectorOf(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = fmt.Fprint(w, ganeshaText)
	}, state)
	now := time.Unix(1000, 0)
	collector.source.now = func() time.Time { return now }
	for range 5 {
		textOf(t, collector)
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	now = now.Add(ganeshaEvery)
	textOf(t, collector)
	if asked != 2 {
		t.Errorf("asked %d times after %s", asked, ganeshaEvery)
	}
	// After a restart its counters start at 0.
	state.Starts = 2
	textOf(t, collector)
	if asked != 3 {
		t.Errorf("asked %d times after a restart", asked)
	}
}

func TestTheScrapedMetricIsZeroWithoutGaneshasCounters(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		text   string
		state  supervisor.State
	}{
		"an error":        {http.StatusInternalServerError, "", supervisor.State{Starts: 1, PID: 1, Initialized: true}},
		"something else":  {http.StatusOK, "<html>", supervisor.State{Starts: 1, PID: 1, Initialized: true}},
		"ganesha is down": {http.StatusOK, ganeshaText, supervisor.State{Starts: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			collector := collectorOf(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = fmt.Fprint(w, tc.text)
			}, &tc.state)
			text := textOf(t, collector)
			if !strings.Contains(text, "howdah_data_server_ganesha_scraped 0\n") || !strings.Contains(text, "howdah_data_server_connections 3\n") ||
				strings.Contains(text, "howdah_data_server_operations_total") {
				t.Errorf("got\n%s", text)
			}
		})
	}
}

func TestGaneshasCountersInPrometheusUnits(t *testing.T) {
	state := &supervisor.State{Starts: 1, PID: 1, Initialized: true}
	text := textOf(t, collectorOf(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, ganeshaText) }, state))
	for _, line := range []string{
		`howdah_data_server_operations_total{operation="GETATTR",status="NFS4_OK"} 7`,
		`howdah_data_server_operation_duration_seconds_bucket{operation="GETATTR",le="0.001"} 5`,
		`howdah_data_server_operation_duration_seconds_bucket{operation="GETATTR",le="0.256"} 7`,
		`howdah_data_server_operation_duration_seconds_bucket{operation="GETATTR",le="+Inf"} 7`,
		`howdah_data_server_operation_duration_seconds_sum{operation="GETATTR"} 0.25`,
		`howdah_data_server_clients 1`,
		`howdah_share_read_bytes_total{share="alpha",share_namespace="default",volume="0"} 4000`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, "10.1.2.3") {
		t.Errorf("an address is a label:\n%s", text)
	}
}

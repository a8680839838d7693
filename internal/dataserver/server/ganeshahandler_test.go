package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/serverpod"
)

const exporterText = `# HELP client_requests_total Total requests by client.
# TYPE client_requests_total counter
client_requests_total{client="10.0.0.7",operation="getattr"} 3
# HELP last_client_update Last update timestamp, per client.
# TYPE last_client_update gauge
last_client_update{client="10.0.0.7"} 1764000000
# HELP client_bytes_sent_total Total response bytes sent by client.
# TYPE client_bytes_sent_total counter
client_bytes_sent_total{client="10.0.0.7",operation="read"} 1
# HELP nfs_requests_total Total requests.
# TYPE nfs_requests_total counter
nfs_requests_total{operation="getattr"} 3
# TYPE rpcs_in_flight gauge
rpcs_in_flight 0
client_requests_total_of_another_kind 1
`

const exporterWithoutClients = `# HELP nfs_requests_total Total requests.
# TYPE nfs_requests_total counter
nfs_requests_total{operation="getattr"} 3
# TYPE rpcs_in_flight gauge
rpcs_in_flight 0
client_requests_total_of_another_kind 1
`

func TestMetricsByClientAddressAreLeftOut(t *testing.T) {
	for name, text := range map[string]string{"all of it": exporterText, "cut in a line": exporterText + "nfs_requests_tot"} {
		if kept, err := withoutClients(strings.NewReader(text)); err != nil || string(kept) != exporterWithoutClients {
			t.Errorf("%s: %v\n%s", name, err, kept)
		}
	}
	if _, err := withoutClients(strings.NewReader(strings.Repeat("a", maxExporterLine+1) + "\n")); err == nil {
		t.Error("a line without an end is accepted")
	}
}

func TestGaneshasMetricsAreServed(t *testing.T) {
	var asked atomic.Int32
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(exporterText))
	}))
	defer exporter.Close()
	state := supervisor.State{}
	get := func(handler http.Handler) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, serverpod.MetricsPath, http.NoBody))
		return answer
	}
	if a := get(NewGaneshaHandler(func() supervisor.State { return state }, exporter.URL)); a.Code != http.StatusServiceUnavailable {
		t.Errorf("before it is up: %d %s", a.Code, a.Body)
	}
	state.Initialized = true
	handler := NewGaneshaHandler(func() supervisor.State { return state }, exporter.URL)
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			if a := get(handler); a.Code != http.StatusOK || a.Body.String() != exporterWithoutClients || a.Header().Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
				t.Errorf("%d %v\n%s", a.Code, a.Header(), a.Body)
			}
		})
	}
	group.Wait()
	// Requests that came after the first answer was started share the next one.
	if n := asked.Load(); n > 2 {
		t.Errorf("ganesha was asked %d times for ten concurrent requests", n)
	}
	exporter.Close()
	if a := get(NewGaneshaHandler(func() supervisor.State { return state }, exporter.URL)); a.Code != http.StatusBadGateway {
		t.Errorf("without an exporter: %d %s", a.Code, a.Body)
	}
}

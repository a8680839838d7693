package engine

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A data server with thousands of shares has many counters. Those that were cut off counted as 0.
func TestCountersOfThousandsOfSharesAreReadOrUnknown(t *testing.T) {
	other := bytes.Repeat([]byte("nfs_bytes_received_by_export_total{export=\"export_id=4\",operation=\"read\"} 7\n"), 1<<13)
	for name, tc := range map[string]struct {
		before int
		want   int64
		fails  bool
	}{
		"thousands": {before: 20 << 20, want: 9},
		"too many":  {before: maxMetrics, fails: true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for written := 0; written <= tc.before; written += len(other) {
				_, _ = w.Write(other)
			}
			_, _ = io.WriteString(w, "nfs_bytes_received_by_export_total{export=\"export_id=3\",operation=\"read\"} 9\n")
		}))
		got, err := scrapeAddress(t.Context(), strings.TrimPrefix(server.URL, "http://"), []int32{3})
		if got != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %d, %v", name, got, err)
		}
		server.Close()
	}
}

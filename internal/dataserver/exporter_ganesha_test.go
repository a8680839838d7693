package dataserver

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/serverpod"
)

// getText asks for metrics on a connection of its own.
func getText(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	mustWork(t, "ask "+url, err)
	defer response.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(response.Body)
	mustWork(t, "read the answer of "+url, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", url, response.Status, text)
	}
	return string(text)
}

// exporterIsNotReached: ganesha's own exporter is on the loopback interface alone; what it says is given out by the supervisor, without
// what is counted by client address.
func exporterIsNotReached(t *testing.T) {
	s := boot(t, "exporter", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	go func() {
		_ = server.ServeHTTP(t.Context(), v1alpha1.MetricsPort, server.NewGaneshaHandler(s.supervisor.State, s.options.ganesha().MetricsURL()), s.nodes, quiet)
	}()
	file := volumesOf("exporter") + "/0/alpha/file"
	mustWork(t, "make a file", os.WriteFile(file, make([]byte, 5000), 0o644))
	w := dialWire(t, "10.99.0.1:2049", 1)
	w.results(user, append(lookUp("alpha", "0", "file"), &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Count: 5000}})...)

	if conn, err := net.DialTimeout("tcp", "10.99.0.1:9586", time.Second); err == nil {
		_ = conn.Close()
		t.Error("the exporter is reached from outside of the pod")
	}
	text := getText(t, "http://10.99.0.1:9587/metrics")
	for _, family := range []string{"nfs_bytes_received_by_export_total{", "nfsv4__op_count{", "rpcs_in_flight"} {
		if !strings.Contains(text, "\n"+family) {
			t.Errorf("port 9587 does not tell %s", family)
		}
	}
	if strings.Contains(text, "10.99.0.1") || strings.Contains(text, "client=") {
		t.Error("port 9587 tells of client addresses")
	}
	if strings.Contains(getText(t, s.options.ganesha().MetricsURL()), "client=") {
		t.Error("ganesha counts by client address")
	}
}

// silenceHarmsNothing: who connects to the exporter and says nothing, or reads nothing, holds up neither others nor ganesha's end.
func silenceHarmsNothing(t *testing.T) {
	s := boot(t, "silent-scraper", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	connect := func() net.Conn {
		conn, err := net.Dial("tcp", "127.0.0.1:9586")
		mustWork(t, "connect to the exporter", err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	connect()
	began := time.Now()
	getText(t, s.options.ganesha().MetricsURL())
	t.Logf("FIGURE the exporter's answer beside a silent client: %s", time.Since(began).Round(time.Millisecond))
	for range 3 { // As many as wait to be accepted.
		connect()
	}
	began = time.Now()
	s.stop()
	took := time.Since(began)
	t.Logf("FIGURE the end of ganesha beside silent clients of the exporter: %s", took.Round(time.Millisecond))
	if took >= serverpod.StopAllowance/2 {
		t.Errorf("it took %s, and is killed after %s", took, serverpod.StopAllowance)
	}
}

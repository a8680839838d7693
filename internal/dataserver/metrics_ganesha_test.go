package dataserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"golang.org/x/sys/unix"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/metrics"
	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/serverpod"
	"github.com/howdah/howdah/test/exposition"
)

// scrape is what Prometheus gets of the data server.
func (s *dataServer) scrape() string {
	s.t.Helper()
	answer := httptest.NewRecorder()
	s.handler().ServeHTTP(answer, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, serverpod.MetricsPath, nil))
	if answer.Code != http.StatusOK {
		s.t.Fatalf("the metrics: %d %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// scraped waits for a sample.
func (s *dataServer) scraped(sample string) string {
	s.t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		text := s.scrape()
		if strings.Contains("\n"+text, "\n"+sample+"\n") {
			return text
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain for %s in\n%s", sample, text)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// served is what the plugin gets of the data server.
func (s *dataServer) served() (served serverpod.Served) {
	s.t.Helper()
	answer := httptest.NewRecorder()
	s.handler().ServeHTTP(answer, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, serverpod.ServedPath, nil))
	if err := json.Unmarshal(answer.Body.Bytes(), &served); answer.Code != http.StatusOK || err != nil {
		s.t.Fatalf("what is served: %d %s: %v", answer.Code, answer.Body, err)
	}
	return served
}

// metricsOfGanesha: what the real ganesha counts comes by share, in Prometheus' units.
func metricsOfGanesha(t *testing.T) {
	const identity = `data_server="training-0",file_server="training",namespace="default"`
	s := boot(t, "metrics", 2)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha"), dataservertest.ShareSpec("team-a.alpha"), dataservertest.ShareSpec("beta")}
	})
	s.settle()
	for _, share := range []string{"alpha", "team-a.alpha", "beta"} {
		file := "/volumes/metrics/1/" + share + "/file"
		mustWork(t, "make a file", os.WriteFile(file, make([]byte, 5000), 0o600))
		mustWork(t, "give it away", os.Chown(file, 1000, 1000))
	}
	w := dialWire(t, "10.99.0.1:2049", 1)
	read := func(share string, bytes uint32) {
		w.results(user, append(lookUp(share, "1", "file"), &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Count: bytes}})...)
	}
	read("alpha", 4000)
	read("alpha", 500)
	read("team-a.alpha", 30)
	read("beta", 2)
	w.results(user, append(lookUp("alpha", "1", "file"), &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Data: make([]byte, 300)}})...)
	mustFailWith(t, "stat of nothing", func() error {
		_, err := s.from("10.99.0.1").Stat(t.Context(), user, "/alpha/1/nothing")
		return err
	}(), nfsv4.NFS4ERR_NOENT)

	began := time.Now()
	text := s.scraped(`howdah_share_read_bytes_total{` + identity + `,share="alpha",share_namespace="default",volume="1"} 4500`)
	t.Logf("FIGURE a scrape of a data server with three shares: %d lines, %s", strings.Count(text, "\n"), time.Since(began).Round(time.Millisecond))
	if err := exposition.Check(text, metrics.DataServer); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	for _, sample := range []string{
		`howdah_share_read_bytes_total{%s,share="alpha",share_namespace="team-a",volume="1"} 30`,
		`howdah_share_read_bytes_total{%s,share="beta",share_namespace="default",volume="1"} 2`,
		`howdah_share_reads_total{%s,share="alpha",share_namespace="default",volume="1"} 2`,
		`howdah_share_written_bytes_total{%s,share="alpha",share_namespace="default",volume="1"} 300`,
		`howdah_share_writes_total{%s,share="alpha",share_namespace="default",volume="1"} 1`,
		`howdah_data_server_operations_total{%s,operation="READ",status="NFS4_OK"} 4`,
		`howdah_data_server_ready{%s} 1`,
		`howdah_data_server_shares{%s} 3`,
		`howdah_data_server_ganesha_scraped{%s} 1`,
		`howdah_data_server_ganesha_starts_total{%s} 1`,
		`howdah_data_server_connections_limit{%s} 4096`,
	} {
		if sample = fmt.Sprintf(sample, identity); !strings.Contains(text, sample+"\n") {
			t.Errorf("there is no %s in\n%s", sample, text)
		}
	}
	served := s.served()
	if got, want := served.Shares["alpha"], (serverpod.ServedShare{ReadBytes: 4500, WrittenBytes: 300, Reads: 2, Writes: 1}); got != want {
		t.Errorf("of alpha %+v are reported, want %+v", got, want)
	}
	if served.Requests < 6 || served.CPUSeconds <= 0 || served.CPUTime.IsZero() {
		t.Errorf("%d requests and %v s of processor time at %v are reported", served.Requests, served.CPUSeconds, served.CPUTime)
	}
	if strings.Contains(text, "10.99.0.1") || strings.Contains(text, "/alpha") {
		t.Errorf("an address or a path is a label:\n%s", text)
	}

	// A share that leaves takes its metrics with it, although ganesha goes on counting it.
	s.apply(func(spec *dataservertest.Wanted) { spec.Exports = spec.Exports[:2] })
	s.settle()
	if text := s.scrape(); strings.Contains(text, `share="beta"`) || !strings.Contains(text, `share="alpha"`) {
		t.Errorf("after beta was deleted:\n%s", text)
	}
}

// graceIsReported: a client that does not come back keeps a restarted ganesha in grace, and the metrics say so until it ends.
func graceIsReported(t *testing.T) {
	const identity = `{data_server="training-0",file_server="training",namespace="default"}`
	s := boot(t, "grace", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.GraceSeconds = 15
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	absent := s.from("10.99.0.2")
	mustWork(t, "mkdir", absent.Mkdir(t.Context(), user, "/alpha/0/made", client.MkdirOptions{Mode: 0o755}))
	s.scraped("howdah_data_server_in_grace" + identity + " 0")
	mustWork(t, "kill ganesha", syscall.Kill(s.pid(), syscall.SIGKILL))
	s.scraped("howdah_data_server_ganesha_starts_total" + identity + " 2")
	s.scraped("howdah_data_server_in_grace" + identity + " 1")
	s.scraped("howdah_data_server_in_grace" + identity + " 0")
}

// endsAreReported: each end of ganesha is in the status with its reason, and with the time until it served again.
func endsAreReported(t *testing.T) {
	s := boot(t, "ends", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	if status, _ := s.status.Get(); status.LastEnd != nil {
		t.Errorf("at first: %+v", status.LastEnd)
	}
	for count, signal := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGKILL} {
		began, before := time.Now(), s.supervisor.State().Starts
		mustWork(t, "kill ganesha", syscall.Kill(s.pid(), signal))
		s.await("the end in the status", func(dataservertest.Reported) bool {
			status, _ := s.status.Get()
			return status.LastEnd != nil && ptr.Deref(status.LastEnd.Count, 0) == int64(count+1) && status.LastEnd.ServedAfterMilliseconds != nil
		})
		status, _ := s.status.Get()
		end, took := status.LastEnd, time.Since(began)
		served := time.Duration(*end.ServedAfterMilliseconds) * time.Millisecond
		if end.Cause != v1alpha1.EndGanesha || end.Message != "ganesha was killed by signal "+unix.SignalName(signal) || served <= 0 || served > took ||
			end.EndTime.Time.Before(began.Add(-time.Second)) {
			t.Errorf("%s, within %s: %+v", signal, took, end)
		}
		t.Logf("FIGURE served again after %s: %s", unix.SignalName(signal), served)
		if starts := s.supervisor.State().Starts; starts != before+1 {
			t.Errorf("%d starts after %d", starts, before)
		}
		s.scraped(`howdah_data_server_ganesha_ends_total{data_server="training-0",file_server="training",namespace="default",signal="` + unix.SignalName(signal) + `"} 1`)
	}
	// A restart that the supervisor asks for is none.
	s.supervisor.Restart()
	s.await("the restart", func(dataservertest.Reported) bool {
		return s.supervisor.State().Starts == 4 && s.probes.Fit(t.Context()) == nil
	})
	s.settle()
	if status, _ := s.status.Get(); ptr.Deref(status.LastEnd.Count, 0) != 2 {
		t.Errorf("after a restart that was asked for: %+v", status.LastEnd)
	}
}

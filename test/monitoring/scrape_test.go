package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/metrics"
	"github.com/howdah/howdah/test/exposition"
)

// expositions are what processes gave: the operator's is the golden of objectmetrics, the others were taken from a namespace server
// and from a data server with the real ganesha (TestTheMetricsOfANamespaceServer and metricsOfGanesha, which hold to the same
// catalogue whatever these expose today).
var expositions = map[metrics.Process]string{
	metrics.Operator:        top + "/controllers/objectmetrics/testdata/objects.prom",
	metrics.NamespaceServer: "testdata/namespace-server.prom",
	metrics.DataServer:      "testdata/data-server.prom",
}

// scrapeTimeout is how long Prometheus may take to have two samples of everything.
const scrapeTimeout = 2 * time.Minute

func TestExpositionsAreWhatProcessesExpose(t *testing.T) {
	for process, file := range expositions {
		var absent []*metrics.Metric
		if process == metrics.Operator {
			absent = append(absent, metrics.BuildInfo) // The program's, and this is the objects'.
		}
		if err := exposition.Check(string(read(t, file)), process, absent...); err != nil {
			t.Errorf("%s is not what a %s exposes: %v", file, process, err)
		}
	}
}

// served gives the address of a server of a process' exposition.
func served(t *testing.T, file string) string {
	t.Helper()
	text := read(t, file)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(text)
	}))
	t.Cleanup(web.Close)
	return strings.TrimPrefix(web.URL, "http://")
}

// ofExpositions is a configuration that scrapes what processes gave once.
func ofExpositions(t *testing.T) string {
	t.Helper()
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\nscrape_configs:\n"
	for process, file := range expositions {
		config += fmt.Sprintf("- {job_name: %q, honor_labels: true, static_configs: [{targets: [%q], labels: {namespace: pods, pod: a}}]}\n", process, served(t, file))
	}
	return config
}

// startPrometheus starts Debian's with a configuration and the rules, which are in a folder, and gives its address.
func startPrometheus(t *testing.T, folder, config string) string {
	t.Helper()
	for name, text := range map[string][]byte{"prometheus.yml": []byte(config), "rules.yaml": read(t, rulesFile)} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var log bytes.Buffer
	command := exec.CommandContext(ctx, filepath.Join(os.Getenv(envPrometheus), "prometheus"), "--config.file="+filepath.Join(folder, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+address, "--log.level=warn")
	command.Stdout, command.Stderr = &log, &log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 20 * time.Second
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = command.Wait() // It was interrupted.
		if t.Failed() {
			t.Logf("prometheus wrote:\n%s", &log)
		}
	})
	return address
}

// ask gives how many series an expression has now.
func ask(ctx context.Context, address, expr string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/v1/query?"+url.Values{"query": {expr}}.Encode(), http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Status != "success" {
		return 0, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	return len(answer.Data.Result), nil
}

// asked are the expressions that must have data: those of dashboards and records as they are, of alerts, which are about what is
// wrong, the metrics in them. What only the operator's libraries have is not here.
func asked(t *testing.T) map[string]string {
	t.Helper()
	all := wanted(t)
	maps.DeleteFunc(all, func(_, expr string) bool {
		return !slices.ContainsFunc(metricsOf(expr), func(name string) bool {
			return !strings.HasPrefix(metrics.Foreign[suffix.ReplaceAllString(name, "")], "operator:")
		})
	})
	return all
}

// wanted are those expressions with what the operator's libraries have.
func wanted(t *testing.T) map[string]string {
	t.Helper()
	all := expressions(t)
	_, alerts := rules(t)
	for _, alert := range alerts {
		delete(all, "rule "+alert.Alert)
		for _, name := range metricsOf(alert.Expr) {
			all["alert "+alert.Alert+" "+name] = name
		}
	}
	return all
}

// Labels that don't match, a rate of a gauge's name, a record that is misspelt: an expression that parses can be about nothing.
func TestEveryExpressionHasData(t *testing.T) {
	if os.Getenv(envPrometheus) == "" {
		if os.Getenv(envRequire) == "1" {
			t.Fatalf("%s names no folder with prometheus; hack/prometheus.sh fetches one", envPrometheus)
		}
		t.Skipf("%s names no folder with prometheus; hack/prometheus.sh fetches one", envPrometheus)
	}
	findData(t, startPrometheus(t, t.TempDir(), ofExpositions(t)), asked(t), scrapeTimeout)
}

// findData waits until all expressions have data.
func findData(t *testing.T, address string, missing map[string]string, timeout time.Duration) {
	t.Helper()
	all, began, reported := len(missing), time.Now(), time.Now()
	for time.Since(began) < timeout && len(missing) > 0 {
		time.Sleep(time.Second)
		for what, expr := range missing {
			if series, err := ask(t.Context(), address, expr); err == nil && series > 0 {
				delete(missing, what)
			}
		}
		if time.Since(reported) > 10*time.Second {
			reported = time.Now()
			t.Logf("%.0f s: %d of %d expressions have data", time.Since(began).Seconds(), all-len(missing), all)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(missing)) {
		_, err := ask(t.Context(), address, missing[what])
		t.Errorf("%s has no data: %s (%v)", what, missing[what], err)
	}
	t.Logf("FIGURE %d of %d expressions have data after %s", all-len(missing), all, time.Since(began).Round(time.Second))
}

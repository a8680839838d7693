package metrics

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
)

// families gathers each metric of the catalogue with one value.
func families(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, m := range All() {
		switch m.Type {
		case Counter:
			vector := m.CounterVec()
			vector.WithLabelValues(m.Labels...).Add(1)
			registry.MustRegister(vector)
		case Gauge:
			vector := m.GaugeVec()
			vector.WithLabelValues(m.Labels...).Set(1)
			registry.MustRegister(vector)
		case Histogram:
			vector := m.HistogramVec()
			vector.WithLabelValues(m.Labels...).Observe(1)
			registry.MustRegister(vector)
		default:
			t.Fatalf("%s has the type %q", m.Name, m.Type)
		}
	}
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(gathered) != len(All()) {
		t.Fatalf("%d metrics have %d names", len(All()), len(gathered))
	}
	return gathered
}

func TestNamesFollowPrometheusConventions(t *testing.T) {
	problems, err := promlint.NewWithMetricFamilies(families(t)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

func TestEveryMetricTellsWhoseItIs(t *testing.T) {
	prefixes := map[Process]*regexp.Regexp{
		Everywhere:      regexp.MustCompile(`^howdah_build_`),
		Operator:        regexp.MustCompile(`^howdah_(objects?|file_server|file_share|mlperf_storage_job)_`),
		NamespaceServer: regexp.MustCompile(`^howdah_namespace_`),
		DataServer:      regexp.MustCompile(`^howdah_(data_server|share)_`),
	}
	for _, m := range All() {
		if !prefixes[m.Process].MatchString(m.Name) {
			t.Errorf("%s is of the %s and not like %s", m.Name, m.Process, prefixes[m.Process])
		}
		if !strings.HasSuffix(m.Help, ".") {
			t.Errorf("the help of %s is no sentence: %q", m.Name, m.Help)
		}
	}
}

// What Prometheus and its operator set on every target must not be a label here: it would be renamed. "namespace" is theirs
// and ours on purpose (honorLabels): an alert goes to whoever the object belongs to.
func TestNoLabelIsPrometheusOwn(t *testing.T) {
	for _, m := range All() {
		for _, label := range m.Labels {
			switch label {
			case "job", "instance", "pod", "container", "endpoint", "service", "le", "quantile", "client", "address", "directory", "path":
				t.Errorf("%s has the label %s", m.Name, label)
			}
		}
	}
}

func TestTheReferencePageIsLevel(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != Reference() {
		t.Error("docs/reference/metrics.md is not what the catalogue says; hack/generate.sh manifests writes it")
	}
}

// Package exposition holds what a process really exposes to Prometheus against the catalogue (internal/metrics) and against
// Prometheus' conventions.
package exposition

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/howdah/howdah/internal/metrics"
)

// ofLibraries is what may be there beside the catalogue.
var ofLibraries = regexp.MustCompile(`^(go|process|ganesha_process|promhttp|controller_runtime|workqueue|rest_client|leader_election|certwatcher|apiserver|authentication|authenticated|authorization|kubernetes)_`)

// forgiven are complaints of promlint about metrics of libraries.
var forgiven = map[string]bool{}

// Check tells what is wrong with what a process exposes. absent are metrics of the catalogue that need not be there.
func Check(text string, process metrics.Process, absent ...*metrics.Metric) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return fmt.Errorf("not Prometheus' text format: %w", err)
	}
	var problems []error
	complaints, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		return err
	}
	for _, complaint := range complaints {
		if !forgiven[complaint.Metric] {
			problems = append(problems, fmt.Errorf("promlint: %s: %s", complaint.Metric, complaint.Text))
		}
	}
	known := map[string]*metrics.Metric{}
	for _, metric := range metrics.All() {
		if metric.Process != process && metric.Process != metrics.Everywhere {
			continue
		}
		known[metric.Name] = metric
		if families[metric.Name] == nil && !slices.Contains(absent, metric) {
			problems = append(problems, fmt.Errorf("%s is not exposed", metric.Name))
		}
	}
	for name, family := range families {
		switch metric := known[name]; {
		case metric != nil:
			problems = append(problems, compare(metric, family, metrics.IdentityLabels(process)))
		case !ofLibraries.MatchString(name):
			problems = append(problems, fmt.Errorf("%s is exposed, and not in the catalogue", name))
		}
	}
	return errors.Join(problems...)
}

func compare(metric *metrics.Metric, family *dto.MetricFamily, identity []string) error {
	if got := strings.ToLower(family.GetType().String()); got != string(metric.Type) {
		return fmt.Errorf("%s is a %s, and a %s in the catalogue", metric.Name, got, metric.Type)
	}
	want := slices.Sorted(slices.Values(slices.Concat(metric.Labels, identity)))
	for _, sample := range family.Metric {
		var got []string
		for _, label := range sample.Label {
			got = append(got, label.GetName())
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s has the labels %v, and %v in the catalogue", metric.Name, got, want)
		}
	}
	return nil
}

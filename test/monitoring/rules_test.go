package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/internal/metrics"
)

const (
	top       = "../.."
	rulesFile = top + "/config/prometheus/rules.yaml"
)

type rule struct {
	Record      string            `json:"record,omitempty"`
	Alert       string            `json:"alert,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type ruleGroups struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// rules are those of the file, and only what it may have is in it.
func rules(t *testing.T) (records, alerts []rule) {
	t.Helper()
	var file ruleGroups
	if err := yaml.UnmarshalStrict(read(t, rulesFile), &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				alerts = append(alerts, rule)
			} else {
				records = append(records, rule)
			}
		}
	}
	return records, alerts
}

var (
	quoted  = regexp.MustCompile(`"[^"]*"|\{[^}]*\}`)
	grouped = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	word    = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	suffix  = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// functions and words of PromQL that expressions here use; promtool knows what is an expression, this knows what is no metric.
var functions = []string{
	"and", "or", "unless", "sum", "max", "min", "avg", "count", "topk", "rate", "increase", "changes", "absent", "time", "histogram_quantile",
	"max_over_time", "predict_linear", "clamp_min", "bool", "sort_desc", "label_replace", "d", "h", "m", "s", "__rate_interval", "__range",
}

// metricsOf are the names in an expression that are neither functions nor labels.
func metricsOf(expression string) (names []string) {
	expression = grouped.ReplaceAllString(quoted.ReplaceAllString(expression, ""), "")
	for _, name := range word.FindAllString(expression, -1) {
		if !slices.Contains(functions, name) {
			names = append(names, name)
		}
	}
	return names
}

// known tells what there is to ask for: the catalogue, what libraries make, and what the rules record.
func known(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, metric := range metrics.All() {
		all[metric.Name] = true
	}
	for name := range metrics.Foreign {
		all[name] = true
	}
	records, _ := rules(t)
	for _, record := range records {
		all[record.Record] = true
	}
	return all
}

func mustBeKnown(t *testing.T, where, expression string, known map[string]bool) {
	t.Helper()
	names := metricsOf(expression)
	if len(names) == 0 {
		t.Errorf("%s: no metric is in %s", where, expression)
	}
	for _, name := range names {
		if !known[name] && !known[suffix.ReplaceAllString(name, "")] {
			t.Errorf("%s: %s is in no process (%s)", where, name, expression)
		}
	}
}

func TestRulesAskForMetricsThatThereAre(t *testing.T) {
	known := known(t)
	records, alerts := rules(t)
	for _, rule := range append(records, alerts...) {
		mustBeKnown(t, rule.Alert+rule.Record, rule.Expr, known)
	}
	if len(records) == 0 || len(alerts) == 0 {
		t.Errorf("%d records, %d alerts", len(records), len(alerts))
	}
}

func TestAMetricThatNoProcessHasIsFound(t *testing.T) {
	for expression, want := range map[string][]string{
		`sum by (namespace, le) (rate(howdah_x_bucket{a="b", c=~"d|e"}[5m])) > 5 and on (f) howdah:y:ratio`: {"howdah_x_bucket", "howdah:y:ratio"},
		`absent(up == 1)`: {"up"},
	} {
		if got := metricsOf(expression); !slices.Equal(got, want) {
			t.Errorf("in %s: %v, not %v", expression, got, want)
		}
	}
}

// Whoever is woken finds what to do: a section for each alert, and none for what there isn't.
func TestEveryAlertHasARunbook(t *testing.T) {
	records, alerts := rules(t)
	page := string(read(t, filepath.Join(top, "docs", "operate", "runbooks.md")))
	counted := fmt.Sprintf("%d recording rules and %d alerts", len(records), len(alerts))
	if !strings.Contains(string(read(t, filepath.Join(top, "docs", "operate", "monitoring.md"))), counted) {
		t.Errorf("docs/operate/monitoring.md does not say that there are %s", counted)
	}
	var sections []string
	for line := range strings.Lines(page) {
		if name, found := strings.CutPrefix(line, "## "); found {
			sections = append(sections, strings.TrimSpace(name))
		}
	}
	var names []string
	for _, alert := range alerts {
		names = append(names, alert.Alert)
		if severity := alert.Labels["severity"]; severity != "warning" && !regexp.MustCompile(`(?m)^\| `+severity+`\b.*\b`+strings.TrimPrefix(alert.Alert, "Howdah")+`\b`).MatchString(page) {
			t.Errorf("the table at the top of docs/operate/runbooks.md does not have %s with the severity %s", alert.Alert, severity)
		}
		if want := "docs/operate/runbooks.md#" + strings.ToLower(alert.Alert); !strings.HasSuffix(alert.Annotations["runbook_url"], want) {
			t.Errorf("the runbook of %s is %s, not …%s", alert.Alert, alert.Annotations["runbook_url"], want)
		}
		if alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", alert.Alert)
		}
		if !slices.Contains([]string{"info", "warning", "critical"}, alert.Labels["severity"]) {
			t.Errorf("%s has the severity %q", alert.Alert, alert.Labels["severity"])
		}
	}
	if !slices.Equal(sections, names) {
		t.Errorf("the sections of docs/operate/runbooks.md are %v, the alerts %v", sections, names)
	}
}

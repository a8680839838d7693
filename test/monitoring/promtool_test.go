package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	envPrometheus = "HOWDAH_PROMETHEUS"
	// envRequire makes a missing promtool a failure instead of a skip.
	envRequire = "HOWDAH_REQUIRE_PROMETHEUS"
)

// promtool runs Debian's promtool.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	binary := filepath.Join(os.Getenv(envPrometheus), "promtool")
	if os.Getenv(envPrometheus) == "" {
		if os.Getenv(envRequire) == "1" {
			t.Fatalf("%s names no folder with promtool; hack/prometheus.sh fetches one", envPrometheus)
		}
		t.Skipf("%s names no folder with promtool; hack/prometheus.sh fetches one", envPrometheus)
	}
	if output, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// The form of promtool's unit tests.
type (
	testFile struct {
		RuleFiles          []string    `json:"rule_files"`
		EvaluationInterval string      `json:"evaluation_interval"`
		Tests              []alertTest `json:"tests"`
	}
	alertTest struct {
		Name      string          `json:"name"`
		Interval  string          `json:"interval"`
		Series    []series        `json:"input_series"`
		AlertTest []alertRuleTest `json:"alert_rule_test"`
	}
	series struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	alertRuleTest struct {
		EvalTime  string     `json:"eval_time"`
		AlertName string     `json:"alertname"`
		Alerts    []expected `json:"exp_alerts"`
	}
	expected struct {
		Labels      map[string]string `json:"exp_labels"`
		Annotations map[string]string `json:"exp_annotations"`
	}
)

var placeholder = regexp.MustCompile(`\{\{ \$labels\.([a-z_]+) \}\}`)

// valuePlaceholder is the one form of a value that annotations have.
const valuePlaceholder = "{{ $value | humanizePercentage }}"

// fill puts labels and the value into an annotation, as Prometheus does.
func fill(text, value string, labels map[string]string) string {
	if value != "" {
		text = strings.ReplaceAll(text, valuePlaceholder, value)
	}
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		return labels[placeholder.FindStringSubmatch(found)[1]]
	})
}

// story is how an alert is made to fire, and a world in which it must not.
type story struct {
	// fires and silent are samples, one a minute.
	fires, silent []series
	// at is when it fires, and labels what it says then beside its severity.
	at     string
	labels map[string]string
	// value is what annotations say of it, in percent.
	value string
}

func TestAlertsFireAndStaySilent(t *testing.T) {
	_, alerts := rules(t)
	rulesPath, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	file := testFile{RuleFiles: []string{rulesPath}, EvaluationInterval: "1m"}
	for _, alert := range alerts {
		story, found := stories[alert.Alert]
		if !found {
			t.Errorf("no story makes %s fire", alert.Alert)
			continue
		}
		want := expected{Labels: map[string]string{"severity": alert.Labels["severity"]}, Annotations: map[string]string{}}
		for label, value := range story.labels {
			want.Labels[label] = value
		}
		for key, text := range alert.Annotations {
			want.Annotations[key] = fill(text, story.value, story.labels)
			if strings.Contains(want.Annotations[key], "{{") {
				t.Errorf("%s: %s of %s is not filled in", alert.Alert, want.Annotations[key], key)
			}
		}
		file.Tests = append(file.Tests,
			alertTest{alert.Alert + " fires", "1m", story.fires, []alertRuleTest{{story.at, alert.Alert, []expected{want}}}},
			alertTest{alert.Alert + " stays silent", "1m", story.silent, []alertRuleTest{{"20m", alert.Alert, []expected{}}, {"50m", alert.Alert, []expected{}}}},
		)
	}
	if len(stories) != len(alerts) {
		t.Errorf("%d stories for %d alerts", len(stories), len(alerts))
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "alerts_test.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", path)
}

func TestRulesAreRules(t *testing.T) { promtool(t, "check", "rules", rulesFile) }

// Debian's Prometheus knows no Kubernetes: it gets its targets, with the labels that Kubernetes' discovery gives, from a file.
func TestTheScrapeConfigurationIsOne(t *testing.T) {
	text := string(read(t, top+"/config/prometheus/scrape.yaml"))
	const discovery = "kubernetes_sd_configs:\n  - role: pod\n"
	if strings.Count(text, discovery) != strings.Count(text, "job_name:") {
		t.Fatal("a job finds its targets in another way than this test replaces")
	}
	path := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, discovery, "file_sd_configs:\n  - files: [targets.json]\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "config", "--syntax-only", path)
}

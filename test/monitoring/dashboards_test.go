package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// dashboard is what is looked at of one of Grafana's.
type dashboard struct {
	UID           string
	Title         string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, RefID string }

		FieldConfig struct {
			Defaults struct{ Unit string }
		}
	}
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(top + "/config/prometheus/dashboards/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("%v: %v", err, files)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		var d dashboard
		if err := json.Unmarshal(read(t, file), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = d
	}
	return all
}

var (
	variableUsed = regexp.MustCompile(`\$\{?([a-z_]+)\}?`)
	labelValues  = regexp.MustCompile(`^label_values\((.+), [a-z_]+\)$`)
)

// units are those of Grafana that these dashboards use; a typing error would be shown as text behind each number.
var units = []string{"short", "bytes", "Bps", "ops", "s", "percentunit", "bool_yes_no"}

func TestDashboardsShowMetricsThatThereAre(t *testing.T) {
	known := known(t)
	for name, d := range dashboards(t) {
		variables := []string{"__rate_interval"}
		for _, v := range d.Templating.List {
			variables = append(variables, v.Name)
			if v.Type != "query" {
				continue
			}
			selector := labelValues.FindStringSubmatch(v.Definition)
			if selector == nil {
				t.Errorf("%s: variable %s is %s", name, v.Name, v.Definition)
				continue
			}
			mustBeKnown(t, name+" variable "+v.Name, selector[1], known)
		}
		if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 {
			t.Errorf("%s has no uid, title or schema version", name)
		}
		for _, panel := range d.Panels {
			if panel.Type == "row" {
				continue
			}
			where := fmt.Sprintf("%s, %s", name, panel.Title)
			if !slices.Contains(units, panel.FieldConfig.Defaults.Unit) {
				t.Errorf("%s has the unit %q", where, panel.FieldConfig.Defaults.Unit)
			}
			if panel.Title == "" || len(panel.Targets) == 0 {
				t.Errorf("%s has no title or shows nothing", where)
			}
			for _, target := range panel.Targets {
				mustBeKnown(t, where, target.Expr, known)
				for _, used := range variableUsed.FindAllStringSubmatch(target.Expr, -1) {
					if !slices.Contains(variables, used[1]) {
						t.Errorf("%s: $%s is not set", where, used[1])
					}
				}
			}
		}
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	for name, d := range dashboards(t) {
		taken, ids := map[[2]int]string{}, map[int]bool{}
		for _, panel := range d.Panels {
			if ids[panel.ID] {
				t.Errorf("%s: two panels are number %d", name, panel.ID)
			}
			ids[panel.ID] = true
			at := panel.GridPos
			if at.W < 1 || at.H < 1 || at.X+at.W > 24 {
				t.Errorf("%s: %s is at %+v", name, panel.Title, at)
			}
			for x := at.X; x < at.X+at.W; x++ {
				for y := at.Y; y < at.Y+at.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: %s lies on %s", name, panel.Title, other)
					}
					taken[[2]int{x, y}] = panel.Title
				}
			}
		}
	}
}

// Expressions gives every expression of rules and dashboards, with Grafana's variables replaced by what they mean for "All".
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	records, alerts := rules(t)
	for _, rule := range append(records, alerts...) {
		all["rule "+rule.Record+rule.Alert] = rule.Expr
	}
	for name, d := range dashboards(t) {
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
				all[name+" "+panel.Title+" "+target.RefID] = variableUsed.ReplaceAllString(expr, ".*")
			}
		}
	}
	return all
}

// promtool parses PromQL in rules only, so each expression becomes one.
func TestEveryExpressionParses(t *testing.T) {
	var group struct {
		Groups []map[string]any `json:"groups"`
	}
	var list []rule
	for _, expr := range expressions(t) {
		list = append(list, rule{Record: fmt.Sprintf("test:expression:%d", len(list)), Expr: expr})
	}
	group.Groups = []map[string]any{{"name": "expressions", "rules": list}}
	text, err := yaml.Marshal(group)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "expressions.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", path)
}

package monitoring

import (
	"bytes"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// run runs a tool that the integration stage builds; without it the test is skipped.
func run(t *testing.T, tool string, args ...string) []byte {
	t.Helper()
	binary := os.Getenv(tool)
	if binary == "" {
		if os.Getenv(envRequire) == "1" {
			t.Fatalf("%s names no binary; hack/tools/build.sh makes it", tool)
		}
		t.Skipf("%s names no binary; hack/tools/build.sh makes it", tool)
	}
	var output, problems bytes.Buffer
	command := exec.CommandContext(t.Context(), binary, args...)
	command.Stdout, command.Stderr = &output, &problems
	if err := command.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", binary, strings.Join(args, " "), err, problems.String())
	}
	return output.Bytes()
}

// specs are what monitors and rules say, and the data of ConfigMaps, by kind.
func specs(t *testing.T, manifests []byte) map[string][]any {
	t.Helper()
	all := map[string][]any{}
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		switch kind := object.GetKind(); kind {
		case "ServiceMonitor", "PodMonitor", "PrometheusRule":
			all[kind] = append(all[kind], object.Object["spec"])
		case "ConfigMap":
			data, _, err := unstructured.NestedStringMap(object.Object, "data")
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range data {
				all["dashboards"] = append(all["dashboards"], name+"\n"+strings.TrimSpace(text))
			}
		}
	}
	slices.SortFunc(all["dashboards"], func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return all
}

// The chart and the kustomize component give the same monitors, rules and dashboards.
func TestChartAndComponentAgree(t *testing.T) {
	component := specs(t, run(t, "KUSTOMIZE", "build", top+"/config/prometheus"))
	chart := specs(t, run(t, "HELM", "template", "howdah", top+"/charts/howdah", "--namespace=howdah-system", "--show-only=templates/monitoring.yaml",
		"--set=monitoring.monitors.enabled=true,monitoring.rules.enabled=true,monitoring.dashboards.enabled=true"))
	// The chart selects the Service of its own release.
	labels := chart["ServiceMonitor"][0].(map[string]any)["selector"].(map[string]any)["matchLabels"].(map[string]any)
	delete(labels, "app.kubernetes.io/instance")
	delete(labels, "app.kubernetes.io/component")
	for _, kind := range []string{"ServiceMonitor", "PodMonitor", "PrometheusRule", "dashboards"} {
		if len(component[kind]) == 0 || !reflect.DeepEqual(component[kind], chart[kind]) {
			t.Errorf("%s of the component:\n%v\nof the chart:\n%v", kind, component[kind], chart[kind])
		}
	}
}

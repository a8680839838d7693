package chart

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What Artifact Hub shows of the chart is what the chart has.
func TestArtifactHub(t *testing.T) {
	chartYAML := values(t, filepath.Join(chart, "Chart.yaml"))
	annotations, _, err := unstructured.NestedStringMap(chartYAML, "annotations")
	if err != nil {
		t.Fatal(err)
	}
	list := func(name string) []map[string]any {
		t.Helper()
		var out []map[string]any
		if err := yaml.UnmarshalStrict([]byte(annotations["artifacthub.io/"+name]), &out); err != nil || len(out) == 0 {
			t.Fatalf("artifacthub.io/%s: %v", name, err)
		}
		return out
	}
	all := rendered(t)
	kinds := map[any]bool{}
	for _, crd := range list("crds") {
		object := all["CustomResourceDefinition "+crd["name"].(string)]
		if object == nil {
			t.Errorf("there is no CRD %s", crd["name"])
			continue
		}
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
		if kind != crd["kind"] || versions[0].(map[string]any)["name"] != crd["version"] {
			t.Errorf("%v is %s", crd, kind)
		}
		kinds[kind] = true
	}
	for key, object := range all {
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		if group == "howdah.io" && !kinds[kind] {
			t.Errorf("Artifact Hub lacks %s", key)
		}
	}
	for _, example := range list("crdsExamples") {
		delete(kinds, example["kind"])
	}
	if len(kinds) > 0 {
		t.Errorf("no examples of %v", kinds)
	}

	var images []string
	for _, image := range list("images") {
		images = append(images, image["image"].(string))
	}
	container := operator(t, all).Spec.Template.Spec.Containers[0]
	if want := []string{container.Env[0].Value, container.Env[1].Value}; !slices.Equal(images, want) {
		t.Errorf("Artifact Hub has images %v, want %v", images, want)
	}
	for _, change := range list("changes") {
		if !slices.Contains([]any{"added", "changed", "deprecated", "removed", "fixed", "security"}, change["kind"]) {
			t.Errorf("%v is no kind of change", change["kind"])
		}
	}
	if levels := []string{"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}; !slices.Contains(levels, annotations["artifacthub.io/operatorCapabilities"]) {
		t.Errorf("%q is no level of operators", annotations["artifacthub.io/operatorCapabilities"])
	}
}

// The values in the example for Argo CD are values of the chart that it names.
func TestTheExampleForArgoCD(t *testing.T) {
	application := values(t, filepath.Join(top, "config", "argocd", "application.yaml"))
	source, _, err := unstructured.NestedMap(application, "spec", "source")
	if err != nil {
		t.Fatal(err)
	}
	if path, _ := source["path"].(string); filepath.Clean(filepath.Join(top, path)) != filepath.Clean(chart) {
		t.Errorf("it installs %q", path)
	}
	text, err := yaml.Marshal(source["helm"].(map[string]any)["valuesObject"])
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if all := rendered(t, "--values", file); all.count("PodDisruptionBudget") != 1 || *operator(t, all).Spec.Replicas != 2 {
		t.Errorf("its values do nothing: %s", text)
	}
}

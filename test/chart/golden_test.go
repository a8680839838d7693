package chart

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// What a user gets who sets nothing, and who sets everything; what is copied from generated files is left out.
func TestGoldens(t *testing.T) {
	for name, all := range map[string]objects{
		"default":    rendered(t),
		"everything": rendered(t, "--values", everything),
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			for _, key := range slices.Sorted(maps.Keys(all)) {
				object := all[key]
				switch object.GetKind() {
				case "CustomResourceDefinition":
					continue
				case "ValidatingAdmissionPolicy", "PrometheusRule":
					object.Object["spec"] = "(generated)"
				case "ClusterRole", "Role":
					object.Object["rules"] = "(generated)"
				case "ConfigMap":
					object.Object["data"] = "(generated)"
				}
				text, err := yaml.Marshal(object.Object)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n")
				got.Write(text)
			}
			file := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (-want +got; go test ./test/chart -update accepts):\n%s", file, diff)
			}
		})
	}
}

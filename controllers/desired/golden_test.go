package desired

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares objects with testdata/<name>/<kind>-<object's name>.yaml, and their order with the file "order" there.
func golden[T any](t *testing.T, name string, objects []T) {
	t.Helper()
	folder := filepath.Join("testdata", name)
	got, order := map[string]string{}, ""
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var any unstructured.Unstructured
		if err := yaml.Unmarshal(text, &any.Object); err != nil {
			t.Fatal(err)
		}
		file := strings.ToLower(any.GetKind()) + "-" + any.GetName() + ".yaml"
		if got[file] != "" {
			t.Fatalf("two objects are %s", file)
		}
		got[file] = string(text)
		order += file + "\n"
	}
	if len(objects) > 1 {
		got["order"] = order
	}
	if *update {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range got {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatalf("%v; go test ./controllers/desired -update writes it", err)
	}
	for _, entry := range entries {
		want, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got[entry.Name()]); diff != "" {
			t.Errorf("%s/%s (-want +got; go test -update accepts):\n%s", folder, entry.Name(), diff)
		}
	}
	for file := range got {
		if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == file }) {
			t.Errorf("%s/%s is new; go test -update accepts it", folder, file)
		}
	}
}

package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/test/docs"
)

// wholes are objects around parts that pages show: "spec:" and what is below it. The part replaces the fields that it has.
var wholes = map[string]string{
	"FileServer": "{apiVersion: howdah.io/v1alpha1, kind: FileServer, metadata: {name: training}, spec: {storage: {volumes: {size: 1Gi}}}}",
	"FileShare":  "{apiVersion: howdah.io/v1alpha1, kind: FileShare, metadata: {name: unet3d}, spec: {fileServerRef: {name: training}, path: /unet3d}}",
}

// fieldsOf are fields below spec by which a part is known to be of a kind. No field is that of two.
var fieldsOf = map[string][]string{
	"FileServer": {"allowedNamespaces", "additionalNodeNetworks", "dataHandovers", "drain", "failover", "moves", "network", "nfs", "placement", "storage"},
	"FileShare":  {"access", "depth", "directories", "fileServerRef", "findHotDirectories", "hotDirectories", "path", "quota", "source"},
}

// example is an object that a page shows, or a part of one.
type example struct {
	file     string
	line     int
	manifest []byte
}

// shown are the objects of howdah.io in the blocks of the pages for users.
func shown(t *testing.T) (all []example) {
	t.Helper()
	files, err := docs.Files(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		isForUsers := strings.HasPrefix(file, "docs/") && !strings.HasPrefix(file, "docs/design/") && !strings.HasPrefix(file, "docs/contribute/")
		if !isForUsers && file != "README.md" && file != "charts/howdah/README.md" {
			continue
		}
		page, err := docs.Read(root, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range page.Blocks {
			text, _, _ := strings.Cut(block.Text, "\n$ ") // What follows is what a command prints.
			for document := range strings.SplitSeq(text, "\n---\n") {
				if manifest := whole(t, document); manifest != nil {
					all = append(all, example{file, block.Line, manifest})
				}
			}
		}
	}
	return all
}

// whole is an object of howdah.io, or one around a part; nil if the text is neither.
func whole(t *testing.T, text string) []byte {
	t.Helper()
	var part map[string]any
	if err := yaml.Unmarshal([]byte(text), &part); err != nil || part == nil {
		return nil
	}
	if version, _ := part["apiVersion"].(string); version != "" {
		if strings.HasPrefix(version, "howdah.io/") {
			return []byte(text)
		}
		return nil
	}
	spec, isSpec := part["spec"].(map[string]any)
	if !isSpec && part["spec"] == nil {
		spec = part // A field of spec without it.
	}
	for kind, fields := range fieldsOf {
		if len(spec) == 0 || !hasOnly(spec, fields) {
			continue
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte(wholes[kind]), &object); err != nil {
			t.Fatal(err)
		}
		for field, value := range spec {
			object["spec"].(map[string]any)[field] = value
		}
		manifest, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return manifest
	}
	return nil
}

func hasOnly(spec map[string]any, fields []string) bool {
	for field := range spec {
		if !slices.Contains(fields, field) {
			return false
		}
	}
	return true
}

// A reader who copies an example gets what the page says, and no error.
func TestWhatThePagesShowIsAccepted(t *testing.T) {
	c := start(t)
	if output, err := c.apply(run(t, tool(t, "KUSTOMIZE", "kustomize"), "build", filepath.Join(root, "config", "crd")), "--server-side"); err != nil {
		t.Fatalf("installing the CRDs: %v\n%s", err, output)
	}
	run(t, c.kubectl, "--kubeconfig", c.kubeconfig, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
	all := shown(t)
	for _, e := range all {
		if output, err := c.apply(e.manifest, "--dry-run=server"); err != nil {
			t.Errorf("%s:%d: %v\n%s\n%s", e.file, e.line, err, output, e.manifest)
		}
	}
	t.Logf("%d objects and parts of objects", len(all))
	if len(all) < 15 {
		t.Errorf("%d examples were found", len(all))
	}
	notes, err := os.ReadFile(filepath.Join(root, "charts", "howdah", "templates", "NOTES.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, manifest, _ := strings.Cut(string(notes), "<<EOF\n")
	manifest, _, found := strings.Cut(manifest, "     EOF\n")
	if !found {
		t.Fatal("NOTES.txt of the chart has no example")
	}
	if output, err := c.apply([]byte(strings.ReplaceAll("\n"+manifest, "\n     ", "\n")), "--dry-run=server"); err != nil {
		t.Errorf("NOTES.txt of the chart: %v\n%s", err, output)
	}
}

package chart

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	top     = "../.."
	chart   = top + "/charts/howdah"
	release = "howdah"
	system  = "howdah-system"
)

// tool is the path of a pinned tool: from the environment variable, as hack/test.sh sets it, or built.
func tool(t *testing.T, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	output, err := exec.CommandContext(t.Context(), filepath.Join(top, "hack", "tools", "build.sh"), name).Output()
	if err != nil {
		t.Fatalf("building %s: %v", name, err)
	}
	return strings.TrimSpace(string(output))
}

// command gives what a program writes to its standard output, and as an error what it says of a failure.
func command(t *testing.T, path string, args ...string) ([]byte, error) {
	t.Helper()
	var output, problems bytes.Buffer
	c := exec.CommandContext(t.Context(), path, args...)
	c.Stdout, c.Stderr = &output, &problems
	if err := c.Run(); err != nil {
		return nil, errors.New(problems.String())
	}
	return output.Bytes(), nil
}

// renders is what helm template makes of the chart in namespace howdah-system, with further arguments.
func renders(t *testing.T, name string, args ...string) ([]byte, error) {
	t.Helper()
	return command(t, tool(t, "HELM", "helm"), append([]string{"template", name, chart, "--namespace", system}, args...)...)
}

// rendered are the objects of a release named howdah.
func rendered(t *testing.T, args ...string) objects {
	t.Helper()
	text, err := renders(t, release, args...)
	if err != nil {
		t.Fatalf("helm template %v: %v", args, err)
	}
	return decode(t, text)
}

// built are the objects that kustomize makes of a folder of config.
func built(t *testing.T, folder string) objects {
	t.Helper()
	text, err := command(t, tool(t, "KUSTOMIZE", "kustomize"), "build", filepath.Join(top, "config", folder))
	if err != nil {
		t.Fatalf("kustomize build config/%s: %v", folder, err)
	}
	return decode(t, text)
}

// objects are manifests by "Kind namespace/name"; what has no namespace is "Kind name".
type objects map[string]*unstructured.Unstructured

func decode(t *testing.T, text []byte) objects {
	t.Helper()
	all := objects{}
	reader := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		// Strict: the same key twice is an error.
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if object.Object == nil {
			continue
		}
		key := keyOf(object)
		if all[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		all[key] = object
	}
}

func keyOf(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// count is how many objects of a kind there are.
func (all objects) count(kind string) int {
	n := 0
	for _, object := range all {
		if object.GetKind() == kind {
			n++
		}
	}
	return n
}

// as gives an object as its type, strictly: a field that the type has not is an error.
func as[T any](t *testing.T, all objects, key string) *T {
	t.Helper()
	object := all[key]
	if object == nil {
		t.Fatalf("no %s", key)
	}
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, out, true); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return out
}

func operator(t *testing.T, all objects) *appsv1.Deployment {
	t.Helper()
	return as[appsv1.Deployment](t, all, "Deployment "+system+"/"+release)
}

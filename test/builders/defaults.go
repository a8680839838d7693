package builders

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	converter "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/api/v1alpha1"
)

// Defaulted fills in what an object leaves unset as the API server does, from the schema of its kind: programs rely on it
// and have no defaults of their own, so objects of tests without an API server need them, too.
func Defaulted[T any](object *T) *T {
	kind := fmt.Sprintf("%T", object)
	content, err := converter.DefaultUnstructuredConverter.ToUnstructured(object)
	must(err)
	fillIn(content, schemaOf(kind[strings.LastIndex(kind, ".")+1:]))
	out := new(T)
	must(converter.DefaultUnstructuredConverter.FromUnstructured(content, out))
	return out
}

// fillIn is the API server's way: a default is put where nothing is, and may have defaults inside.
func fillIn(value any, schema *apiextensionsv1.JSONSchemaProps) {
	switch value := value.(type) {
	case map[string]any:
		for name, property := range schema.Properties {
			if _, set := value[name]; !set && property.Default != nil {
				var fallback any
				must(json.Unmarshal(property.Default.Raw, &fallback))
				value[name] = whole(fallback)
			}
			fillIn(value[name], &property)
		}
	case []any:
		for i := range value {
			fillIn(value[i], schema.Items.Schema)
		}
	}
}

// whole makes the numbers of JSON integers, which all of the schemas' are.
func whole(value any) any {
	switch value := value.(type) {
	case float64:
		return int64(value)
	case map[string]any:
		for name := range value {
			value[name] = whole(value[name])
		}
	}
	return value
}

// schemas are those that were read, by kind.
var schemas sync.Map

// schemaOf is the schema of a user's kind, of the manifest that is installed.
func schemaOf(kind string) *apiextensionsv1.JSONSchemaProps {
	if known, ok := schemas.Load(kind); ok {
		return known.(*apiextensionsv1.JSONSchemaProps) //nolint:forcetypeassert // only these are stored
	}
	name := fmt.Sprintf("%s_%ss.yaml", v1alpha1.GroupVersion.Group, strings.ToLower(kind))
	text, err := os.ReadFile(filepath.Join(top(), "config", "crd", "bases", name))
	must(err)
	var crd apiextensionsv1.CustomResourceDefinition
	must(yaml.UnmarshalStrict(text, &crd))
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	schemas.Store(kind, schema)
	return schema
}

// top is the repository's folder: tests run somewhere in it, and their binaries do not know where they were built.
func top() string {
	dir, err := os.Getwd()
	must(err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			panic("no go.mod above the working directory: where are the schemas?")
		}
		dir = filepath.Dir(dir)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

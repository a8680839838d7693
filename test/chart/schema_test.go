package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const everything = "testdata/everything.values.yaml"

// open are the places of the schema that take any key, with the reason.
var open = map[string]string{
	"global":         "what other charts share with this one, if it is a dependency",
	"extraObjects[]": "objects of any kind",
}

func values(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func schema(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Every object of the schema refuses keys that it does not know, and every value is described in sentences.
func TestTheSchemaIsStrict(t *testing.T) {
	root := schema(t)
	definitions := root["definitions"].(map[string]any)
	sentence := regexp.MustCompile(`(?s)^[A-Z].*\.$`)
	used, found := map[string]bool{}, map[string]bool{}
	var walk func(path string, node map[string]any, top bool)
	walk = func(path string, node map[string]any, top bool) {
		reference, _ := node["$ref"].(string)
		if all, ok := node["allOf"].([]any); ok && len(all) == 1 {
			reference, _ = all[0].(map[string]any)["$ref"].(string)
		}
		if reference != "" {
			used[strings.TrimPrefix(reference, "#/definitions/")] = true
		} else if node["type"] == nil && node["enum"] == nil && node["const"] == nil && node["anyOf"] == nil {
			t.Errorf("%s takes anything", path)
		}
		types, _ := node["type"].([]any)
		if node["type"] == "object" || slices.Contains(types, any("object")) {
			switch rest := node["additionalProperties"].(type) {
			case bool:
				if rest {
					t.Errorf("%s takes any key", path)
				}
			case map[string]any:
				walk(path+".*", rest, false)
			default:
				if open[path] == "" {
					t.Errorf("%s takes any key", path)
				}
				found[path] = true
			}
		}
		if text, _ := node["description"].(string); top && !sentence.MatchString(text) {
			t.Errorf("%s is described as %q: want sentences", path, text)
		}
		properties, _ := node["properties"].(map[string]any)
		for name, property := range properties {
			// Below a field that has the form of Kubernetes, its reference describes the fields.
			ours := top && path != "affinity" && path != "podSecurityContext" && path != "resources"
			walk(strings.TrimPrefix(path+"."+name, "."), property.(map[string]any), ours)
		}
		if items, ok := node["items"].(map[string]any); ok {
			walk(path+"[]", items, false)
		}
	}
	walk("", root, true)
	for name, definition := range definitions {
		walk("definitions."+name, definition.(map[string]any), false)
	}
	for name := range definitions {
		if !used[name] {
			t.Errorf("nothing uses definition %s", name)
		}
	}
	for path, reason := range open {
		if !found[path] {
			t.Errorf("%s is not open any more (%s)", path, reason)
		}
	}
}

// leaves calls do for each value that has no fields, or has only those that a user gives.
func leaves(path string, node map[string]any, properties map[string]any, do func(path string, value any)) {
	for name, value := range node {
		where := strings.TrimPrefix(path+"."+name, ".")
		below, isMap := value.(map[string]any)
		property, _ := properties[name].(map[string]any)
		fields, _ := property["properties"].(map[string]any)
		if isMap && fields != nil && where != "affinity" && where != "podSecurityContext" && where != "resources" {
			leaves(where, below, fields, do)
			continue
		}
		do(where, value)
	}
}

// The schema knows each value of values.yaml, values.yaml has each of the schema, and "everything" changes each.
func TestEverythingIsEverything(t *testing.T) {
	properties := schema(t)["properties"].(map[string]any)
	defaults, all := map[string]any{}, map[string]any{}
	leaves("", values(t, filepath.Join(chart, "values.yaml")), properties, func(path string, value any) { defaults[path] = value })
	leaves("", values(t, everything), properties, func(path string, value any) { all[path] = value })
	known := map[string]bool{}
	var walk func(path string, properties map[string]any)
	walk = func(path string, properties map[string]any) {
		for name, property := range properties {
			where := strings.TrimPrefix(path+"."+name, ".")
			if fields, ok := property.(map[string]any)["properties"].(map[string]any); ok && where != "affinity" && where != "podSecurityContext" && where != "resources" {
				walk(where, fields)
			} else if where != "global" {
				known[where] = true
			}
		}
	}
	walk("", properties)
	for path := range known {
		if _, ok := defaults[path]; !ok {
			t.Errorf("values.yaml has no %s", path)
		}
	}
	for path, value := range defaults {
		if !known[path] {
			t.Errorf("the schema has no %s", path)
		}
		if given, ok := all[path]; !ok || reflect.DeepEqual(given, value) {
			t.Errorf("%s leaves %s as it is", everything, path)
		}
	}
}

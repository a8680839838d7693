package view

import (
	"encoding/json"

	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/internal/printable"
)

// Encode is a model as JSON or YAML with control characters escaped, so that it is safe in a terminal and equal for a parser. YAML has no
// such escapes outside of quotes, and none at all for some characters: a model with these is written as JSON, which is YAML, too.
func Encode(model any, format string) (string, error) {
	encoded, err := json.MarshalIndent(model, "", "  ")
	if err != nil {
		return "", err
	}
	if format == "yaml" && printable.IsPlain(string(encoded)) {
		converted, err := yaml.JSONToYAML(encoded)
		if err != nil || printable.IsPlain(string(converted)) {
			return string(converted), err
		}
	}
	return printable.JSON(string(encoded)) + "\n", nil
}

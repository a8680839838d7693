package view

import (
	"encoding/json"

	"sigs.k8s.io/yaml"
)

// Encode is a model as JSON or YAML.
func Encode(model any, format string) (string, error) {
	if format == "yaml" {
		encoded, err := yaml.Marshal(model)
		return string(encoded), err
	}
	encoded, err := json.MarshalIndent(model, "", "  ")
	return string(encoded) + "\n", err
}

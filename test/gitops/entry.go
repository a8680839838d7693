package gitops

import (
	"fmt"
	"strings"
)

// entry is what a file of a kustomization is for.
type entry struct {
	what string // health or actions
	kind string // GROUP/KIND
	file string
}

// parseEntry parses resource.customizations.WHAT.GROUP_KIND=FILE, as kustomize and Argo CD have it; WHAT is health or actions.
func parseEntry(text string) (entry, error) {
	key, file, found := strings.Cut(text, "=")
	name, isCustomization := strings.CutPrefix(key, "resource.customizations.")
	what, name, _ := strings.Cut(name, ".")
	group, kind, hasGroup := strings.Cut(name, "_")
	if !found || !isCustomization || what != "health" && what != "actions" || !hasGroup || group == "" || kind == "" {
		return entry{}, fmt.Errorf("%q is not resource.customizations.health.GROUP_KIND=FILE, nor one with actions", text)
	}
	return entry{what, group + "/" + kind, file}, nil
}

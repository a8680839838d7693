package gitops

import (
	"fmt"
	"strings"
)

// parseEntry parses resource.customizations.health.GROUP_KIND=FILE, as kustomize and Argo CD have it, to GROUP/KIND and FILE.
func parseEntry(entry string) (kind, file string, err error) {
	key, file, found := strings.Cut(entry, "=")
	name, isHealth := strings.CutPrefix(key, "resource.customizations.health.")
	group, kind, hasGroup := strings.Cut(name, "_")
	if !found || !isHealth || !hasGroup || group == "" || kind == "" {
		return "", "", fmt.Errorf("%q is not resource.customizations.health.GROUP_KIND=FILE", entry)
	}
	return group + "/" + kind, file, nil
}

package naming

import (
	"strings"
	"testing"
)

func TestNoTwoSharesHaveOneKey(t *testing.T) {
	// Names of shares and namespaces are DNS labels: these are what could be mistaken for one another.
	names := []string{"a", "b", "a-b", "b-a", "a-b-a", "data-0"}
	seen := map[string]string{}
	for _, namespace := range names {
		for _, share := range names {
			key := ShareKey("a", namespace, share)
			if other, taken := seen[key]; taken {
				t.Errorf("%s/%s and %s have the key %s", namespace, share, other, key)
			}
			seen[key] = namespace + "/" + share
			if gotNamespace, gotShare := ShareOfKey("a", key); gotNamespace != namespace || gotShare != share {
				t.Errorf("key %s is read as %s/%s, not %s/%s", key, gotNamespace, gotShare, namespace, share)
			}
			if ShareOfExport(ExportPseudo(key, 3)) != key {
				t.Errorf("the export path %s is not that of %s", ExportPseudo(key, 3), key)
			}
		}
	}
}

func TestObjectsOfAShareCanHaveTheirNames(t *testing.T) {
	namespace, share, server := strings.Repeat("n", 63), strings.Repeat("s", 50), strings.Repeat("f", 40)+"-63"
	key := ShareKey("storage", namespace, share)
	for _, name := range []string{key, Directory(strings.Repeat("f", 40), key, "d"), ShareExport(key, server)} {
		if len(name) > 253 { // a DNS subdomain, RFC 1123
			t.Errorf("%s has %d characters", name, len(name))
		}
	}
	if len(key) > 255 { // NAME_MAX: it is a directory on the volumes
		t.Errorf("%s has %d characters", key, len(key))
	}
	for label, value := range ShareLabels("storage", server, key) {
		if len(value) > 63 {
			t.Errorf("label %s has %d characters", label, len(value))
		}
	}
}

func TestAClaimTellsItsDataServer(t *testing.T) {
	for _, fileServer := range []string{"fs", "fs-1", "data-0-fs"} {
		for volume := range int32(11) {
			if server, ok := ServerOfClaim(fileServer, VolumeClaim(fileServer, 12, volume)); !ok || server != DataServer(fileServer, 12) {
				t.Errorf("the claim %s is read as %q, %v", VolumeClaim(fileServer, 12, volume), server, ok)
			}
		}
	}
	for _, other := range []string{"", "fs", "fs-1", "data-fs-1", "data-0-fs", "data-0-fs-", "data-0-fs-x", "data-0-fs-01", "data-0-fs-1-1", "data-x-fs-1", "data--1-fs-1", "data-0-gs-1"} {
		if server, ok := ServerOfClaim("fs", other); ok {
			t.Errorf("%q is taken for a claim of %s", other, server)
		}
	}
}

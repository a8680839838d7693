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

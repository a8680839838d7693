package naming

import (
	"fmt"
	"testing"
)

func TestADigestTellsWhichNamesItHas(t *testing.T) {
	var names []string
	for i := range maxDigested {
		names = append(names, fmt.Sprintf("share-%d", i))
	}
	digest, ok := DigestNames(names)
	if !ok || len(digest) > 43692 {
		t.Fatalf("a digest of %d names has %d characters", len(names), len(digest))
	}
	for _, name := range names {
		if !DigestMayHave(digest, name) {
			t.Errorf("%s is not in it", name)
		}
	}
	if DigestMayHave(digest, "another") {
		t.Error("it has a name that was not put in")
	}
	if _, ok := DigestNames(append(names, "one-too-many")); ok {
		t.Error("a digest that would be too large is made")
	}
	if digest, ok := DigestNames(nil); !ok || DigestMayHave(digest, "share") {
		t.Error("the digest of nothing has something")
	}
	if !DigestMayHave("damaged", "share") {
		t.Error("a damaged digest proves that there is no data")
	}
}

package command

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestASupportBundleHasEveryKindOfHowdah(t *testing.T) {
	files, err := filepath.Glob("../../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	has := map[string]bool{}
	for _, list := range collected {
		has[strings.TrimSuffix(strings.TrimPrefix(list.api, "/apis/"), "/v1alpha1")+"_"+list.plural] = true
	}
	for _, file := range files {
		if kind := strings.TrimSuffix(filepath.Base(file), ".yaml"); !has[kind] {
			t.Errorf("a support bundle leaves %s out", kind)
		}
	}
}

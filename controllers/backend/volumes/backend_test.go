package volumes

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/test/builders"
)

func TestAGrownClaimSaysTheSizeAndNothingElse(t *testing.T) {
	text, err := yaml.Marshal(grownClaim(builders.FileServer("ml", "training").Size("4Gi").Build(), "data-0-training-0"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/grown-claim.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatRemains(t *testing.T) {
	s := &Storage{
		Observation: backendapi.Observation{FileServer: builders.FileServer("ns", "fs").Build()},
		All:         map[string]corev1.PersistentVolumeClaim{"data-0-fs-1": {}, "data-0-fs-0": {}},
	}
	want := "its data stays in 2 claims: data-0-fs-0, data-0-fs-1; to delete it for good: kubectl -n ns delete pvc -l howdah.io/file-server=fs"
	if got := s.Remains(); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	s.All = nil
	if got := s.Remains(); got != "" {
		t.Errorf("without claims: %q", got)
	}
}

package volumes

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/internal/naming"
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
	want := "its data stays in 2 claims: data-0-fs-0, data-0-fs-1; to delete it for good: kubectl -n ns delete pvc -l app.kubernetes.io/component=data-server,howdah.io/file-server=fs"
	got := s.Remains()
	if got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	// A share of this namespace may be on a FileServer of that name in another one, and its claim is not to go.
	_, advised, _ := strings.Cut(got, " -l ")
	selector, err := labels.Parse(advised)
	if err != nil || !selector.Matches(labels.Set(naming.SelectDataServers("fs"))) ||
		selector.Matches(labels.Set{v1alpha1.FileServerLabel: "fs", v1alpha1.FileShareLabel: "data", v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}) {
		t.Errorf("%q selects others, or nothing: %v", advised, err)
	}
	s.All = nil
	if got = s.Remains(); got != "" {
		t.Errorf("without claims: %q", got)
	}
}

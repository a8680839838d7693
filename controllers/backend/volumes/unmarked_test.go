package volumes

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/test/builders"
)

// A StatefulSet takes a claim of the right name as it is. One that the cache does not find is named, unless it is only too young for it.
func TestClaimsThatAreNotMarkedAreFound(t *testing.T) {
	storage := &Storage{
		Observation: backendapi.Observation{
			FileServer: builders.FileServer("n", "fs").Build(), StatefulSet: &appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{Replicas: 6}},
		},
		All: map[string]corev1.PersistentVolumeClaim{"data-0-fs-0": {}},
	}
	owner := map[string]string{v1alpha1.OwnerAnnotation: storage.owner()}
	without := func(label string) map[string]string {
		marks := storage.marks()
		delete(marks, label)
		return marks
	}
	objects := []client.Object{
		claimWith("data-0-fs-1", nil, nil),
		claimWith("data-0-fs-2", storage.marks(), owner),
		claimWith("data-0-fs-3", without(v1alpha1.ComponentLabel), owner),
		claimWith("data-0-fs-4", storage.marks(), nil),
		claimWith("data-0-fs-6", nil, nil), // No data server has it.
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := storage.readUnmarked(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(storage.Unmarked, func(_ string, unmarked bool) bool { return !unmarked })
	if got, want := slices.Sorted(maps.Keys(storage.Unmarked)), []string{"data-0-fs-1", "data-0-fs-3", "data-0-fs-4"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func claimWith(name string, labels, annotations map[string]string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: labels, Annotations: annotations}}
}

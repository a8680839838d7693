package fileshare

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/howdah/howdah/api/v1alpha1"
)

// A share that leaves its data does not wait for pods. Its claim stays until they end, also when a share of its name has the data.
func TestDataWaitsForPodsWithTheClaimOfAnEarlierShare(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	owner := func(kind, name string) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: "another", Controller: &yes}}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "writer"},
		Spec: corev1.PodSpec{NodeName: "n", Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "s"},
		}}}},
	}
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		waits  bool
	}{
		"of an earlier share":   {owner("FileShare", "s"), true},
		"of another share":      {owner("FileShare", "t"), false},
		"of something else":     {owner("StatefulSet", "s"), false},
		"that people have made": {nil, false},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", OwnerReferences: tc.owners, Finalizers: []string{"kubernetes.io/pvc-protection"}}}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim, pod).Build()
		o := twoServers()
		o.share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
		waiting, err := (&Reconciler{Client: c, Live: c}).waitForPods(t.Context(), o)
		if err != nil || (waiting != "") != tc.waits || tc.waits && !strings.Contains(waiting, "have ended: writer;") {
			t.Errorf("a claim %s: %q, %v", name, waiting, err)
		}
	}
}

func TestPodsAreListedLessOftenTheLongerTheyTake(t *testing.T) {
	for waited, want := range map[time.Duration]time.Duration{
		0: 15 * time.Second, time.Minute: 15 * time.Second, 4 * time.Minute: time.Minute, 24 * time.Hour: 10 * time.Minute,
		-time.Hour: 15 * time.Second, // A clock was ahead.
	} {
		o := twoServers()
		o.share.DeletionTimestamp = &metav1.Time{Time: noon.Add(-waited)}
		if got := retryPodsIn(o); got != want {
			t.Errorf("after %s they are listed in %s, want %s", waited, got, want)
		}
	}
}

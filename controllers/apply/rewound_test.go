package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// After the API's database was restored, a child has the same managed fields as after the last write, with earlier values.
func TestAChildThatWasRestoredIsAppliedAgain(t *testing.T) {
	const manager = "howdah-test"
	child := func(version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u", ResourceVersion: version, ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)},
		}}}
	}
	cache, id, desired := newAppliedCache(), identity{}, digestOf([]byte("desired"))
	cache.remember("owner", id, desired, child("20"), manager)
	for _, step := range []struct {
		version string
		want    bool
		why     string
	}{
		{"10", true, "the informer is late after the write"},
		{"20", true, "it has the write"},
		{"25", true, "another one wrote a status"},
		{"25", true, "nothing happened"},
		{"7", false, "it was restored"},
		{"7", false, "it was not applied yet"},
	} {
		if got := cache.unchanged("owner", id, desired, child(step.version), manager); got != step.want {
			t.Errorf("%s: unchanged %v", step.why, got)
		}
	}
	cache.remember("owner", id, desired, child("1000000030"), manager)
	if !cache.unchanged("owner", id, desired, child("1000000030"), manager) {
		t.Error("it is applied again and again")
	}
}

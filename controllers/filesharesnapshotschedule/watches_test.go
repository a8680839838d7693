package filesharesnapshotschedule

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/test/builders"
)

// A tenant can make thousands of schedules, and directories all the time.
func TestSchedulesHearOfAShareOnlyWhatTheyReadOfIt(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.FileShare)
		want   bool
	}{
		"a directory": {func(s *v1alpha1.FileShare) { s.Status.Directories.Count = ptr.To(int32(7)) }, false},
		"it ends":     {func(s *v1alpha1.FileShare) { s.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"it is stalled": {func(s *v1alpha1.FileShare) {
			conditions.SetSummary(&s.Status.Conditions, 1, time.Now(), conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonNamespaceNotAllowed, "ask"))
		}, true},
	} {
		before := builders.FileShare("ml", "data", "training").Build()
		after := before.DeepCopy()
		tc.change(after)
		if got := shareChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

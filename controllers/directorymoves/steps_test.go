package directorymoves

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/moving"
)

// A directory moved, and its new owner ended. Whoever was led there waits until it serves again, and would meet the next freeze at once.
func TestADirectoryIsNotFrozenSoonAfterItsOwnerServesAgain(t *testing.T) {
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-d)} }
	for name, tc := range map[string]struct {
		moved, ended *metav1.Time
		away         *int64
		freezes      bool
	}{
		"it has not moved":              {ended: ago(20 * time.Second), away: ptr.To(int64(15000)), freezes: true},
		"the owner did not end":         {moved: ago(40 * time.Second), freezes: true},
		"it ended before":               {moved: ago(40 * time.Second), ended: ago(90 * time.Second), away: ptr.To(int64(1000)), freezes: true},
		"it has served for long":        {moved: ago(90 * time.Second), ended: ago(80 * time.Second), away: ptr.To(int64(24000)), freezes: true},
		"it serves since a few seconds": {moved: ago(40 * time.Second), ended: ago(35 * time.Second), away: ptr.To(int64(24000))},
		"the status is not written yet": {moved: ago(40 * time.Second), ended: ago(35 * time.Second)},
		"it has moved a moment ago":     {moved: ago(5 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			directory := copied(owned("s", "a", "fs-0"), "fs-0", "fs-2", internalv1.MoveCopying, 0)
			directory.Spec.MovedTime, directory.Spec.Move.StepTime = tc.moved, ago(6*time.Second)
			v := onVolumes(directory).reports("fs-2", "move-a", internalv1.MoveStateCaughtUp, 0, "")
			v.FileServer.Status.Servers = []v1alpha1.FileServerServerStatus{
				{Name: "fs-2", LastEnd: v1alpha1.ServerEnd{EndTime: ago(time.Second)}},
				{Name: "fs-0", LastEnd: v1alpha1.ServerEnd{EndTime: tc.ended, ServedAfterMilliseconds: tc.away}},
			}
			if _, outcome := v.next(directory, true, false); (outcome == moving.Step) != tc.freezes {
				t.Errorf("outcome %d, freezes: %t", outcome, tc.freezes)
			}
		})
	}
}

package apply

import (
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// A pass writes a status. The next one follows within moments, reads the object as it was before from the cache, and finds just that status right again.
func TestAStatusThatIsOlderThanTheWrittenOneIsNotTakenForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, before, sent := newShare(t)
		before.UID = "of-the-share"
		var statuses Statuses
		wrong := before.DeepCopy()
		wrong.Status.Directories.Count = ptr.To[int32](7)
		if err := statuses.Write(t.Context(), c, before, wrong); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := statuses.Write(t.Context(), c, before, before.DeepCopy()); !apierrors.IsConflict(err) {
				t.Fatalf("the cache does not have the written status yet: %v", err)
			}
		}
		now := readShare(t, c)
		now.UID = before.UID
		right := now.DeepCopy()
		right.Status = before.Status
		if err := statuses.Write(t.Context(), c, now, right); err != nil || len(*sent) != 2 || readShare(t, c).Status.Directories.Count != nil {
			t.Errorf("%v; sent %q", err, *sent)
		}
		// The API was restored from a backup of before the first write.
		if err := statuses.Write(t.Context(), c, before, before.DeepCopy()); !apierrors.IsConflict(err) {
			t.Errorf("a moment ago: %v", err)
		}
		time.Sleep(behindFor)
		if err := statuses.Write(t.Context(), c, before, before.DeepCopy()); err != nil {
			t.Errorf("a minute ago: %v", err)
		}
		if len(statuses.written) != 0 {
			t.Errorf("still known: %v", statuses.written)
		}
	})
}

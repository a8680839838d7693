package apply

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// A pass writes a status. The next one follows within moments, reads the object as it was before from the cache, and finds just that status right again.
func TestAStatusThatIsOlderThanTheWrittenOneIsNotTakenForIt(t *testing.T) {
	c, before, sent := newShare(t)
	before.UID = "of-the-share"
	var statuses Statuses
	now := time.Now()
	wrong := before.DeepCopy()
	wrong.Status.Directories.Count = ptr.To[int32](7)
	if err := statuses.Write(t.Context(), c, before, wrong, now); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := statuses.Write(t.Context(), c, before, before.DeepCopy(), now); !apierrors.IsConflict(err) {
			t.Fatalf("the cache does not have the written status yet: %v", err)
		}
	}
	newest := readShare(t, c)
	newest.UID = before.UID
	right := newest.DeepCopy()
	right.Status = before.Status
	if err := statuses.Write(t.Context(), c, newest, right, now); err != nil || len(*sent) != 2 || readShare(t, c).Status.Directories.Count != nil {
		t.Errorf("%v; sent %q", err, *sent)
	}
	// The API was restored from a backup of before the first write.
	if err := statuses.Write(t.Context(), c, before, before.DeepCopy(), now); !apierrors.IsConflict(err) {
		t.Errorf("a moment ago: %v", err)
	}
	now = now.Add(behindFor)
	if err := statuses.Write(t.Context(), c, before, before.DeepCopy(), now); err != nil {
		t.Errorf("a minute ago: %v", err)
	}
	if len(statuses.written) != 0 {
		t.Errorf("still known: %v", statuses.written)
	}
}

package directorymoves

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestMovesAreCountedOnce(t *testing.T) {
	var u Uncounted
	fs, other := types.NamespacedName{Name: "fs"}, types.NamespacedName{Name: "other"}
	for _, step := range []struct {
		what        string
		moved, want int64
		written     bool
	}{
		{"nothing has moved", 0, 0, true},
		{"the status is not written", 2, 2, false},
		{"nothing more has moved, and the status is not written again", 0, 2, false},
		{"one more has moved", 1, 3, true},
		{"all is in the status", 0, 0, true},
	} {
		if got := u.Add(fs, step.moved); got != step.want {
			t.Errorf("%s: %d are counted, want %d", step.what, got, step.want)
		}
		if step.written {
			u.Forget(fs)
		}
		if got := u.Add(other, 0); got != 0 {
			t.Errorf("%s: %d are counted for another FileServer", step.what, got)
		}
	}
}

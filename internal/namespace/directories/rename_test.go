package directories

import (
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/operations"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// Linux walks a path once more after NFS4ERR_STALE, and not twice. So a server that still shows a directory must not answer so because another one
// is about to remove it: a program got ESTALE from rename(2).
func TestARenameIntoADirectoryThatIsBeingRemovedIsPutOff(t *testing.T) {
	w := newWorld(t, "", true)
	w.owner.Put("/s/0/p", ownertest.Directory{Mode: 0o777})
	w.owner.Put("/s/0/q", ownertest.Directory{Mode: 0o777})
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o777})
	moves, target := left("p/a", internalv1.DirectoryReady), left("q", internalv1.DirectoryReady, above)
	w.know(t, left("p", internalv1.DirectoryReady, above), target, moves)
	rename := func() nfsv4.Nfsstat4 {
		return w.leader.Rename(t.Context(), w.entry(t, "s", "p", "a"), w.entry(t, "s", "q"), "b", tree.Credentials{})
	}
	write := func(state internalv1.DirectoryState) {
		target.Status.State = state
		if err := w.leader.Client.Status().Update(t.Context(), target); err != nil {
			t.Fatal(err)
		}
	}
	// Another server has begun to remove it; this one has not heard of that.
	write(internalv1.DirectoryRemoving)
	if status := rename(); status != nfsv4.NFS4ERR_DELAY {
		t.Errorf("while it is being removed: %v", status)
	}
	if state := w.state(t, moves); state != internalv1.DirectoryReady {
		t.Errorf("the directory that was not renamed is %q", state)
	}
	// It was not empty.
	write(internalv1.DirectoryReady)
	for _, o := range []*internalv1.ShareDirectory{moves, target} {
		w.leader.Tree.SetDirectory(w.now(t, o))
	}
	if status := rename(); status != nfsv4.NFS4_OK {
		t.Errorf("when it stays: %v", status)
	}
}

// now is a ShareDirectory as it is in the API.
func (w *world) now(t *testing.T, o *internalv1.ShareDirectory) *internalv1.ShareDirectory {
	t.Helper()
	now := &internalv1.ShareDirectory{}
	if err := w.leader.Client.Get(t.Context(), client.ObjectKeyFromObject(o), now); err != nil {
		t.Fatal(err)
	}
	return now
}

// A data server gets a directory above the depth with the first directory in it. Another server changes its mode at that moment, and this one has not heard
// of that: the data server has the mode that the API has.
func TestADirectoryAboveTheDepthIsMadeWithTheModeThatItHasByNow(t *testing.T) {
	w := newWorld(t, "", true)
	p := left("p", internalv1.DirectoryReady, above)
	w.know(t, p)
	w.owner.Refuse(func(_, path string) nfsv4.Nfsstat4 {
		if path != "/s/0/p" {
			return nfsv4.NFS4_OK
		}
		now := w.now(t, p)
		if now.Spec.Mode = "0700"; w.leader.Client.Update(t.Context(), now) != nil {
			t.Error("the mode is not changed")
		}
		return nfsv4.NFS4_OK
	})
	request := operations.MkdirRequest{Parent: w.entry(t, "s", "p"), Name: "a", Mode: 0o755}
	if _, status := w.leader.Mkdir(t.Context(), request); status != nfsv4.NFS4_OK {
		t.Fatalf("mkdir: %v", status)
	}
	if got, _ := w.owner.Get("/s/0/p"); got.Mode != 0o700 {
		t.Errorf("the data server has mode %o", got.Mode)
	}
}

package directories

import (
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// keep creates a ShareDirectory as it was left and shows it in the tree.
func (w *world) keep(t *testing.T, o *internalv1.ShareDirectory) {
	t.Helper()
	state := o.Status.State
	if err := w.leader.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Status.State = state
	if err := w.leader.Client.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	w.leader.Tree.SetDirectory(o)
	w.leader.DirectoryChanged(o.Spec.FileShareRef.Name, o.Spec.Path)
}

// state is that of a ShareDirectory in the API; "" if it is gone.
func (w *world) state(t *testing.T, o *internalv1.ShareDirectory) internalv1.DirectoryState {
	t.Helper()
	now := &internalv1.ShareDirectory{}
	err := w.leader.Client.Get(t.Context(), client.ObjectKeyFromObject(o), now)
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return now.State()
}

// An owner that does not show the export answers NFS4ERR_NOENT as well: that proves nothing about what is in it.
func TestAHiddenExportIsNoProofThatADirectoryIsGone(t *testing.T) {
	for name, left := range map[string]*internalv1.ShareDirectory{
		"an rmdir that was left":                 left("p/a", internalv1.DirectoryRemoving),
		"a removal that the operator asks for":   left("p/a", internalv1.DirectoryReady, whenEmpty),
		"a rename whose old name was not looked": left("p/a", internalv1.DirectoryRenaming, from("p/b")),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", true)
			w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o755})
			w.owner.Put("/s/0/p/b", ownertest.Directory{Mode: 0o755})
			w.owner.Hide("/s/0", true)
			w.keep(t, left)
			before := w.state(t, left)
			w.clock.Step(time.Minute)
			err := w.leader.complete(t.Context(), task{share: "s", path: "p/a"})
			if state := w.state(t, left); err == nil || state != before {
				t.Errorf("the ShareDirectory was %s and is %q; the leader says %v", before, state, err)
			}
			w.owner.Hide("/s/0", false)
			w.owner.Drop("/s/0/p/b")
			if err := w.leader.complete(t.Context(), task{share: "s", path: "p/a"}); err != nil {
				t.Errorf("once the export is back: %v", err)
			}
		})
	}
}

func TestARmdirOfADirectoryInAHiddenExportIsPutOff(t *testing.T) {
	w := newWorld(t, "", true)
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o777})
	w.owner.Put("/s/0/p/a/data", ownertest.Directory{Mode: 0o777})
	o := left("p/a", internalv1.DirectoryReady)
	w.keep(t, o)
	entry := w.entry(t, "s", "p", "a")
	w.owner.Hide("/s/0", true)
	if status := w.leader.Rmdir(t.Context(), entry, tree.Credentials{}); status != nfsv4.NFS4ERR_DELAY {
		t.Errorf("rmdir answered %v", status)
	}
	if w.state(t, o) == "" {
		t.Fatal("the ShareDirectory of a directory full of data is gone")
	}
	w.owner.Hide("/s/0", false)
	w.clock.Step(time.Minute)
	if err := w.leader.complete(t.Context(), task{share: "s", path: "p/a"}); err != nil || w.state(t, o) != internalv1.DirectoryReady {
		t.Errorf("once the export is back the ShareDirectory is %q, %v", w.state(t, o), err)
	}
}

// A name that is missing in an export that is shown is gone.
func TestARmdirOfWhatIsGoneFromItsOwnerSucceeds(t *testing.T) {
	w := newWorld(t, "", true)
	w.owner.Put("/s/0/p", ownertest.Directory{Mode: 0o777})
	o := left("p/a", internalv1.DirectoryReady)
	w.keep(t, o)
	if status := w.leader.Rmdir(t.Context(), w.entry(t, "s", "p", "a"), tree.Credentials{}); status != nfsv4.NFS4_OK || w.state(t, o) != "" {
		t.Errorf("rmdir answered %v, the ShareDirectory is %q", status, w.state(t, o))
	}
}

// entry looks a path up in the tree.
func (w *world) entry(t *testing.T, names ...string) tree.Entry {
	t.Helper()
	entry := w.leader.Tree.Root()
	for _, name := range names {
		next, ok := w.leader.Tree.Lookup(entry.ID, name)
		if !ok {
			t.Fatalf("%s is not in the tree", name)
		}
		entry = next
	}
	return entry
}

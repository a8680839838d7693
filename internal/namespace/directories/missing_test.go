package directories

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/test/builders"
)

func byUser(o *internalv1.ShareDirectory) {
	o.Annotations = map[string]string{v1alpha1.DeclaredAnnotation: v1alpha1.DeclaredTrue}
}

// know gives the API and the tree ShareDirectories.
func (w *world) know(t *testing.T, directories ...*internalv1.ShareDirectory) {
	t.Helper()
	for _, o := range directories {
		status := o.Status
		if err := w.leader.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		o.Status = status
		if err := w.leader.Client.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w.leader.Tree.SetDirectory(o)
	}
}

// states are the ShareDirectories of directories that data servers own as "path state", with a + where they have a loss.
func (w *world) states(t *testing.T) (states string, losses []string) {
	t.Helper()
	list := &internalv1.ShareDirectoryList{}
	if err := w.leader.Client.List(t.Context(), list, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, o := range list.Items {
		if o.Spec.DataServerRef.Name == "" {
			continue
		}
		state := fmt.Sprintf("%s %s", o.Spec.Path, o.State())
		if o.Status.LossID != "" {
			state += "+"
			losses = append(losses, o.Status.LossID)
		}
		if (o.Status.LossID == "") != (o.Status.MissingTime == nil) {
			t.Errorf("%s has loss %q, and is missed since %v", o.Spec.Path, o.Status.LossID, o.Status.MissingTime)
		}
		all = append(all, state)
	}
	slices.Sort(all)
	slices.Sort(losses)
	return strings.Join(all, ", "), slices.Compact(losses)
}

func (w *world) expect(t *testing.T, when, want string) (losses []string) {
	t.Helper()
	got, losses := w.states(t)
	if got != want {
		t.Errorf("%s: %s, want %s", when, got, want)
	}
	return losses
}

// giveUp has the user accept losses, and the leader do what follows.
func (w *world) giveUp(t *testing.T, layout v1alpha1.ShareLayout, losses ...string) {
	t.Helper()
	share := &v1alpha1.FileShare{}
	share.Name, share.UID = "s", "s"
	share.Spec = v1alpha1.FileShareSpec{FileServerRef: v1alpha1.FileServerReference{Name: "fs"}, Path: "/s", Layout: layout, Depth: 2, AcceptedLosses: losses}
	share.Status.Conditions = builders.InventoriedConditions()
	w.leader.Tree.SetShare(fleet.ShareOf(builders.Defaulted(share)))
	for range 2 { // What is to be made again is made by the second.
		for _, r := range w.leader.Tree.Unfinished() {
			if err := w.leader.complete(t.Context(), task{share: "s", path: r.Path}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A directory that was on its data server and is not is neither made again nor forgotten, alone or with all others, declared or not. It is found
// again by itself, and given up by the loss that it has.
func TestADirectoryThatIsGoneIsMissing(t *testing.T) {
	w := newWorld(t, "", true)
	for _, name := range []string{"a", "b"} {
		w.owner.Put("/s/0/p/"+name, ownertest.Directory{Mode: 0o755})
	}
	w.know(t, left("p/a", internalv1.DirectoryReady, byUser), left("p/b", internalv1.DirectoryReady))
	w.inventory(t)
	w.expect(t, "all there", "p/a Ready, p/b Ready")

	w.owner.Drop("/s/0/p/a")
	w.inventory(t)
	first := w.expect(t, "one gone", "p/a Missing+, p/b Ready")
	if e, ok := w.leader.Tree.At("/s/p/a"); !ok || e.Target == nil || e.Target.Serves {
		t.Errorf("clients are not put off at the directory that is gone: %+v", e)
	}
	w.clock.Step(time.Hour)
	w.inventory(t)
	if again := w.expect(t, "still gone", "p/a Missing+, p/b Ready"); !slices.Equal(again, first) {
		t.Errorf("the loss was %v and is %v", first, again)
	}

	w.owner.Drop("/s/0/p/b")
	w.owner.Drop("/s/0/p")
	w.inventory(t)
	both := w.expect(t, "another look misses the other", "p/a Missing+, p/b Missing+")
	if len(both) != 2 {
		t.Errorf("two losses are %v", both)
	}
	if names := w.owner.Names("/s/0"); len(names) > 0 {
		t.Errorf("%v was made on the data server", names)
	}

	w.owner.Put("/s/0/p", ownertest.Directory{Mode: 0o755})
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o755})
	w.inventory(t)
	w.expect(t, "one restored", "p/a Ready, p/b Missing+")
	if e, _ := w.leader.Tree.At("/s/p/a"); e.Target == nil || !e.Target.Serves {
		t.Errorf("clients are still put off at the directory that is back: %+v", e)
	}
	w.owner.Drop("/s/0/p/a")
	w.inventory(t)
	w.giveUp(t, "", first...)
	w.expect(t, "an earlier loss of it is given up", "p/a Missing+, p/b Missing+")
	_, now := w.states(t)
	w.giveUp(t, "", now...)
	w.expect(t, "all given up", "p/a Ready")
	if _, made := w.owner.Get("/s/0/p/a"); !made {
		t.Error("the declared directory was not made again")
	}
	w.inventory(t)
	w.expect(t, "looked at once more", "p/a Ready")
}

// A volume that lost everything is one loss, and a look that fails is none.
func TestAVolumeThatLostAllIsOneLoss(t *testing.T) {
	w := newWorld(t, "", true)
	w.know(t, left("p/a", internalv1.DirectoryReady, byUser), left("p/b", internalv1.DirectoryReady), left("q/c", internalv1.DirectoryMissing))
	w.owner.Hide("/s/0", true)
	if err := w.leader.scan(t.Context(), task{share: "s", server: "fs-0"}); err == nil {
		t.Error("an export that is not shown was looked at")
	}
	w.expect(t, "not to be looked at", "p/a Ready, p/b Ready, q/c Missing")
	w.owner.Hide("/s/0", false)
	w.inventory(t)
	if losses := w.expect(t, "all gone", "p/a Missing+, p/b Missing+, q/c Missing+"); len(losses) != 1 {
		t.Errorf("one look missed them, and the losses are %v", losses)
	}
}

// What an earlier share of the name left is looked for, and not made.
func TestARetainedDirectoryIsLookedForAndNotMade(t *testing.T) {
	w := newWorld(t, "", true)
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o755})
	w.know(t, left("p/a", internalv1.DirectoryMissing, byUser), left("p/b", internalv1.DirectoryMissing, byUser))
	w.giveUp(t, "")
	w.expect(t, "not looked for yet", "p/a Missing, p/b Missing")
	if w.leader.queue.Len() != 1 {
		t.Errorf("%d tasks, and one look at the data server is enough", w.leader.queue.Len())
	}
	w.inventory(t)
	w.expect(t, "looked for", "p/a Ready, p/b Missing+")
	if names := w.owner.Names("/s/0/p"); !slices.Equal(names, []string{"a"}) {
		t.Errorf("the data server has %v", names)
	}
}

// The root of a Single share always answers: an empty one is made before it is exported. Its identity tells it from the one with the data.
func TestAnotherRootOfASingleShareIsMissing(t *testing.T) {
	w := newWorld(t, v1alpha1.LayoutSingle, true)
	rootIs := func(id string) {
		export := exportOn("fs-0")
		export.Status.RootIDs = []string{id}
		w.leader.Tree.SetExport(export)
	}
	look := func() {
		t.Helper()
		if err := w.leader.scan(t.Context(), task{share: "s", server: "fs-0"}); err != nil {
			t.Fatal(err)
		}
	}
	served := func() bool {
		e, ok := w.leader.Tree.At("/s")
		return ok && e.Target != nil && e.Target.Serves
	}
	w.know(t, left(tree.RootPath, internalv1.DirectoryReady, byUser))
	rootIs("one")
	look()
	if o, err := w.leader.get(t.Context(), "s", tree.RootPath); err != nil || o.Status.RootID != "one" {
		t.Errorf("the identity of the root is not kept: %+v, %v", o.Status, err)
	}
	if !served() {
		t.Error("the share is not served")
	}
	version := func() string {
		o, err := w.leader.get(t.Context(), "s", tree.RootPath)
		if err != nil {
			t.Fatal(err)
		}
		return o.ResourceVersion
	}
	before := version()
	look()
	rootIs("")
	look()
	if version() != before || !served() {
		t.Error("a root that is the same, or whose identity the data server does not tell, is written about")
	}
	rootIs("two")
	if served() {
		t.Error("another root is served before it was looked at")
	}
	look()
	lost := w.expect(t, "another root", ". Missing+")
	rootIs("one")
	look()
	w.expect(t, "the root is back", ". Ready")
	rootIs("two")
	look()
	w.giveUp(t, v1alpha1.LayoutSingle, lost...)
	lost = w.expect(t, "an earlier loss is given up", ". Missing+")
	w.giveUp(t, v1alpha1.LayoutSingle, lost...)
	w.expect(t, "given up", ". Ready")
	if o, err := w.leader.get(t.Context(), "s", tree.RootPath); err != nil || o.Status.RootID != "two" || !served() {
		t.Errorf("the new root is not the share's: %+v, %v", o.Status, err)
	}
}

// A client that may remove a missing directory gives it up.
func TestAMissingDirectoryCanBeRemoved(t *testing.T) {
	w := newWorld(t, "", true)
	w.know(t, left("p/a", internalv1.DirectoryReady), left("p/b", internalv1.DirectoryReady))
	w.inventory(t)
	w.owner.Put("/s/0/p/b/data", ownertest.Directory{Mode: 0o755})
	for _, name := range []string{"a", "b"} {
		e, ok := w.leader.Tree.At("/s/p/" + name)
		if !ok {
			t.Fatalf("p/%s is not in the namespace", name)
		}
		status := w.leader.Rmdir(t.Context(), e, tree.Credentials{})
		t.Logf("rmdir of %s: %s", name, nfs.StatusName(status))
	}
	w.expect(t, "removed, and back with data in it", "p/b Ready")
}

func TestThePaceOfLooksHasABound(t *testing.T) {
	for _, tc := range []struct {
		shared     bool
		owned, all int
		want       time.Duration
	}{
		{false, 0, 0, 100 * time.Millisecond},
		{false, 300, 900, 400 * time.Millisecond},
		{false, 100_000, 100_000, 100_100 * time.Millisecond},
		{true, 10, 1000, 5100 * time.Millisecond},
	} {
		if got := pauseAfter(tc.shared, tc.owned, tc.all); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

package operations

import (
	"fmt"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
)

// What another server has changed a moment ago the tree does not have yet. No change is refused because of that.
func TestWhatIsToBeChangedIsLookedAtInTheAPIBeforeAChangeIsRefused(t *testing.T) {
	const asked, notAsked = true, false
	inPlain := func(op nfsv4.NfsArgop4) []nfsv4.NfsArgop4 {
		return []nfsv4.NfsArgop4{&nfsv4.NfsArgop4_OP_PUTROOTFH{}, lookup("open"), lookup("plain"), op}
	}
	remove := func(name string) nfsv4.NfsArgop4 {
		return &nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: name}}
	}
	gone := func(w *world) {
		r, _ := w.handler.Tree.Directory("open", "plain/junction")
		w.handler.Tree.DeleteDirectory("open", r.Path, r.UID)
	}
	made := func(w *world) {
		w.handler.Tree.SetDirectory(directory("open", "plain/new", "fs-0", internalv1.DirectoryReady, 9))
	}
	for name, test := range map[string]struct {
		caller rpc.Caller
		op     nfsv4.NfsArgop4
		// happened is what another server has changed; nil: nothing.
		happened func(w *world)
		asked    bool
		want     nfsv4.Nfsstat4
	}{
		"mkdir of what exists":                  {rootUser, mkdir("junction"), nil, asked, nfsv4.NFS4ERR_EXIST},
		"mkdir of what was removed":             {rootUser, mkdir("junction"), gone, asked, nfsv4.NFS4_OK},
		"mkdir of what exists, by who may not":  {bob, mkdir("junction"), nil, notAsked, nfsv4.NFS4ERR_EXIST},
		"mkdir of what does not exist":          {rootUser, mkdir("other"), nil, notAsked, nfsv4.NFS4_OK},
		"rmdir of what does not exist":          {rootUser, remove("new"), nil, asked, nfsv4.NFS4ERR_NOENT},
		"rmdir of what was made":                {rootUser, remove("new"), made, asked, nfsv4.NFS4_OK},
		"rmdir of what exists":                  {rootUser, remove("junction"), nil, notAsked, nfsv4.NFS4_OK},
		"rmdir of what is being made right now": {rootUser, remove("making"), nil, notAsked, nfsv4.NFS4ERR_DELAY},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			times := 0
			w.mutator.refresh = func(parent tree.Entry, _ string) {
				if times++; parent.Rel != "plain" {
					t.Errorf("asked about %q", parent.Rel)
				}
				if test.happened != nil {
					test.happened(w)
				}
			}
			_, status := w.do(test.caller, inPlain(test.op)...)
			if status != test.want || (times > 0) != test.asked {
				t.Errorf("%s, want %s; the API was asked %d times", nfs.StatusName(status), nfs.StatusName(test.want), times)
			}
		})
	}
}

// A watch that was cut off brings all that it missed, one after the other: also a directory of that name that was made and removed meanwhile. A
// mkdir got EEXIST for one that was gone for 0.1 s.
func TestWhatTheWatchShowsAgainIsNotInTheWayOfAMkdir(t *testing.T) {
	w := newWorld(t)
	w.mutator.gone = true
	if _, status := w.do(rootUser, &nfsv4.NfsArgop4_OP_PUTROOTFH{}, lookup("open"), lookup("plain"), mkdir("junction")); status != nfsv4.NFS4_OK {
		t.Errorf("%s", nfs.StatusName(status))
	}
	if len(w.mutator.mkdirs) != 1 {
		t.Errorf("%d directories are made", len(w.mutator.mkdirs))
	}
}

// What is being made is not shown, and then it is. Who looks for both, one after the other, must not miss it.
func TestWhatIsMadeMeanwhileIsNotMissing(t *testing.T) {
	w := newWorld(t)
	caller := rootUser
	for name, op := range map[string]nfsv4.NfsArgop4{
		"REMOVE": &nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: "racing"}},
		"LOOKUP": lookup("racing"),
	} {
		w.mutator.status = nfsv4.NFS4ERR_NOTEMPTY // Nothing is removed.
		for i := range 20_000 {
			// Of another UID each time: an older one does not come back.
			made := directory("open", "plain/racing", "fs-0", internalv1.DirectoryCreating, 100+2*i)
			w.handler.Tree.SetDirectory(made)
			shown := made.DeepCopy()
			shown.ResourceVersion, shown.Status.State = fmt.Sprint(101+2*i), internalv1.DirectoryReady
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.handler.Tree.SetDirectory(shown)
			}()
			_, status := w.do(caller, &nfsv4.NfsArgop4_OP_PUTROOTFH{}, lookup("open"), lookup("plain"), op)
			<-done
			w.handler.Tree.DeleteDirectory("open", "plain/racing", string(made.UID))
			if status == nfsv4.NFS4ERR_NOENT {
				t.Fatalf("%s: %s in round %d", name, nfs.StatusName(status), i)
			}
		}
	}
}

// A directory that is being renamed has no name for a moment, and is known by its handle again after it. Whoever has the handle is put off, and never learns that
// it is gone. A share that goes takes all that is in it along: whoever is in it learns that, and not that a name is missing.
func TestWhatGoesOrMovesMeanwhileIsNotMistaken(t *testing.T) {
	w := newWorld(t)
	at := func(path string) []byte {
		e, _ := w.handler.Tree.At(path)
		return tree.EncodeHandle(tree.HandleDirectory, e.ID)
	}
	for i := range 20_000 {
		from, to := "a", "b"
		if i%2 == 1 {
			from, to = to, from
		}
		old := directory("open", from, "", internalv1.DirectoryReady, 1000+3*i)
		old.Spec.Identity = "always the same"
		w.handler.Tree.SetDirectory(old)
		next := directory("open", to, "", internalv1.DirectoryRenaming, 1001+3*i)
		next.Spec.Identity = old.Spec.Identity
		ready := next.DeepCopy()
		ready.ResourceVersion, ready.Status.State = fmt.Sprint(1002+3*i), internalv1.DirectoryReady
		handle, done := at("/open/"+from), make(chan struct{})
		go func() {
			defer close(done)
			w.handler.Tree.SetDirectory(next)
			w.handler.Tree.DeleteDirectory("open", from, string(old.UID))
			w.handler.Tree.SetDirectory(ready)
		}()
		ops := []nfsv4.NfsArgop4{putfh(handle)}
		for range 16 {
			ops = append(ops, &nfsv4.NfsArgop4_OP_ACCESS{}, ops[0])
		}
		_, status := w.do(rootUser, ops...)
		<-done
		w.handler.Tree.DeleteDirectory("open", to, string(ready.UID))
		if status != nfsv4.NFS4_OK && status != nfsv4.NFS4ERR_DELAY {
			t.Fatalf("round %d of a rename: %s", i, nfs.StatusName(status))
		}
	}
	whole := fleet.ShareOf(share("open", "/open", func(s *v1alpha1.FileShareSpec) { s.Depth, s.Mode = 2, "0777" }))
	for i := range 20_000 {
		handle, done := at("/open"), make(chan struct{})
		go func() {
			defer close(done)
			w.handler.Tree.DeleteShare("open")
		}()
		_, status := w.do(rootUser, putfh(handle), lookup("plain"))
		<-done
		w.handler.Tree.SetShare(whole)
		if status != nfsv4.NFS4_OK && status != nfsv4.NFS4ERR_STALE {
			t.Fatalf("round %d of a share that goes: %s", i, nfs.StatusName(status))
		}
	}
}

func TestAListOfADirectoryThatIsGoneIsNotAtItsEnd(t *testing.T) {
	w := newWorld(t)
	c := w.handler.Begin(t.Context(), rootUser, 2).(*compound)
	dir, _ := w.handler.Tree.At("/open/plain")
	c.current = &handle{id: dir.ID}
	w.handler.Tree.DeleteShare("open")
	if _, status := c.list(&dir, &nfsv4.Readdir4args{Maxcount: 4096}); status != nfsv4.NFS4ERR_STALE {
		t.Errorf("%s", nfs.StatusName(status))
	}
}

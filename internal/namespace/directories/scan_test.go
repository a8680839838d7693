package directories

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/listing"
	"github.com/howdah/howdah/internal/namespace/operations"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/test/builders"
)

// inventory is what the API has of the data server's volumes after a scan.
func (w *world) inventory(t *testing.T) internalv1.ShareInventory {
	t.Helper()
	if err := w.leader.scan(t.Context(), task{share: "s", server: "fs-0"}); err != nil {
		t.Fatal(err)
	}
	export := &internalv1.ShareExport{}
	if err := w.leader.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: naming.ShareExport("s", "fs-0")}, export); err != nil {
		t.Fatal(err)
	}
	w.leader.Tree.SetExport(export) // as the watch does
	return export.Status.Inventory
}

func TestAScanReportsWhatADataServerHas(t *testing.T) {
	w := newWorld(t, "", true)
	for _, path := range []string{"/s/0/p/a", "/s/0/p/b", "/s/0/.howdah/p/c"} {
		w.owner.Put(path, ownertest.Directory{Mode: 0o755})
	}
	elsewhere := left("p/b", internalv1.DirectoryReady, func(o *internalv1.ShareDirectory) { o.Spec.DataServerRef.Name = "fs-1" })
	w.leader.Tree.SetDirectory(elsewhere)
	found := w.inventory(t)
	if found.FileShareUID != "s" || found.Generation != 1 {
		t.Errorf("the inventory is not this share's: %+v", found)
	}
	if len(found.Misplaced) != 1 || found.Misplaced[0].Path != "p/b" || found.MisplacedCount == nil || *found.MisplacedCount != 1 {
		t.Errorf("p/b is here and owned by another server, and the inventory tells %+v", found)
	}
	if r, ok := w.leader.Tree.Directory("s", "p/a"); !ok || r.Server != "fs-0" || r.State != internalv1.DirectoryReady {
		t.Errorf("p/a has no ShareDirectory: %+v", r)
	}
	w.owner.Drop("/s/0/p/b")
	if found := w.inventory(t); len(found.Misplaced) > 0 || found.MisplacedCount != nil {
		t.Errorf("p/b was removed here, and the inventory still tells %+v", found)
	}
}

// A directory that clients wait for, because it moves, has a name in the root of its export that says nothing of its path. If its ShareDirectory is lost, a
// volume on which it is has not been looked at: its path would be given to an empty directory elsewhere.
func TestAVolumeWithADirectoryOnItsWayIsLookedAtAgain(t *testing.T) {
	w := newWorld(t, "", true)
	const move = "0d5e8f6a-7c3b-4b7e-9a51-2f1f5d7e8c90"
	w.owner.Put("/s/0/p/b", ownertest.Directory{Mode: 0o755})
	w.owner.Put("/s/0/"+naming.MovingPrefix+move, ownertest.Directory{Mode: 0o755})
	err := w.leader.scan(t.Context(), task{share: "s", server: "fs-0"})
	if err == nil || !strings.Contains(err.Error(), "ShareDirectory is lost") {
		t.Fatalf("the volume counts as looked at: %v", err)
	}
	if _, ok := w.leader.Tree.Directory("s", "p/b"); !ok {
		t.Error("what else is there has no ShareDirectory")
	}
	export := &internalv1.ShareExport{}
	if err := w.leader.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: naming.ShareExport("s", "fs-0")}, export); err != nil || export.Status.Inventory.FileShareUID != "" {
		t.Errorf("the inventory is %+v, %v", export.Status.Inventory, err)
	}
	// As long as its ShareDirectory is there, its path is not given away.
	w.leader.Tree.SetDirectory(left("p/a", internalv1.DirectoryReady, func(o *internalv1.ShareDirectory) {
		o.Spec.Move.ID, o.Spec.Move.Step = move, internalv1.MoveFreezing
	}))
	w.inventory(t)
}

// A directory moved to another data server, and then the objects were restored from a backup of before. The share says where it is, and when the
// ShareDirectory is deleted it is written again from there.
func TestADirectoryThatMovedSinceTheBackupIsFound(t *testing.T) {
	w := newWorld(t, "", true)
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o755})
	moved := left("p/a", internalv1.DirectoryReady)
	w.leader.Tree.SetDirectory(moved)
	before, _ := w.leader.Tree.Directory("s", "p/a")
	w.leader.DirectoryRestored(before, moved)
	earlier := left("p/a", internalv1.DirectoryReady, func(o *internalv1.ShareDirectory) { o.Spec.DataServerRef.Name = "fs-1" })
	w.leader.Tree.RestoreDirectory(earlier)
	w.leader.DirectoryRestored(before, earlier)
	var looksAt []string
	for range 2 { // It waits until there is one.
		next, _ := w.leader.queue.Get()
		looksAt = append(looksAt, next.share+" on "+next.server)
	}
	if slices.Sort(looksAt); !slices.Equal(looksAt, []string{"s on fs-0", "s on fs-1"}) {
		t.Errorf("the leader looks at %v", looksAt)
	}
	if found := w.inventory(t); len(found.Misplaced) != 1 || found.Misplaced[0].Path != "p/a" {
		t.Errorf("the share says %+v", found)
	}
	w.leader.Tree.DeleteDirectory("s", "p/a", string(earlier.UID))
	w.inventory(t)
	if r, ok := w.leader.Tree.Directory("s", "p/a"); !ok || r.Server != "fs-0" || r.State != internalv1.DirectoryReady {
		t.Errorf("its ShareDirectory is %+v", r)
	}
}

// haveVolumes has a data server use some volumes.
func (w *world) haveVolumes(name string, number int32) {
	server := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	server.Spec = internalv1.DataServerSpec{FileServerRef: internalv1.FileServerReference{Name: "fs"}, Address: w.owner.Address, Volumes: number}
	server.Status.Conditions = builders.ReadyConditions()
	w.leader.Tree.SetServer(server)
}

// deleteAsUser deletes a ShareDirectory and has the leader learn of it.
func (w *world) deleteAsUser(t *testing.T, path string) {
	t.Helper()
	o, err := w.leader.get(t.Context(), "s", path)
	if err == nil {
		err = w.leader.Client.Delete(t.Context(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.leader.DirectoryDeleted(o)
}

// inCeph has both data servers use one Ceph file system: fs-1 is another pod in front of the same directories.
func (w *world) inCeph() {
	for _, name := range []string{"fs-0", "fs-1"} {
		server := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: name}}
		server.Spec = internalv1.DataServerSpec{
			FileServerRef: internalv1.FileServerReference{Name: "fs"}, Address: w.owner.Address, Volumes: 1,
			Ceph: internalv1.CephFileSystem{Monitors: []string{"10.0.0.1:3300"}},
		}
		server.Status.Conditions = builders.ReadyConditions()
		w.leader.Tree.SetServer(server)
		w.leader.Tree.SetExport(exportOn(name))
	}
}

func TestWhatAllDataServersHaveIsInItsPlaceAndSpread(t *testing.T) {
	w := newWorld(t, "", true)
	w.inCeph()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.owner.Put("/s/0/p/"+name, ownertest.Directory{Mode: 0o755})
	}
	elsewhere := left("p/a", internalv1.DirectoryReady, func(o *internalv1.ShareDirectory) { o.Spec.DataServerRef.Name = "fs-1" })
	w.leader.Tree.SetDirectory(elsewhere)
	if found := w.inventory(t); found.FileShareUID != "s" || len(found.Misplaced) > 0 || found.MisplacedCount != nil {
		t.Errorf("p/a is owned by another data server, which is no fault here, and the inventory tells %+v", found)
	}
	owned := map[string]int{}
	for _, name := range []string{"b", "c", "d", "e"} {
		r, ok := w.leader.Tree.Directory("s", "p/"+name)
		if !ok || r.State != internalv1.DirectoryReady {
			t.Fatalf("p/%s has no ShareDirectory: %+v", name, r)
		}
		owned[r.Server]++
	}
	if owned["fs-0"] < 2 || owned["fs-1"] < 1 {
		t.Errorf("what was found is owned by %v", owned)
	}
}

func TestDataOfASingleShareThatAllDataServersHaveIsNowhere(t *testing.T) {
	w := newWorld(t, v1alpha1.LayoutSingle, true)
	w.inCeph()
	w.owner.Put("/s/0/file", ownertest.Directory{Mode: 0o755})
	if found := w.inventory(t); found.FileShareUID != "s" || len(found.OccupiedVolumes) > 0 {
		t.Errorf("any data server can own it, and the inventory tells %+v", found)
	}
}

func TestAScanReportsWhereASingleShareHasData(t *testing.T) {
	w := newWorld(t, v1alpha1.LayoutSingle, true)
	w.owner.Put("/s/0/.howdah", ownertest.Directory{Mode: 0o755})
	if found := w.inventory(t); found.FileShareUID != "s" || len(found.OccupiedVolumes) > 0 {
		t.Errorf("an empty volume: %+v", found)
	}
	w.owner.Put("/s/0/file", ownertest.Directory{Mode: 0o755})
	if found := w.inventory(t); !slices.Equal(found.OccupiedVolumes, []int32{0}) {
		t.Errorf("a volume with data: %+v", found)
	}
}

// What an owner does not show is not known to be gone: the inventory stays as it was, and the scan is repeated.
func TestAScanThatFailsReportsNothing(t *testing.T) {
	w := newWorld(t, "", true)
	w.owner.Hide("/s/0", true)
	if err := w.leader.scan(t.Context(), task{share: "s", server: "fs-0"}); err == nil {
		t.Fatal("a scan of an export that is not shown is done")
	}
	w.owner.Hide("/s/0", false)
	if found := w.inventory(t); found.FileShareUID != "s" {
		t.Errorf("the export is shown, and the inventory is %+v", found)
	}
}

func TestAParentThatLostItsShareDirectoryGetsAnother(t *testing.T) {
	w := newWorld(t, "", true)
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o755})
	w.leader.Tree.SetDirectory(left("p/a", internalv1.DirectoryReady))
	w.inventory(t)
	if r, ok := w.leader.Tree.Directory("s", "p"); !ok || r.Server != "" {
		t.Errorf("p has no ShareDirectory: %+v", r)
	}
}

// listsItself has data servers tell of directories past NFS.
func (w *world) listsItself(directories ...listing.Directory) {
	w.leader.List = func(_ context.Context, _, share string, depth int32) ([]listing.Directory, error) {
		if share != "s" || depth != 2 {
			return nil, fmt.Errorf("asked for share %s down to %d", share, depth)
		}
		return directories, nil
	}
}

// What ganesha lists, it keeps capabilities of.
func TestSharedStorageIsNotListedByNFS(t *testing.T) {
	w := newWorld(t, "", true)
	w.inCeph()
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o755})
	w.listsItself(listing.Directory{Path: "p", Mode: 0o711}, listing.Directory{Path: "p/a", UID: 7, GID: 8, Mode: 0o2750})
	w.keep(t, left("p/gone", internalv1.DirectoryReady))
	share, _ := w.leader.Tree.Share("s")
	server, _ := w.leader.Tree.Server("fs-0")
	if err := w.leader.check(t.Context(), share, server); err != nil {
		t.Fatal(err)
	}
	if found := w.inventory(t); found.FileShareUID != "s" {
		t.Errorf("%+v", found)
	}
	if n := w.owner.Calls("readdir"); n > 0 {
		t.Errorf("%d READDIRs", n)
	}
	if r, ok := w.leader.Tree.Directory("s", "p/a"); !ok || r.State != internalv1.DirectoryReady || r.Owner != 7 || r.Group != 8 || r.Mode != 0o2750 {
		t.Errorf("p/a has the ShareDirectory %+v", r)
	}
	if r, ok := w.leader.Tree.Directory("s", "p"); !ok || r.Server != "" || r.Mode != 0o711 {
		t.Errorf("p has the ShareDirectory %+v", r)
	}
	if r, ok := w.leader.Tree.Directory("s", "p/gone"); !ok || r.State != internalv1.DirectoryMissing {
		t.Errorf("what is not there has the ShareDirectory %+v", r)
	}
}

// A directory that was made after the list is asked for by itself before it is called Missing.
func TestAListIsOfAMomentAgo(t *testing.T) {
	w := newWorld(t, "", true)
	w.inCeph()
	w.owner.Put("/s/0/p/new", ownertest.Directory{Mode: 0o755})
	w.listsItself(listing.Directory{Path: "p", Mode: 0o755}, listing.Directory{Path: "p/removed", Mode: 0o755})
	w.keep(t, left("p/new", internalv1.DirectoryReady))
	share, _ := w.leader.Tree.Share("s")
	server, _ := w.leader.Tree.Server("fs-0")
	if err := w.leader.check(t.Context(), share, server); err != nil {
		t.Fatal(err)
	}
	if r, ok := w.leader.Tree.Directory("s", "p/new"); !ok || r.State != internalv1.DirectoryReady {
		t.Errorf("what is there has the ShareDirectory %+v", r)
	}
	if r, ok := w.leader.Tree.Directory("s", "p/removed"); ok {
		t.Errorf("what was removed since has %+v", r)
	}
}

func TestDataServersThatListNothingAreAskedByNFS(t *testing.T) {
	w := newWorld(t, "", true)
	w.inCeph()
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o755})
	w.leader.List = func(context.Context, string, string, int32) ([]listing.Directory, error) {
		return nil, listing.ErrNotOffered
	}
	w.inventory(t)
	if _, ok := w.leader.Tree.Directory("s", "p/a"); !ok || w.owner.Calls("readdir") == 0 {
		t.Errorf("p/a has a ShareDirectory: %v, after %d READDIRs", ok, w.owner.Calls("readdir"))
	}
	w.leader.List = func(context.Context, string, string, int32) ([]listing.Directory, error) {
		return nil, errors.New("Ceph is away")
	}
	if err := w.leader.scan(t.Context(), task{share: "s", server: "fs-0"}); err == nil {
		t.Error("a scan of what can't be listed is done")
	}
}

// A directory may be made right after a look, and its ShareDirectory be lost right after that: the look for it must see it.
func TestEachLookSeesWhatWasMadeSinceTheLast(t *testing.T) {
	w := newWorld(t, "", true)
	w.inCeph()
	var there []listing.Directory
	w.leader.List = func(context.Context, string, string, int32) ([]listing.Directory, error) { return there, nil }
	share, _ := w.leader.Tree.Share("s")
	server, _ := w.leader.Tree.Server("fs-0")
	names := func() int {
		list, err := w.leader.listerOf(t.Context(), share, server)
		if err != nil {
			t.Fatal(err)
		}
		defer list.release()
		n := 0
		if err := list.entries(t.Context(), 0, "", func(nfs.DirEntry) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := names()
	there = append(there, listing.Directory{Path: "x"})
	if after := names(); before != 0 || after != 1 {
		t.Errorf("of a directory that was made since the last look %d are seen, and before it %d", after, before)
	}
}

// A directory moved from the second volume to the first, and then the objects were restored from a backup of before (DirectoriesElsewhere). A user deletes
// its ShareDirectory. Before the leader writes it again, its name is given to no other: not by mkdir, not by rename. For an hour after the move its earlier
// data server refuses the name.
func TestADirectoryThatIsElsewhereIsNotMadeAgain(t *testing.T) {
	const restored = "p/a"
	takes := map[string]func(t *testing.T, w *world) nfsv4.Nfsstat4{
		"mkdir": func(t *testing.T, w *world) nfsv4.Nfsstat4 {
			_, status := w.leader.Mkdir(t.Context(), operations.MkdirRequest{Parent: w.entry(t, "s", "p"), Name: "a", Mode: 0o755})
			return status
		},
		"rename": func(t *testing.T, w *world) nfsv4.Nfsstat4 {
			return w.leader.Rename(t.Context(), w.entry(t, "s", "p", "b"), w.entry(t, "s", "p"), "a", tree.Credentials{})
		},
	}
	for name, moved := range map[string]func(w *world){
		"just now":       func(w *world) { w.owner.Leave("/s/1/p/a") },
		"some hours ago": func(*world) {},
	} {
		for call, take := range takes {
			t.Run(call+" of one that moved "+name, func(t *testing.T) {
				w := newWorld(t, "", true)
				w.haveVolumes("fs-0", 2)
				w.owner.Put("/s/1", ownertest.Directory{Mode: 0o777})
				w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o755})
				w.owner.Put("/s/1/p/b", ownertest.Directory{Mode: 0o755})
				moved(w)
				onSecond := func(o *internalv1.ShareDirectory) { o.Spec.Volume = ptr.To(int32(1)) }
				w.know(t, left("p", internalv1.DirectoryReady, above), left("p/b", internalv1.DirectoryReady, onSecond), left(restored, internalv1.DirectoryReady, onSecond))
				// The next directory is placed on the second volume.
				for _, name := range []string{"c", "d"} {
					w.owner.Put("/s/0/p/"+name, ownertest.Directory{Mode: 0o755})
					w.know(t, left("p/"+name, internalv1.DirectoryReady))
				}
				if found := w.inventory(t); len(found.Misplaced) != 1 || found.Misplaced[0].Path != restored {
					t.Errorf("the inventory tells %+v", found)
				}
				w.expect(t, "after the restore", "p/a Missing+, p/b Ready, p/c Ready, p/d Ready")
				w.deleteAsUser(t, restored)
				if status := take(t, w); status != nfsv4.NFS4ERR_DELAY {
					t.Errorf("a client gets %v", status)
				}
				if _, made := w.owner.Get("/s/1/p/a"); made {
					t.Error("an empty directory hides the data")
				}
				if task, _ := w.leader.queue.Get(); task.server != "fs-0" || task.path != "" {
					t.Errorf("the leader looks at %+v", task)
				}
				w.inventory(t)
				w.expect(t, "after the leader's look", "p/a Ready, p/b Ready, p/c Ready, p/d Ready")
				if r, _ := w.leader.Tree.Directory("s", restored); r.Volume != 0 {
					t.Errorf("it is on volume %d", r.Volume)
				}
			})
		}
	}
}

// A directory that has left its data server, and whose ShareDirectory was deleted before the move ended, may be on any other.
func TestADirectoryThatHasLeftIsNotMadeAgain(t *testing.T) {
	w := newWorld(t, "", true)
	w.owner.Put("/s/0/p", ownertest.Directory{Mode: 0o777})
	w.owner.Leave("/s/0/p/a")
	w.know(t, left("p", internalv1.DirectoryReady, above), left("p/a", internalv1.DirectoryReady))
	w.deleteAsUser(t, "p/a")
	if _, status := w.leader.Mkdir(t.Context(), operations.MkdirRequest{Parent: w.entry(t, "s", "p"), Name: "a", Mode: 0o755}); status != nfsv4.NFS4ERR_DELAY {
		t.Errorf("a client gets %v", status)
	}
}

// A data server that does not serve the share may have the directory.
func TestADirectoryThatMayBeElsewhereIsNotMadeAgain(t *testing.T) {
	w := newWorld(t, "", true)
	w.owner.Put("/s/0/p", ownertest.Directory{Mode: 0o777})
	w.haveVolumes("fs-1", 1)
	w.know(t, left("p", internalv1.DirectoryReady, above), left("p/a", internalv1.DirectoryReady))
	w.inventory(t)
	w.expect(t, "after the restore", "p/a Missing+")
	w.deleteAsUser(t, "p/a")
	mkdir := func() nfsv4.Nfsstat4 {
		_, status := w.leader.Mkdir(t.Context(), operations.MkdirRequest{Parent: w.entry(t, "s", "p"), Name: "a", Mode: 0o755})
		return status
	}
	if status := mkdir(); status != nfsv4.NFS4ERR_DELAY {
		t.Errorf("as long as it is not known, a client gets %v", status)
	}
	w.leader.Tree.SetExport(exportOn("fs-1"))
	if status := mkdir(); status != nfsv4.NFS4_OK {
		t.Errorf("when no data server has it, a client gets %v", status)
	}
}

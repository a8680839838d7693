package namespace

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// deleteDirectories deletes ShareDirectories as with kubectl.
func (w *world) deleteDirectories() {
	w.t.Helper()
	if err := w.api.DeleteAllOf(w.t.Context(), &internalv1.ShareDirectory{}, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) mkdir(mount *nfs.Client, path string) {
	w.t.Helper()
	err := asKernelsDo(func() error {
		return mount.Mkdir(w.t.Context(), user, path, nfs.MkdirOptions{Mode: 0o777})
	})
	if err != nil {
		w.t.Fatalf("mkdir %s: %v", path, err)
	}
}

func TestLostShareDirectoriesComeBackWhereTheDataIs(t *testing.T) {
	w := newWorld(t, 3)
	w.share("data", 2)
	mount := w.mount(w.serve("a"))
	w.serve("b")
	const n = 12
	for i := range n {
		path := fmt.Sprintf("/data/p%d", i%2)
		if i < 2 {
			w.mkdir(mount, path)
		}
		w.mkdir(mount, fmt.Sprintf("%s/d%d", path, i))
	}
	before := map[string]string{}
	for i := range n {
		path := fmt.Sprintf("p%d/d%d", i%2, i)
		before[path] = w.directory("data", path).Spec.DataServerRef.Name
	}
	w.deleteDirectories()
	began := time.Now()
	for path, server := range before {
		w.eventually(path+" is back", func() bool {
			o := w.directory("data", path)
			return o != nil && o.State() == internalv1.DirectoryReady
		})
		if o := w.directory("data", path); o.Spec.DataServerRef.Name != server {
			t.Errorf("%s was on %s and its ShareDirectory says %s", path, server, o.Spec.DataServerRef.Name)
		}
	}
	w.eventually("the directories above are back", func() bool { return w.directory("data", "p0") != nil && w.directory("data", "p1") != nil })
	t.Logf("%d ShareDirectories were back %v after all were deleted", n, time.Since(began).Round(time.Millisecond))

	// One alone, and one above the depth.
	for _, path := range []string{"p1/d3", "p0"} {
		if err := w.api.Delete(t.Context(), w.directory("data", path)); err != nil {
			t.Fatal(err)
		}
		w.eventually(path+" is back", func() bool { return w.directory("data", path) != nil })
	}
}

func TestAMkdirGetsADirectoryWhoseShareDirectoryWasLostWhereItIs(t *testing.T) {
	w := newWorld(t, 3)
	w.share("data", 1)
	mount := w.mount(w.serve("a"))
	for i := range 3 {
		w.mkdir(mount, fmt.Sprintf("/data/d%d", i))
	}
	server := w.directory("data", "d0").Spec.DataServerRef.Name
	w.deleteDirectories()
	err := asKernelsDo(func() error { return mount.Mkdir(t.Context(), user, "/data/d0", nfs.MkdirOptions{Mode: 0o755}) })
	if !nfs.IsStatus(err, nfsv4.NFS4ERR_EXIST) {
		t.Errorf("mkdir of a directory that exists gives %v", err)
	}
	w.eventually("d0 has a ShareDirectory", func() bool { return w.directory("data", "d0") != nil })
	if now := w.directory("data", "d0").Spec.DataServerRef.Name; now != server {
		t.Errorf("d0 is on %s and its ShareDirectory names %s", server, now)
	}
	if n := len(w.ownersOf("data", "d0")); n != 1 {
		t.Errorf("d0 is on %d data servers", n)
	}
}

// A directory moves to another data server, and clients wait for it: it has another name. Its ShareDirectory is deleted then, and a client makes a directory of
// its name. Nothing empty takes its place.
func TestAMkdirWaitsForADirectoryThatMovesAndWhoseShareDirectoryWasLost(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 1)
	mount := w.mount(w.serve("a"))
	w.mkdir(mount, "/data/d0")
	const hidden = "/data/0/" + naming.MovingPrefix + "0d5e8f6a-7c3b-4b7e-9a51-2f1f5d7e8c90"
	w.owners[0].Freeze("/data/0/d0", true)
	w.owners[0].Put(hidden, ownertest.Directory{Mode: 0o755})
	w.owners[0].Drop("/data/0/d0")
	w.deleteDirectories()
	w.eventually("the namespace server sees it", func() bool { return w.waits(mount, "/data/d0") })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	err := mount.Mkdir(ctx, user, "/data/d0", nfs.MkdirOptions{Mode: 0o755}) // It goes on as long as its context lasts.
	cancel()
	if _, made := w.owners[0].Get("/data/0/d0"); err == nil || made {
		t.Errorf("an empty directory is in the place of one that moves: %v", err)
	}
	// The data server gives it its name back.
	w.owners[0].Drop(hidden)
	w.owners[0].Put("/data/0/d0", ownertest.Directory{Mode: 0o755})
	w.owners[0].Freeze("/data/0/d0", false)
	w.eventually("it is in the namespace again", func() bool {
		o := w.directory("data", "d0")
		return o != nil && o.State() == internalv1.DirectoryReady
	})
}

// A share that was made again over kept data: as long as a data server was not looked at, its names are not given away.
func TestAMkdirWaitsUntilTheDataServersWereLookedAt(t *testing.T) {
	w := newWorld(t, 2)
	share := w.share("data", 1)
	share.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.FileShareInventoried, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInventoryPending,
		Message: "waiting for fs-1", LastTransitionTime: metav1.Now(),
	}}
	if err := w.api.Status().Update(t.Context(), share); err != nil {
		t.Fatal(err)
	}
	w.owners[1].Put("/data/0/kept", ownertest.Directory{Mode: 0o777})
	w.owners[1].Hide("/data/0", true)
	mount := w.mount(w.serve("a"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	err := mount.Mkdir(ctx, user, "/data/kept", nfs.MkdirOptions{Mode: 0o755}) // It goes on as long as its context lasts.
	cancel()
	if err == nil || nfs.IsStatus(err, nfsv4.NFS4ERR_EXIST) {
		t.Errorf("mkdir of a name that a data server may have gives %v", err)
	}
	if owners := w.ownersOf("data", "kept"); len(owners) != 1 || w.directory("data", "kept") != nil {
		t.Errorf("the directory is on data servers %v, with ShareDirectory %v", owners, w.directory("data", "kept"))
	}
	w.owners[1].Hide("/data/0", false)
	export := &internalv1.ShareExport{}
	w.eventually("the namespace server tells what fs-1 has", func() bool {
		err := w.api.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: naming.ShareExport("data", "fs-1")}, export)
		return err == nil && export.Status.Inventory.FileShareUID == string(share.UID)
	})
	if o := w.directory("data", "kept"); o == nil || o.Spec.DataServerRef.Name != "fs-1" {
		t.Errorf("fs-1 was looked at, and the ShareDirectory of what it has is %v", o)
	}
	w.inventoried(share)
	w.eventually("mkdir works", func() bool {
		return mount.Mkdir(t.Context(), user, "/data/new", nfs.MkdirOptions{Mode: 0o755}) == nil
	})
}

// waits reports whether a client that looks for a path gets no answer in a second.
func (w *world) waits(mount *nfs.Client, path string) bool {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	_, err := mount.Stat(ctx, user, path)
	return errors.Is(err, context.DeadlineExceeded)
}

// A client that looks for a directory, or lists the one above it, while its ShareDirectory is lost waits: it never learns that it does not exist.
func TestClientsWaitForDirectoriesWhoseShareDirectoriesWereLost(t *testing.T) {
	w := newWorld(t, 3)
	w.share("data", 2)
	mount := w.mount(w.serve("a"))
	w.mkdir(mount, "/data/p")
	const n = 6
	for i := range n {
		w.mkdir(mount, fmt.Sprintf("/data/p/d%d", i))
	}
	looks := 0
	look := func() {
		looks++
		for i := range n {
			path := fmt.Sprintf("/data/p/d%d", i)
			err := asKernelsDo(func() error { _, err := mount.Stat(t.Context(), user, path); return err })
			if err != nil && !nfs.IsStatus(err, nfsv4.NFS4ERR_STALE) { // STALE: what is above it came back as another directory.
				t.Errorf("%s: %v", path, err)
			}
		}
		for _, dir := range []struct {
			path string
			want int
		}{{"/data", 1}, {"/data/p", n}} {
			var names []string
			err := asKernelsDo(func() error {
				names = nil
				return mount.Entries(t.Context(), user, dir.path, func(e nfs.DirEntry) bool { names = append(names, e.Name); return true })
			})
			if !nfs.IsStatus(err, nfsv4.NFS4ERR_STALE) && (err != nil || len(names) != dir.want) {
				t.Errorf("%s has %v: %v", dir.path, names, err)
			}
		}
	}
	look()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				look()
			}
		}
	}()
	w.deleteDirectories()
	for i := range n {
		w.eventually("d is back", func() bool {
			o := w.directory("data", fmt.Sprintf("p/d%d", i))
			return o != nil && o.State() == internalv1.DirectoryReady
		})
	}
	close(stop)
	<-done
	look()
	t.Logf("looked %d times", looks)
}

// One that exists nowhere is missing at once, and is looked for once: no client waits for the leader.
func TestALostDirectoryThatExistsNowhereIsMissing(t *testing.T) {
	w := newWorld(t, 2)
	w.share("data", 1)
	mount := w.mount(w.serve("a"))
	w.mkdir(mount, "/data/gone")
	owner := w.ownersOf("data", "gone")[0]
	w.owners[owner].Drop("/data/0/gone")
	w.deleteDirectories()
	w.eventually("it is missing", func() bool {
		_, err := mount.Stat(t.Context(), user, "/data/gone")
		return nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT)
	})
}

// A data server that does not tell may have it: the client waits, and so does one that lists.
func TestALostDirectoryOfADataServerThatDoesNotAnswerIsAwaited(t *testing.T) {
	w := newWorld(t, 2)
	w.share("data", 1)
	mount := w.mount(w.serve("a"))
	w.mkdir(mount, "/data/d")
	owner := w.ownersOf("data", "d")[0]
	w.owners[owner].Hide("/data/0", true)
	w.deleteDirectories()
	w.eventually("the namespace server sees it", func() bool { return w.waits(mount, "/data/d") })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	err := mount.Entries(ctx, user, "/data", func(nfs.DirEntry) bool { return true })
	cancel()
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a list of the directory gives %v", err)
	}
	if _, err := mount.Stat(t.Context(), user, "/data/other"); !nfs.IsStatus(err, nfsv4.NFS4ERR_NOENT) {
		t.Errorf("another name gives %v", err)
	}
	w.owners[owner].Hide("/data/0", false)
	w.eventually("it is back", func() bool {
		_, err := mount.Stat(t.Context(), user, "/data/d")
		return err == nil
	})
}

package namespace

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

var user = nfs.Credentials{UID: 1000, GID: 1000}

// asKernelsDo repeats what a kernel would repeat.
func asKernelsDo(f func() error) error {
	for {
		err := f()
		if !nfs.IsStatus(err, nfsv4.NFS4ERR_DELAY) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestTwoServersMakeTwoThousandDirectoriesAtTheSameTime(t *testing.T) {
	const names, sharedByBoth, perServer = 2000, 800, 8
	w := newWorld(t, 3)
	w.share("data", 1)
	mounts := []*nfs.Client{w.mount(w.serve("a")), w.mount(w.serve("b"))}

	var made, existed atomic.Int64
	var winners [names]atomic.Int64
	var workers sync.WaitGroup
	began := time.Now()
	for m, mount := range mounts {
		// Each makes its own names, and those in the middle are made by both, in another order.
		var mine []int
		for i := range names {
			alone := (names - sharedByBoth) / 2
			if m == 0 && i < alone+sharedByBoth || m == 1 && i >= alone {
				mine = append(mine, i)
			}
		}
		rand.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		for k := range perServer {
			workers.Go(func() {
				for j := k; j < len(mine); j += perServer {
					path := fmt.Sprintf("/data/d%04d", mine[j])
					err := asKernelsDo(func() error { return mount.Mkdir(t.Context(), user, path, nfs.MkdirOptions{Mode: 0o755}) })
					switch {
					case err == nil:
						made.Add(1)
						winners[mine[j]].Add(1)
					case nfs.IsStatus(err, nfsv4.NFS4ERR_EXIST):
						existed.Add(1)
					default:
						t.Errorf("mkdir %s: %v", path, err)
					}
				}
			})
		}
	}
	workers.Wait()
	took := time.Since(began)
	t.Logf("%d mkdirs by 2 servers, %d made, %d existed, in %v: %.0f made/s", names+sharedByBoth, made.Load(), existed.Load(),
		took.Round(time.Millisecond), float64(made.Load())/took.Seconds())

	if made.Load() != names || existed.Load() != sharedByBoth {
		t.Errorf("%d were made and %d existed, want %d and %d", made.Load(), existed.Load(), names, sharedByBoth)
	}
	var perOwner []int
	for i, owner := range w.owners {
		n := len(owner.Names("/data/0"))
		perOwner = append(perOwner, n)
		if n < names/3-30 || n > names/3+30 {
			t.Errorf("data server %d has %d directories, want about %d", i, n, names/3)
		}
	}
	t.Logf("per data server: %v", perOwner)
	for i := range names {
		if n := winners[i].Load(); n != 1 {
			t.Errorf("directory %d was made %d times", i, n)
		}
		if owners := w.ownersOf("data", fmt.Sprintf("d%04d", i)); len(owners) != 1 {
			t.Errorf("directory %d exists on data servers %v", i, owners)
		}
	}
	w.eventually("all ShareDirectories are Ready", func() bool { // It is written behind the answer.
		list := &internalv1.ShareDirectoryList{}
		if err := w.api.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(list.Items, func(r internalv1.ShareDirectory) bool { return r.State() != internalv1.DirectoryReady })
	})
	for i, mount := range mounts {
		w.eventually(fmt.Sprintf("server %d lists all directories", i), func() bool {
			entries, err := mount.ReadDir(t.Context(), user, "/data")
			return err == nil && len(entries) == names
		})
	}
}

func TestDeclaredDirectoriesAreMadeWhenTheirOwnerBeginsToServe(t *testing.T) {
	w := newWorld(t, 2)
	mount := w.mount(w.serve("a"))
	share := &v1alpha1.FileShare{}
	share.Name, share.Namespace = "data", w.namespace
	share.Spec = v1alpha1.FileShareSpec{FileServerRef: v1alpha1.FileServerReference{Name: fileServer}, Path: "/data", Depth: 2}
	w.create(share)
	for i := range 6 {
		w.declare(share, fmt.Sprintf("train/%d", i), i%2)
	}
	if err := asKernelsDo(func() error { _, err := mount.Stat(t.Context(), user, "/data"); return err }); err != nil {
		t.Fatal(err)
	}
	for i, owner := range w.owners {
		owner.Put("/data/0", ownertest.Directory{Mode: 0o755})
		w.serves(i, "data")
	}
	began := time.Now()
	w.eventually("all directories are listed", func() bool {
		entries, err := mount.ReadDir(t.Context(), user, "/data/train")
		return err == nil && len(entries) == 6
	})
	t.Logf("6 directories were listed %v after the exports served", time.Since(began).Round(time.Millisecond))
	d, _ := w.owners[0].Get("/data/0/train/0")
	if want := (ownertest.Directory{Owner: 7, Group: 8, Mode: 0o750}); d != want {
		t.Errorf("the directory is %+v on its owner, want %+v", d, want)
	}
}

func TestDirectoriesAreRemovedAndRenamedOnTheirOwner(t *testing.T) {
	w := newWorld(t, 3)
	w.share("data", 2)
	server := w.serve("a")
	mount, client := w.mount(server), boot(t, server.address)
	do := func(what string, want nfsv4.Nfsstat4, got nfsv4.Nfsstat4) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, nfs.StatusName(got), nfs.StatusName(want))
		}
	}
	mkdir := func(path string) nfsv4.Nfsstat4 { return client.mkdir(user, path) }
	rmdir := func(path string) nfsv4.Nfsstat4 { return client.rmdir(user, path) }
	rename := func(from, to string) nfsv4.Nfsstat4 { return client.rename(user, from, to) }
	do("mkdir above the depth", nfsv4.NFS4_OK, mkdir("/data/train"))
	do("mkdir above the depth", nfsv4.NFS4_OK, mkdir("/data/valid"))
	do("mkdir again", nfsv4.NFS4ERR_EXIST, mkdir("/data/train"))
	do("mkdir at the depth", nfsv4.NFS4_OK, mkdir("/data/train/a"))
	do("mkdir at the depth", nfsv4.NFS4_OK, mkdir("/data/train/b"))
	do("mkdir outside shares", nfsv4.NFS4ERR_ROFS, mkdir("/other"))
	do("rmdir of what has directories", nfsv4.NFS4ERR_NOTEMPTY, rmdir("/data/train"))
	do("rmdir of what is not", nfsv4.NFS4ERR_NOENT, rmdir("/data/train/x"))
	do("rmdir of a share", nfsv4.NFS4ERR_ROFS, rmdir("/data"))

	owner := w.owners[w.ownersOf("data", "train/a")[0]]
	owner.Put("/data/0/train/a/file", ownertest.Directory{})
	do("rmdir of a directory with content", nfsv4.NFS4ERR_NOTEMPTY, rmdir("/data/train/a"))
	if r := w.directory("data", "train/a"); r == nil || r.State() != internalv1.DirectoryReady {
		t.Errorf("after a refused rmdir the ShareDirectory is %+v", r)
	}
	do("rename onto a directory with content", nfsv4.NFS4ERR_EXIST, rename("/data/train/b", "/data/train/a"))
	do("rename onto a directory with directories", nfsv4.NFS4ERR_EXIST, rename("/data/valid", "/data/train"))
	do("mkdir", nfsv4.NFS4_OK, mkdir("/data/train/c"))
	do("rename onto an empty directory", nfsv4.NFS4_OK, rename("/data/train/a", "/data/train/c"))
	if _, ok := owner.Get("/data/0/train/c/file"); !ok || w.directory("data", "train/a") != nil {
		t.Errorf("the owner has %v in train after the rename", owner.Names("/data/0/train"))
	}
	do("rename back", nfsv4.NFS4_OK, rename("/data/train/c", "/data/train/a"))
	do("rename to another level", nfsv4.NFS4ERR_PERM, rename("/data/train/a", "/data/a"))
	do("rename into another directory", nfsv4.NFS4_OK, rename("/data/train/a", "/data/valid/z"))
	if _, ok := owner.Get("/data/0/valid/z/file"); !ok {
		t.Errorf("the owner has %v in valid after the rename", owner.Names("/data/0/valid"))
	}
	if w.directory("data", "train/a") != nil {
		t.Error("the ShareDirectory of the old name is still there")
	}
	if r := w.directory("data", "valid/z"); r == nil || r.State() != internalv1.DirectoryReady {
		t.Errorf("the ShareDirectory of the new name is %+v", r)
	}
	do("rmdir of an empty directory", nfsv4.NFS4_OK, rmdir("/data/train/b"))
	do("rmdir above the depth", nfsv4.NFS4_OK, rmdir("/data/train"))
	for i := range w.owners {
		if slices.Contains(w.owners[i].Names("/data/0"), "train") {
			t.Errorf("data server %d still has train", i)
		}
	}
	do("mkdir of what was removed", nfsv4.NFS4_OK, mkdir("/data/train"))
	entries, err := mount.ReadDir(t.Context(), user, "/data")
	if err != nil || len(entries) != 2 {
		t.Errorf("the share has %v, %v", entries, err)
	}
}

func TestLostShareDirectoriesAreWrittenAgainFromWhatTheOwnersHave(t *testing.T) {
	w := newWorld(t, 2)
	for i := range 300 {
		w.owners[i%2].Put(fmt.Sprintf("/data/0/train/%03d", i), ownertest.Directory{Owner: 5, Group: 6, Mode: 0o701})
	}
	w.owners[0].Put("/data/0/.howdah/x", ownertest.Directory{})
	w.share("data", 2)
	mount := w.mount(w.serve("a"))
	w.eventually("all directories have ShareDirectories", func() bool {
		entries, err := mount.ReadDir(t.Context(), user, "/data/train")
		return err == nil && len(entries) == 300
	})
	r := tree.NewDirectory(w.directory("data", "train/007"))
	if r.Server != "fs-1" || r.Owner != 5 || r.Group != 6 || r.Mode != 0o701 || r.State != internalv1.DirectoryReady {
		t.Errorf("the ShareDirectory is %+v", r)
	}
	if w.directory("data", "train") == nil {
		t.Error("the directory above has no ShareDirectory")
	}
	if w.directory("data", ".howdah/x") != nil || w.directory("data", ".howdah") != nil {
		t.Error("Howdah's own directory was taken for data")
	}
}

func TestTheLeaderRemovesADirectoryForTheOperatorIfItIsEmpty(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 1)
	mount := w.mount(w.serve("a"))
	for _, name := range []string{"empty", "full"} {
		if err := asKernelsDo(func() error { return mount.Mkdir(t.Context(), user, "/data/"+name, nfs.MkdirOptions{Mode: 0o755}) }); err != nil {
			t.Fatal(err)
		}
	}
	w.owners[0].Put("/data/0/full/file", ownertest.Directory{})
	for _, name := range []string{"empty", "full"} {
		r := w.directory("data", name)
		r.Spec.Removal = internalv1.RemovalWhenEmpty
		if err := w.api.Update(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("the empty one is gone and the full one is known to hold data", func() bool {
		full := w.directory("data", "full")
		return w.directory("data", "empty") == nil && full != nil && full.Status.RemovalRefusedTime != nil
	})
	if got := w.owners[0].Names("/data/0"); !slices.Equal(got, []string{"full"}) {
		t.Errorf("the owner has %v", got)
	}
}

func TestAShareTakesAsManyDirectoriesAsItMayHave(t *testing.T) {
	w := newWorld(t, 1)
	for i := range 5 { // they exist without ShareDirectories
		w.owners[0].Put(fmt.Sprintf("/data/0/old%d", i), ownertest.Directory{Mode: 0o755})
	}
	share := w.share("data", 1)
	share.Spec.MaxDirectories = 3
	if err := w.api.Update(t.Context(), share); err != nil {
		t.Fatal(err)
	}
	server := w.serve("a")
	mount := w.mount(server)
	listed := func() int {
		entries, err := mount.ReadDir(t.Context(), user, "/data")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	mkdir := func(name string) error {
		return asKernelsDo(func() error { return mount.Mkdir(t.Context(), user, "/data/"+name, nfs.MkdirOptions{Mode: 0o755}) })
	}
	// The leader writes ShareDirectories of a volume several at a time, so a few more than the limit can come to be.
	w.eventually("what is there is adopted up to the limit", func() bool { return listed() >= 3 })
	if err := mkdir("new"); !nfs.IsStatus(err, nfsv4.NFS4ERR_DQUOT) {
		t.Errorf("mkdir of one more directory than the share may have: %v, want NFS4ERR_DQUOT", err)
	}
	if len(w.ownersOf("data", "new")) != 0 {
		t.Error("the directory that was refused exists on its owner")
	}
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(share), share); err != nil {
		t.Fatal(err)
	}
	share.Spec.MaxDirectories = 6
	if err := w.api.Update(t.Context(), share); err != nil {
		t.Fatal(err)
	}
	w.eventually("all are adopted when there is room", func() bool { return listed() == 5 })
	// All five may have been adopted at the first limit already, so the namespace server may not know the new one yet.
	w.eventually("there is room for one more", func() bool { return mkdir("new") == nil })
	if err := mkdir("newer"); !nfs.IsStatus(err, nfsv4.NFS4ERR_DQUOT) {
		t.Errorf("mkdir above the new limit: %v, want NFS4ERR_DQUOT", err)
	}
	if status := boot(t, server.address).rmdir(user, "/data/new"); status != nfsv4.NFS4_OK {
		t.Fatal(nfs.StatusName(status))
	}
	if err := mkdir("newer"); err != nil {
		t.Errorf("after a removal: %v", err)
	}
}

// A ResourceQuota of the FileServer's Kubernetes namespace can bound ShareDirectories, too. A mkdir beyond it fails as one beyond Howdah's own limits does.
func TestAMkdirEndsAtAResourceQuota(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 1)
	mount := w.mount(w.serve("a"))
	few := corev1.ResourceList{"count/sharedirectories.internal.howdah.io": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: few}}
	w.create(quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: few, Used: few}
	if err := w.api.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := asKernelsDo(func() error { return mount.Mkdir(ctx, user, "/data/new", nfs.MkdirOptions{Mode: 0o755}) })
	if !nfs.IsStatus(err, nfsv4.NFS4ERR_DQUOT) {
		t.Errorf("mkdir: %v, want NFS4ERR_DQUOT", err)
	}
	if err := w.api.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	w.eventually("it is made without the quota", func() bool {
		return asKernelsDo(func() error { return mount.Mkdir(t.Context(), user, "/data/new", nfs.MkdirOptions{Mode: 0o755}) }) == nil
	})
}

// This is what makes everything that comes after mkdir work with Linux (operations/fresh.go, test/kernels).
func TestADirectoryThatWasJustMadeIsAnotherFileSystemsRootToItsMakerAndAReferralOnceItIsEntered(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 1)
	k := boot(t, w.serve("a").address)
	ask := func(bits ...int) *nfsv4.NfsArgop4_OP_GETATTR {
		var request uint32
		for _, bit := range bits {
			request |= 1 << bit
		}
		return &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{request}}}
	}
	attributes := func(res nfsv4.NfsResop4) []byte {
		return res.(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes.AttrVals
	}
	look := []nfsv4.NfsArgop4{&nfsv4.NfsArgop4_OP_GETFH{}, ask(nfsv4.FATTR4_TYPE, nfsv4.FATTR4_FSID)}
	create := &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: "d"}}
	res, status := k.try(user, slices.Concat(walk("/data"), []nfsv4.NfsArgop4{create}, look)...)
	if status != nfsv4.NFS4_OK {
		t.Fatalf("CREATE, GETFH, GETATTR: %s", nfs.StatusName(status))
	}
	handle := res[3].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
	created := attributes(res[4])
	res, _ = k.try(user, append(walk("/data"), look[1])...)
	if bytes.Equal(created, attributes(res[2])) {
		t.Error("the new directory has the fsid of the namespace: Linux would not mount its data server there")
	}
	res, status = k.try(user, append(walk("/data/d"), look...)...)
	if status != nfsv4.NFS4_OK {
		t.Fatalf("LOOKUP, GETFH, GETATTR by its maker: %s", nfs.StatusName(status))
	}
	again := res[3].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
	if !bytes.Equal(handle, again) || !bytes.Equal(created, attributes(res[4])) {
		t.Error("LOOKUP by its maker shows another directory than CREATE: Linux would drop the first one")
	}
	through := &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}}
	if _, status := k.try(user, through, look[1]); status != nfsv4.NFS4_OK {
		t.Errorf("GETATTR of the new directory: %s", nfs.StatusName(status))
	}
	if _, status := k.try(user, through, ask(nfsv4.FATTR4_SUPPORTED_ATTRS)); status != nfsv4.NFS4ERR_STALE {
		t.Errorf("who mounts the new directory from here gets %s, want NFS4ERR_STALE", nfs.StatusName(status))
	}
	if _, status := k.try(user, append(walk("/data/d"), look...)...); status != nfsv4.NFS4ERR_STALE {
		t.Errorf("LOOKUP while it is entered: %s, want NFS4ERR_STALE: drop it, and walk again", nfs.StatusName(status))
	}
	if _, status := k.try(user, append(walk("/data/d"), look...)...); status != nfsv4.NFS4ERR_MOVED {
		t.Errorf("LOOKUP, GETFH of the entered directory: %s, want NFS4ERR_MOVED", nfs.StatusName(status))
	}
	if _, status := k.try(user, through, look[1]); status != nfsv4.NFS4_OK {
		t.Errorf("GETATTR by who opened it before: %s", nfs.StatusName(status))
	}
	for name, op := range map[string]nfsv4.NfsArgop4{
		"LOOKUP":  &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: "x"}},
		"CREATE":  create,
		"READDIR": &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: nfsv4.Readdir4args{Maxcount: 4096}},
	} {
		if _, status := k.try(user, through, op); status != nfsv4.NFS4ERR_STALE {
			t.Errorf("%s in the new directory: %s, want NFS4ERR_STALE", name, nfs.StatusName(status))
		}
	}
	res, status = k.try(user, append(walk("/data/d"), ask(nfsv4.FATTR4_FS_LOCATIONS))...)
	if status != nfsv4.NFS4_OK {
		t.Fatalf("GETATTR of fs_locations: %s", nfs.StatusName(status))
	}
	values := res[3].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes.AttrVals
	var got nfsv4.FsLocations4
	if _, err := got.ReadFrom(bytes.NewReader(values)); err != nil {
		t.Fatal(err)
	}
	want := nfsv4.FsLocations4{
		FsRoot:    []string{"data", "d"},
		Locations: []nfsv4.FsLocation4{{Server: []string{w.owners[0].Address}, Rootpath: []string{"data", "0", "d"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fs_locations (-want +got):\n%s", diff)
	}
}

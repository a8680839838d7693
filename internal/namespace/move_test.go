package namespace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
	"github.com/howdah/howdah/internal/nfs4/session"
)

func TestADirectoryIsRenamedWithAllThatIsInIt(t *testing.T) {
	w := newWorld(t, 3)
	w.share("data", 3)
	a, b := boot(t, w.serve("a").address), boot(t, w.serve("b").address)
	paths := []string{"p", "p/s", "p/t", "p/empty"}
	for i := range 12 {
		paths = append(paths, fmt.Sprintf("p/%c/%d", "st"[i%2], i))
	}
	for _, path := range paths {
		want(t, "mkdir "+path, nfsv4.NFS4_OK, a.mkdir(user, "/data/"+path))
		for _, i := range w.ownersOf("data", path) {
			if strings.Count(path, "/") == 2 {
				w.owners[i].Put("/data/0/"+path+"/file", ownertest.Directory{})
			}
		}
	}
	top, inner := a.handle(user, "/data/p"), a.handle(user, "/data/p/s")

	want(t, "rename", nfsv4.NFS4_OK, a.rename(user, "/data/p", "/data/q"))

	var want []string
	for _, path := range paths {
		want = append(want, "q"+path[1:])
	}
	slices.Sort(want)
	list := &internalv1.ShareDirectoryList{}
	if err := w.api.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range list.Items {
		if r.Spec.Path == "." { // the root: something was removed from it
			continue
		}
		got = append(got, r.Spec.Path)
		if r.State() != internalv1.DirectoryReady {
			t.Errorf("%s is %s", r.Spec.Path, r.State())
		}
		if strings.Count(r.Spec.Path, "/") < 2 {
			continue
		}
		if owners := w.ownersOf("data", r.Spec.Path+"/file"); len(owners) != 1 {
			t.Errorf("what is in %s is on data servers %v", r.Spec.Path, owners)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the directories are %v, want %v", got, want)
	}
	for i, owner := range w.owners {
		if names := owner.Names("/data/0"); slices.Contains(names, "p") {
			t.Errorf("data server %d has %v", i, names)
		}
	}
	for name, k := range map[string]*kernel{"the server that renamed": a, "the other": b} {
		w.eventually(name+" knows it", func() bool {
			_, status := k.try(user, append(walk("/data"), &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: "p"}})...)
			return status == nfsv4.NFS4ERR_NOENT && k.use(user, top) == nfsv4.NFS4_OK && k.use(user, inner) == nfsv4.NFS4_OK
		})
		if now := k.handle(user, "/data/q/s"); string(now) != string(inner) {
			t.Errorf("%s gives q/s the handle %x, as p/s it had %x", name, now, inner)
		}
	}
}

func TestADirectoryIsNotRenamedWhileADataServerIsAwayThatHasSomethingBelowIt(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 2)
	server := w.serve("a")
	k := boot(t, server.address)
	want(t, "mkdir", nfsv4.NFS4_OK, k.mkdir(user, "/data/p"))
	want(t, "mkdir", nfsv4.NFS4_OK, k.mkdir(user, "/data/p/a"))
	w.setReady(0, metav1.ConditionFalse)
	w.eventually("the server knows that the data server is away", func() bool {
		// The maker of a directory that was not entered yet sees it whatever its data server does: so it is entered.
		res := k.do(user, append(walk("/data/p/a"),
			&nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: []uint32{1 << nfsv4.FATTR4_FS_LOCATIONS}}})...)
		return session.StatusOf(res[len(res)-1]) == nfsv4.NFS4ERR_DELAY
	})
	res := k.do(user, append(walk("/data"), &nfsv4.NfsArgop4_OP_SAVEFH{},
		&nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: "p", Newname: "q"}})...)
	want(t, "rename", nfsv4.NFS4ERR_DELAY, session.StatusOf(res[len(res)-1]))
	if w.directory("data", "q") != nil || w.directory("data", "p") == nil {
		t.Error("the rename was begun")
	}
	w.setReady(0, metav1.ConditionTrue)
	want(t, "rename when it is back", nfsv4.NFS4_OK, k.rename(user, "/data/p", "/data/q"))
}

// A ShareDirectory holds a path of 1,024 characters. A rename that would give a directory a longer one, or one below it, is refused before anything is done.
func TestADirectoryIsNotRenamedToAPathThatIsTooLong(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 5)
	k := boot(t, w.serve("a").address)
	long := strings.Repeat("x", 255)
	path := "/data/p"
	want(t, "mkdir "+path, nfsv4.NFS4_OK, k.mkdir(user, path))
	for range 3 {
		path += "/" + long
		want(t, "mkdir of the next level", nfsv4.NFS4_OK, k.mkdir(user, path))
	}
	leaf := path + "/" + strings.Repeat("y", 200)
	want(t, "mkdir of the last level", nfsv4.NFS4_OK, k.mkdir(user, leaf))
	want(t, "mkdir of a path that is too long", nfsv4.NFS4ERR_NAMETOOLONG, k.mkdir(user, path+"/"+long))
	want(t, "mkdir of an empty directory", nfsv4.NFS4_OK, k.mkdir(user, "/data/"+long))

	want(t, "rename of the directory itself", nfsv4.NFS4ERR_NAMETOOLONG, k.rename(user, leaf, path+"/"+long))
	res := k.do(user, append(walk("/data"), &nfsv4.NfsArgop4_OP_SAVEFH{},
		&nfsv4.NfsArgop4_OP_RENAME{Oprename: nfsv4.Rename4args{Oldname: "p", Newname: long}})...)
	want(t, "rename of the one above all", nfsv4.NFS4ERR_NAMETOOLONG, session.StatusOf(res[len(res)-1]))
	if w.directory("data", long) == nil {
		t.Error("the empty directory that was to be replaced is gone")
	}
	for _, path := range []string{"p", strings.TrimPrefix(leaf, "/data/")} {
		if o := w.directory("data", path); o == nil || o.State() != internalv1.DirectoryReady {
			t.Errorf("a directory with a path of %d characters is not what it was: %v", len(path), o)
		}
	}
	want(t, "rename to a short name", nfsv4.NFS4_OK, k.rename(user, "/data/p", "/data/q"))
}

package namespace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
)

// pairs are two directories of a share, the first with a file: on one data server, and on two.
func (w *world) pairs(k *kernel, share string) (one, two [2]string) {
	w.t.Helper()
	byOwner := map[int][]string{}
	for i := range 6 {
		path := fmt.Sprint("d", i)
		want(w.t, "mkdir "+path, nfsv4.NFS4_OK, k.mkdir(user, "/"+share+"/"+path))
		owner := w.ownersOf(share, path)[0]
		byOwner[owner] = append(byOwner[owner], path)
	}
	one, two = [2]string{byOwner[0][0], byOwner[0][1]}, [2]string{byOwner[0][2], byOwner[1][0]}
	w.owners[0].Put("/"+share+"/0/"+one[0]+"/file", ownertest.Directory{})
	w.owners[0].Put("/"+share+"/0/"+two[0]+"/file", ownertest.Directory{})
	return one, two
}

// rename(2) that fails changes nothing: the empty directory that it was to replace is the same one, with owner, mode and times.
func TestARenameThatADataServerRefusesLeavesWhatItWasToReplace(t *testing.T) {
	for place, pick := range map[string]func(one, two [2]string) [2]string{
		"on one data server": func(one, _ [2]string) [2]string { return one }, "on two": func(_, two [2]string) [2]string { return two },
	} {
		t.Run(place, func(t *testing.T) {
			w := newWorld(t, 2)
			w.share("data", 1)
			k := boot(t, w.serve("a").address)
			pair := pick(w.pairs(k, "data"))
			from, to := "/data/"+pair[0], "/data/"+pair[1]
			owner := w.owners[w.ownersOf("data", pair[1])[0]]
			owner.Put("/data/0/"+pair[1], ownertest.Directory{Mode: 0o2751, Owner: 1234, Group: 4321})
			before, object := k.handle(user, to), w.directory("data", pair[1])
			w.owners[0].Refuse(func(op, _ string) nfsv4.Nfsstat4 {
				if op == "RENAME" {
					return nfsv4.NFS4ERR_ACCESS
				}
				return nfsv4.NFS4_OK
			})
			want(t, "rename", nfsv4.NFS4ERR_ACCESS, k.rename(user, from, to))
			if d, ok := owner.Get("/data/0/" + pair[1]); !ok || d.Mode != 0o2751 || d.Owner != 1234 || d.Group != 4321 {
				t.Errorf("the data server has %+v (%v) in its place", d, ok)
			}
			if now := w.directory("data", pair[1]); now == nil || now.UID != object.UID || now.State() != internalv1.DirectoryReady || now.Status.ReplacedBy.Path != "" {
				t.Errorf("its ShareDirectory is %+v", now)
			}
			want(t, "the handle of the directory", nfsv4.NFS4_OK, k.use(user, before))
			if now := w.directory("data", pair[0]); now.State() != internalv1.DirectoryReady || now.Status.Replaces != "" {
				t.Errorf("the ShareDirectory of the other is %+v", now)
			}

			w.owners[0].Refuse(nil)
			moves := k.handle(user, from)
			want(t, "rename when it is allowed", nfsv4.NFS4_OK, k.rename(user, from, to))
			if got := w.ownersOf("data", pair[1]+"/file"); len(got) != 1 || got[0] != 0 {
				t.Errorf("the file is on %v", got)
			}
			if got := w.ownersOf("data", pair[1]); len(got) != 1 {
				t.Errorf("the directory is on %v", got)
			}
			if now := string(k.handle(user, to)); now != string(moves) {
				t.Errorf("it has another handle than before: %x", now)
			}
			want(t, "the handle of what it replaced", nfsv4.NFS4ERR_STALE, k.use(user, before))
			if now := w.directory("data", pair[1]); now.State() != internalv1.DirectoryReady || now.Status.ReplacedBy.Path != "" || now.Spec.RenamedFrom != pair[0] {
				t.Errorf("its ShareDirectory is %+v", now)
			}
			want(t, "mkdir of the old name", nfsv4.NFS4_OK, k.mkdir(user, from))
			want(t, "a second rename onto the same name", nfsv4.NFS4ERR_EXIST, k.rename(user, from, to))
		})
	}
}

// The data server of the empty directory may refuse its removal when the other was renamed already. That gets its old name back.
func TestARenameOntoADirectoryThatMayNotBeRemovedChangesNothing(t *testing.T) {
	w := newWorld(t, 2)
	w.share("data", 1)
	k := boot(t, w.serve("a").address)
	_, pair := w.pairs(k, "data")
	w.owners[1].Refuse(func(op, path string) nfsv4.Nfsstat4 {
		if op == "REMOVE" && strings.HasSuffix(path, pair[1]) {
			return nfsv4.NFS4ERR_ACCESS
		}
		return nfsv4.NFS4_OK
	})
	want(t, "rename", nfsv4.NFS4ERR_ACCESS, k.rename(user, "/data/"+pair[0], "/data/"+pair[1]))
	w.owners[1].Refuse(nil)
	w.owners[1].Put("/data/0/"+pair[1]+"/file", ownertest.Directory{})
	want(t, "rename onto one that is not empty", nfsv4.NFS4ERR_EXIST, k.rename(user, "/data/"+pair[0], "/data/"+pair[1]))
	for i, path := range pair {
		if got := w.ownersOf("data", path+"/file"); len(got) != 1 || got[0] != i {
			t.Errorf("the file of %s is on %v", path, got)
		}
		if got := w.ownersOf("data", path); len(got) != 1 || got[0] != i {
			t.Errorf("%s is on %v", path, got)
		}
		if now := w.directory("data", path); now.State() != internalv1.DirectoryReady {
			t.Errorf("%s is %s", path, now.State())
		}
	}
}

// A file handle is made from the identity. Only a rename that the status names gives an object another one.
func TestTheAPIRefusesAnotherIdentity(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 1)
	want(t, "mkdir", nfsv4.NFS4_OK, boot(t, w.serve("a").address).mkdir(user, "/data/d"))
	w.eventually("the ShareDirectory is Ready", func() bool { return w.directory("data", "d").State() == internalv1.DirectoryReady }) // It is written behind the answer.
	o := w.directory("data", "d")
	o.Spec.Identity = "0123456789abcdef"
	if err := w.api.Update(t.Context(), o); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "file handles") {
		t.Errorf("the API answers %v", err)
	}
}

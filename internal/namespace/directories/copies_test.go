package directories

import (
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/ownertest"
)

// A volume that was restored from a backup has directories above the depth with the modes of then.
func TestALookAtADataServerBringsItsCopies(t *testing.T) {
	w := newWorld(t, "", true)
	w.owner.Put("/s/0/p", ownertest.Directory{Owner: 5, Mode: 0o777})
	w.owner.Put("/s/0/p/a", ownertest.Directory{Mode: 0o777})
	w.know(t, left("p", internalv1.DirectoryReady, above), left("p/a", internalv1.DirectoryReady))
	w.inventory(t)
	if got, _ := w.owner.Get("/s/0/p"); got != (ownertest.Directory{Owner: 7, Group: 7, Mode: 0o750}) {
		t.Errorf("the copy is %+v", got)
	}
	if got, _ := w.owner.Get("/s/0/p/a"); got.Mode != 0o777 {
		t.Errorf("a directory at the depth is its data server's: %+v", got)
	}
}

// Another server changes the mode of a share's root while a data server gets the one from before, and this server has not heard of that: the data server has the mode
// that the API has.
func TestTheRootHasTheModeThatItHasByNow(t *testing.T) {
	w := newWorld(t, "", true)
	share, _ := w.leader.Tree.Share("s")
	top := left(".", internalv1.DirectoryReady, above)
	top.Spec.ShareAttributes = shareAttributes(share)
	w.know(t, top)
	w.owner.Refuse(func(op, path string) nfsv4.Nfsstat4 {
		if now := w.now(t, top); op == "SETATTR" && path == "/s/0" && now.Spec.Mode != "0700" {
			if now.Spec.Mode = "0700"; w.leader.Client.Update(t.Context(), now) != nil {
				t.Error("the mode is not changed")
			}
		}
		return nfsv4.NFS4_OK
	})
	w.inventory(t)
	if got, _ := w.owner.Get("/s/0"); got.Mode != 0o700 || got.Owner != 7 {
		t.Errorf("the root is %+v", got)
	}
}

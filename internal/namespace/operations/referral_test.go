package operations

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/google/go-cmp/cmp"

	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

func TestReferralsHaveOwnerAndTimesOfTheDirectory(t *testing.T) {
	asked := getattr(nfsv4.FATTR4_FS_LOCATIONS, nfsv4.FATTR4_TYPE, nfsv4.FATTR4_MODE, nfsv4.FATTR4_OWNER, nfsv4.FATTR4_OWNER_GROUP,
		nfsv4.FATTR4_TIME_ACCESS, nfsv4.FATTR4_TIME_METADATA, nfsv4.FATTR4_TIME_MODIFY, nfsv4.FATTR4_MOUNTED_ON_FILEID)
	moments := [3]time.Time{time.Unix(11, 1), time.Unix(12, 2), time.Unix(13, 3)}
	// Without fileid Linux takes another directory of the name for the one that it knows.
	locations := bitmapOf(nfsv4.FATTR4_FS_LOCATIONS, nfsv4.FATTR4_MOUNTED_ON_FILEID, nfsv4.FATTR4_FILEID)
	for name, tc := range map[string]struct {
		err    error
		status nfsv4.Nfsstat4
		given  []uint32
	}{
		"the data server answers":         {status: nfsv4.NFS4_OK, given: union(locations, shown)},
		"the data server refuses":         {err: &nfs.StatusError{Op: "LOOKUP", Status: nfsv4.NFS4ERR_NOENT}, status: nfsv4.NFS4_OK, given: locations},
		"the data server does not answer": {err: errors.New("no route to host"), status: nfsv4.NFS4ERR_DELAY},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.handler.Look = func(_ context.Context, target *tree.Target) (nfs.Attributes, error) {
				if target.Server != "fs-0" {
					t.Errorf("asked %s, not the owner", target.Server)
				}
				return nfs.Attributes{Owner: 7, Group: 8, Access: moments[0], Metadata: moments[1], Modify: moments[2]}, tc.err
			}
			res, status := w.do(alice, at("/open/plain/junction", asked)...)
			if status != tc.status {
				t.Fatalf("status %s, want %s", nfs.StatusName(status), nfs.StatusName(tc.status))
			}
			if status != nfsv4.NFS4_OK {
				return
			}
			got := res[len(res)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes
			if diff := cmp.Diff(trim(tc.given), trim(got.Attrmask)); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
			e, _ := w.handler.Tree.At("/open/plain/junction")
			var want values
			want.text("7")
			want.text("8")
			for _, moment := range moments {
				want.time(moment)
			}
			want.u64(e.ID.FileID())
			if tail := got.AttrVals[max(0, len(got.AttrVals)-want.Len()):]; tc.err == nil && !cmp.Equal(tail, want.Bytes()) {
				t.Errorf("owner and times are %x, want %x", tail, want.Bytes())
			}
		})
	}
}

// A directory moves to another data server, and the one before refuses it. Linux looks its name up again once, so it must not be sent there again.
func TestNoReferralLeadsToTheDataServerThatADirectoryHasLeft(t *testing.T) {
	left := &nfs.StatusError{Op: "LOOKUP", Status: nfsv4.NFS4ERR_STALE}
	asked := getattr(nfsv4.FATTR4_FS_LOCATIONS, nfsv4.FATTR4_OWNER, nfsv4.FATTR4_MOUNTED_ON_FILEID)
	for name, identity := range map[string]string{"with another identity": "another", "with the same identity": ""} {
		for why, err := range map[string]error{"has left": left, "answers": nil} {
			t.Run("it moves "+name+" while the data server is asked, which "+why, func(t *testing.T) {
				w := newWorld(t)
				w.handler.Look = func(_ context.Context, target *tree.Target) (nfs.Attributes, error) {
					if target.Server == "fs-0" {
						w.moveJunction("fs-1", identity)
						return nfs.Attributes{}, err
					}
					return nfs.Attributes{}, nil
				}
				if _, status := w.do(alice, at("/open/plain/junction", asked)...); status != nfsv4.NFS4ERR_DELAY {
					t.Errorf("a referral to what was the owner: %s", nfs.StatusName(status))
				}
				if _, status := w.do(alice, at("/open/plain/junction", asked)...); status != nfsv4.NFS4_OK {
					t.Errorf("afterwards: %s", nfs.StatusName(status))
				}
			})
		}
	}
	t.Run("this server does not know yet that it has moved", func(t *testing.T) {
		w := newWorld(t)
		w.handler.Look = func(_ context.Context, target *tree.Target) (nfs.Attributes, error) {
			if target.Server == "fs-0" {
				return nfs.Attributes{}, left
			}
			return nfs.Attributes{}, nil
		}
		for range 3 {
			if _, status := w.do(alice, at("/open/plain/junction", asked)...); status != nfsv4.NFS4ERR_DELAY {
				t.Errorf("before: %s", nfs.StatusName(status))
			}
		}
		w.moveJunction("fs-1", "another")
		if _, status := w.do(alice, at("/open/plain/junction", asked)...); status != nfsv4.NFS4_OK {
			t.Errorf("afterwards: %s", nfs.StatusName(status))
		}
	})
}

// Linux looks up again what it has not entered when the change attribute of the directory above is another.
func TestTheChangeAttributeOfADirectoryWithDirectoriesChangesWithTime(t *testing.T) {
	w := newWorld(t)
	change := func(path string) string {
		res, status := w.do(alice, at(path, getattr(nfsv4.FATTR4_CHANGE))...)
		if status != nfsv4.NFS4_OK {
			t.Fatal(nfs.StatusName(status))
		}
		return string(res[len(res)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes.AttrVals)
	}
	full, empty := change("/open/plain"), change("/open2")
	w.now = w.now.Add(changeEvery - time.Second)
	if change("/open/plain") != full {
		t.Errorf("it has changed before %s were over", changeEvery)
	}
	w.now = w.now.Add(time.Second)
	if change("/open/plain") == full {
		t.Errorf("it is the same after %s", changeEvery)
	}
	if change("/open2") != empty {
		t.Error("that of an empty directory changes, too")
	}
}

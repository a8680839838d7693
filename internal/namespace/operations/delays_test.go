package operations

import (
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// waiting is a client that asks for the same thing again and again, as a kernel does that gets NFS4ERR_DELAY.
type waiting struct {
	*world
	t   *testing.T
	ops ops
}

// expect lets time pass, and asks.
func (w *waiting) expect(what string, after time.Duration, want nfsv4.Nfsstat4) {
	w.t.Helper()
	w.now = w.now.Add(after)
	if _, got := w.do(alice, w.ops...); got != want {
		w.t.Fatalf("%s: %s, want %s", what, nfs.StatusName(got), nfs.StatusName(want))
	}
}

func TestALookupWaitsForAnOwnerThatDoesNotServe(t *testing.T) {
	w := &waiting{world: newWorld(t), t: t, ops: at("/open/plain/junction", getfh)}
	w.down["fs-0"] = true
	w.expect("when the owner is down", 0, nfsv4.NFS4ERR_DELAY)
	for range 3 * 60 / 15 {
		w.expect("within three minutes", 15*time.Second, nfsv4.NFS4ERR_DELAY)
	}
	w.expect("after a night", 8*time.Hour, nfsv4.NFS4ERR_DELAY)
	w.down["fs-0"] = false
	w.expect("when it is up", 0, nfsv4.NFS4ERR_MOVED)
}

func TestALookupWaitsForAnOwnerUpToTheLimit(t *testing.T) {
	w := &waiting{world: newWorld(t), t: t, ops: at("/open/plain/junction", getfh)}
	w.handler.delays.limit = time.Minute
	w.down["fs-0"] = true
	w.expect("when the owner is down", 0, nfsv4.NFS4ERR_DELAY)
	w.expect("after 59 s", 59*time.Second, nfsv4.NFS4ERR_DELAY)
	w.expect("after 60 s", time.Second, nfsv4.NFS4ERR_MOVED)
	w.down["fs-0"] = false
	w.expect("when it is up", 0, nfsv4.NFS4ERR_MOVED)
	w.down["fs-0"] = true
	w.expect("when it is down again", 0, nfsv4.NFS4ERR_DELAY)
	w.expect("after a long time without a request", time.Hour, nfsv4.NFS4ERR_DELAY)
}

func TestANameThatIsBeingMadeIsMissingAfterTheLimit(t *testing.T) {
	w := &waiting{world: newWorld(t), t: t, ops: at("/open/plain", lookup("making"))}
	w.expect("without a limit", time.Hour, nfsv4.NFS4ERR_DELAY)
	w.handler.delays.limit = time.Minute
	w.expect("with one", 0, nfsv4.NFS4ERR_DELAY)
	w.expect("after it", 61*time.Second, nfsv4.NFS4ERR_NOENT)
	w.handler.Tree.SetDirectory(directory("open", "plain/making", "fs-0", internalv1.DirectoryReady, 9))
	w.expect("when it is made", 0, nfsv4.NFS4_OK)
}

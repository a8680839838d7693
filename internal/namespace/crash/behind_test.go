package crash

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// cutReady cuts every attempt to set a path to Ready.
func (w *world) cutReady(path string, m mode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutting = func(_ int, _ *process, what string) mode {
		if what == "API status Ready "+path {
			return m
		}
		return fine
	}
}

func (w *world) cutNothing() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutting = func(int, *process, string) mode { return fine }
}

// A client has the answer to its mkdir, writes into the directory, and its namespace server dies before the ShareDirectory is Ready. Until the
// leader has finished it, other servers put clients off: none learns that it is not there, and none gets another one.
func TestADirectoryWhoseMakerDiedBehindTheAnswerIsNeverMissing(t *testing.T) {
	for _, m := range []mode{dieBefore, dieAfter} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, tree1)
			end := w.begin()
			time.Sleep(20 * time.Second)
			w.cutReady("p/n", m)
			if got := w.do(request{op: "mkdir", path: "p/n"}); got.status != nfsv4.NFS4_OK || got.repeated {
				t.Fatalf("mkdir: %v", got)
			}
			w.onServerOf("p/n", func(dirs map[string]string) { dirs["/s/0/p/n"], dirs["/s/0/p/n/.file"] = "mine", "mine" })
			time.Sleep(time.Second)
			w.cutNothing()
			other := w.serving(0)
			for range 20 {
				if status := send(other, request{op: "rmdir", path: "p/n/x"}); status == nfsv4.NFS4ERR_NOENT || status == nfsv4.NFS4ERR_STALE {
					t.Errorf("%s: on the way through the directory: %s", m, nfsv4.Nfsstat4_name[status])
				}
				time.Sleep(time.Second)
			}
			if got := w.do(request{op: "mkdir", path: "p/n"}); got.status != nfsv4.NFS4ERR_EXIST {
				t.Errorf("%s: made again: %s", m, nfsv4.Nfsstat4_name[got.status])
			}
			time.Sleep(quiet)
			if left := w.layout(); left["p/n"] != "mine" {
				t.Errorf("%s: there is %v", m, left)
			}
			if faults := w.faults(); len(faults) > 0 {
				t.Errorf("%s: %v", m, faults)
			}
			end()
		})
	}
}

// What a client has made is not made again, empty, on another volume: the share says that it is missing.
func TestADirectoryWhoseMakerDiedIsMissingOnAnotherVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, tree1)
		w.volumes("the-first-volume")
		end := w.begin()
		time.Sleep(20 * time.Second)
		w.cutReady("p/n", dieBefore)
		if got := w.do(request{op: "mkdir", path: "p/n"}); got.status != nfsv4.NFS4_OK {
			t.Fatalf("mkdir: %v", got)
		}
		time.Sleep(time.Second)
		w.cutNothing()
		w.onServerOf("p/n", func(dirs map[string]string) { delete(dirs, "/s/0/p/n") })
		w.volumes("another-volume")
		time.Sleep(quiet)
		for _, o := range w.api.all() {
			if o.Spec.Path == "p/n" && o.State() != internalv1.DirectoryMissing {
				t.Errorf("p/n is %s", o.State())
			}
		}
		if _, made := w.data.at(w.address(naming.DataServer("fs", 0)))["/s/0/p/n"]; made {
			t.Error("an empty directory was made in its place")
		}
		end()
	})
}

// While the API does not answer, directories that were made before are shown, and their ShareDirectories are Ready once it answers again.
func TestWritesThatAreBehindOutlastTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, tree1)
		end := w.begin()
		time.Sleep(20 * time.Second)
		w.mu.Lock()
		w.cutting = func(_ int, _ *process, what string) mode {
			if strings.HasPrefix(what, "API") && !strings.HasPrefix(what, "API create") && !strings.HasPrefix(what, "API get") {
				return refuse
			}
			return fine
		}
		w.mu.Unlock()
		if got := w.do(request{op: "mkdir", path: "p/n"}); got.status != nfsv4.NFS4_OK {
			t.Fatalf("mkdir: %s", nfsv4.Nfsstat4_name[got.status])
		}
		send(w.serving(0), request{op: "rmdir", path: "p/n/x"}) // Its maker enters it.
		for range 40 {
			time.Sleep(time.Second)
			if status := send(w.serving(0), request{op: "rmdir", path: "p/n/x"}); status != nfsv4.NFS4ERR_MOVED {
				t.Errorf("on the way through the directory: %s, want a referral", nfsv4.Nfsstat4_name[status])
			}
		}
		w.cutNothing()
		time.Sleep(quiet)
		if faults := w.faults(); len(faults) > 0 {
			t.Error(faults)
		}
		if got := w.do(request{op: "rmdir", path: "p/n"}); got.status != nfsv4.NFS4_OK {
			t.Errorf("rmdir: %s", nfsv4.Nfsstat4_name[got.status])
		}
		end()
	})
}

package crash

import (
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// A directory above the depth has nothing on data servers, or an empty copy. So it is removed and renamed although data servers are down, and the client's
// kernel does not lock the level above until they are back.
func TestADirectoryAboveTheDepthDoesNotWaitForDataServers(t *testing.T) {
	for _, r := range []request{{op: "rmdir", path: "q"}, {op: "rename", path: "q", to: "n"}} {
		during(t, func(w *world) {
			w.silence(true)
			began := time.Now()
			if got := w.do(r); got.status != nfsv4.NFS4_OK || time.Since(began) > 2*time.Second {
				t.Errorf("%s: %s after %s", r, nfsv4.Nfsstat4_name[got.status], time.Since(began))
			}
			w.silence(false)
		})
	}
}

// silence has all data servers answer no more, or again.
func (w *world) silence(silent bool) {
	for _, server := range w.servers {
		w.data.silence(server.Spec.Address, silent)
	}
}

// A directory is closed on the data servers that answer, whichever does not.
func TestAModeIsSetOnTheDataServersThatAnswer(t *testing.T) {
	for down := range 2 {
		during(t, func(w *world) {
			for _, server := range w.servers {
				if err := w.data.mkdir(server.Spec.Address, "/s/0/q", "", nfs.Attributes{Mode: 0o755, Owner: 1000, Group: 1000}); err != nil {
					t.Fatal(err)
				}
			}
			silent, answers := w.servers[down].Spec.Address, w.servers[1-down].Spec.Address
			w.data.silence(silent, true)
			w.set(w.serving(0), "q", tree.Settings{Mode: ptr.To[uint32](0o700)})
			if got, err := w.data.stat(answers, "/s/0/q"); err != nil || got.Mode != 0o700 {
				t.Errorf("with %s down the other has mode %o: %v", w.servers[down].Name, got.Mode, err)
			}
			w.data.silence(silent, false)
		})
	}
}

// Data servers were away when a directory was removed, and kept their copies. Another one of its name is another user's: what he makes in it is not refused by
// the mode of the first, and no other user gets in by it.
func TestACopyOfAnEarlierDirectoryGetsTheModeOfTheNext(t *testing.T) {
	for _, left := range []nfs.Attributes{{Type: nfsv4.NF4DIR, Mode: 0o700, Owner: 5, Group: 5}, {Type: nfsv4.NF4DIR, Mode: 0o777, Owner: 5, Group: 5}} {
		during(t, func(w *world) {
			for _, server := range w.servers {
				if err := w.data.mkdir(server.Spec.Address, "/s/0/z", "", left); err != nil {
					t.Fatal(err)
				}
			}
			for _, path := range []string{"z", "z/a"} {
				if got := w.do(request{op: "mkdir", path: path}); got.status != nfsv4.NFS4_OK {
					t.Errorf("mkdir %s: %s", path, nfsv4.Nfsstat4_name[got.status])
				}
			}
		})
	}
}

// lose takes a directory from its data server, and waits until that is noticed. It returns the data server's address.
func (w *world) lose(path string) string {
	at := w.address(w.find(path).Spec.DataServerRef.Name)
	w.data.drop(at, "/s/0/"+path)
	time.Sleep(2 * time.Minute)
	if state := w.find(path).State(); state != internalv1.DirectoryMissing {
		w.t.Errorf("%s is %s", path, state)
	}
	return at
}

// A directory that is missing can't be renamed, nor can those above it. What is renamed but for that is under both names until it is back, and nothing can be made
// in it. So it is not begun.
func TestADirectoryWithAMissingOneIsNotRenamedInPart(t *testing.T) {
	during(t, func(w *world) {
		at := w.lose("p/a")
		rename := request{op: "rename", path: "p", to: "n"}
		if got := send(w.serving(0), rename); got != nfsv4.NFS4ERR_DELAY {
			t.Errorf("rename: %s", nfsv4.Nfsstat4_name[got])
		}
		if o := w.find("p"); o == nil || o.State() != internalv1.DirectoryReady || w.find("n") != nil {
			t.Error("the rename was begun")
		}
		if got := w.do(request{op: "mkdir", path: "p/n"}); got.status != nfsv4.NFS4_OK {
			t.Errorf("mkdir: %s", nfsv4.Nfsstat4_name[got.status])
		}
		if err := w.data.mkdir(at, "/s/0/p/a", "back", nfs.Attributes{Mode: 0o755, Owner: 1000, Group: 1000}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if got := w.do(rename); got.status != nfsv4.NFS4_OK || w.find("n/a") == nil || w.find("n/n") == nil {
			t.Errorf("rename when it is back: %s", nfsv4.Nfsstat4_name[got.status])
		}
	})
}

// A rename replaces an empty directory. One that is missing may have data: a rename does not give it up.
func TestAMissingDirectoryIsNotReplaced(t *testing.T) {
	during(t, func(w *world) {
		at := w.lose("p/a")
		if got := w.do(request{op: "rename", path: "p/full", to: "p/a"}); got.status != nfsv4.NFS4ERR_EXIST {
			t.Errorf("rename: %s", nfsv4.Nfsstat4_name[got.status])
		}
		if o := w.find("p/a"); o == nil || o.State() != internalv1.DirectoryMissing {
			t.Error("it was given up")
		}
		if err := w.data.mkdir(at, "/s/0/p/a", "back", nfs.Attributes{Mode: 0o755, Owner: 1000, Group: 1000}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if left := w.layout(); left["p/a"] != "back" || left["p/full"] != "data" {
			t.Errorf("there is %v", left)
		}
	})
}

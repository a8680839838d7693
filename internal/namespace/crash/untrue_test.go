package crash

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// unanswered has a data server's answers to mkdir lost for as long as a namespace server asks for them once.
func (w *world) unanswered(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutting = func(_ int, _ *process, what string) mode {
		if strings.HasPrefix(what, "NFS mkdir ") && strings.HasSuffix(what, path) {
			return lose
		}
		return fine
	}
}

// edit changes a ShareDirectory as another server or a user does.
func (w *world) edit(path string, edit func(o *internalv1.ShareDirectory)) {
	err := w.api.change(w.find(path), func(next *internalv1.ShareDirectory) error {
		edit(next)
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
}

// A mkdir got no answer, and the leader finished it. When the client asks again, another one is removing the directory. It is made again after that: what is
// being removed does not stay because the client learns that it is there.
func TestAMkdirThatIsAskedForAgainWaitsForTheRemovalOfWhatItMade(t *testing.T) {
	during(t, func(w *world) {
		w.unanswered("p/n")
		mkdir := request{op: "mkdir", path: "p/n"}
		if got := send(w.serving(0), mkdir); got != nfsv4.NFS4ERR_DELAY {
			t.Errorf("mkdir without an answer: %s", nfsv4.Nfsstat4_name[got])
		}
		w.cutNothing()
		w.edit("p/n", func(o *internalv1.ShareDirectory) { o.Status.State = internalv1.DirectoryRemoving })
		removed := w.find("p/n")
		var removing sync.WaitGroup
		removing.Go(func() {
			time.Sleep(time.Second)
			if err := w.data.rmdir(w.address(removed.Spec.DataServerRef.Name), "/s/0/p/n"); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			if err := w.api.remove(removed, metav1.Preconditions{UID: &removed.UID}); err != nil {
				t.Error(err)
			}
		})
		if got := w.do(mkdir); got.status != nfsv4.NFS4_OK {
			t.Errorf("mkdir: %s", nfsv4.Nfsstat4_name[got.status])
		}
		removing.Wait()
		if _, there := w.layout()["p/n"]; !there {
			t.Error("p/n is not there")
		}
	})
}

// A data server refuses a mkdir, and the API does not take back the ShareDirectory. What a client was refused the leader does not make later.
func TestARefusedMkdirIsNotMadeByTheLeader(t *testing.T) {
	during(t, func(w *world) {
		w.data.denied = "p"
		began := time.Now()
		w.mu.Lock()
		w.cutting = func(_ int, _ *process, what string) mode {
			if what == "API delete p/n" && time.Since(began) < 5*time.Second {
				return refuse
			}
			return fine
		}
		w.mu.Unlock()
		if got := w.do(request{op: "mkdir", path: "p/n"}); got.status != nfsv4.NFS4ERR_ACCESS {
			t.Errorf("mkdir: %s", nfsv4.Nfsstat4_name[got.status])
		}
		time.Sleep(quiet)
		if _, there := w.layout()["p/n"]; there {
			t.Error("p/n is there")
		}
	})
}

// A share may have one more directory, and two clients make it at the same time, or one whose first try got no answer. Neither learns that the share is full.
func TestTheLastDirectoryOfAShareExistsForWhoeverMakesIt(t *testing.T) {
	for lead := range 12 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, tree1)
			w.share.Spec.MaxDirectories = int32(len(tree1) + 1)
			end := w.begin()
			time.Sleep(20 * time.Second)
			mkdir := request{op: "mkdir", path: "p/n"}
			if lead > 0 {
				var first, second answer
				var clients sync.WaitGroup
				clients.Go(func() { first = w.doThrough(lead%2, mkdir) })
				time.Sleep(time.Duration(lead) * time.Millisecond)
				second = w.do(mkdir)
				clients.Wait()
				if first.status+second.status != nfsv4.NFS4_OK+nfsv4.NFS4ERR_EXIST {
					t.Errorf("%d ms later: %s and %s", lead, nfsv4.Nfsstat4_name[first.status], nfsv4.Nfsstat4_name[second.status])
				}
			} else {
				w.unanswered("p/n")
				if got := send(w.serving(0), mkdir); got != nfsv4.NFS4ERR_DELAY {
					t.Errorf("mkdir without an answer: %s", nfsv4.Nfsstat4_name[got])
				}
				w.cutNothing()
				if got := w.do(mkdir); got.status != nfsv4.NFS4_OK {
					t.Errorf("mkdir: %s", nfsv4.Nfsstat4_name[got.status])
				}
			}
			if got := w.do(request{op: "mkdir", path: "p/m"}); got.status != nfsv4.NFS4ERR_DQUOT {
				t.Errorf("one more: %s", nfsv4.Nfsstat4_name[got.status])
			}
			time.Sleep(quiet)
			if faults := w.faults(); len(faults) > 0 {
				t.Error(faults)
			}
			end()
		})
	}
}

// A user has removed a directory, and another one has made it. A server that has not heard of that does not let the owner of the first remove or rename it,
// because the directory above is sticky.
func TestPermissionIsJudgedByTheDirectoryThatIsThere(t *testing.T) {
	for _, r := range []request{{op: "rmdir", path: "q"}, {op: "rename", path: "q", to: "n"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, tree1)
			w.share.Spec.Mode = "1777"
			end := w.begin()
			time.Sleep(20 * time.Second)
			w.mu.Lock()
			w.lags = map[string]time.Duration{w.processes[0].name: 200 * time.Millisecond}
			w.mu.Unlock()
			if got := w.doThrough(1, request{op: "rmdir", path: "q"}); got.status != nfsv4.NFS4_OK {
				t.Errorf("rmdir: %s", nfsv4.Nfsstat4_name[got.status])
			}
			w.put("q", "", 0)
			w.edit("q", func(o *internalv1.ShareDirectory) { o.Spec.UID = ptr.To[int64](2000) })
			if got := w.do(r); got.status != nfsv4.NFS4ERR_ACCESS {
				t.Errorf("%s: %s", r, nfsv4.Nfsstat4_name[got.status])
			}
			time.Sleep(quiet)
			if faults := w.faults(); len(faults) > 0 {
				t.Error(faults)
			}
			end()
		})
	}
}

// The clock of the server that renames a directory is behind that of the one that changed it before. The time of its last change does not go back.
func TestARenameDoesNotTakeTheTimeOfTheLastChangeBack(t *testing.T) {
	during(t, func(w *world) {
		ahead := tree.FormatTime(time.Now().Add(time.Hour))
		w.edit("q", func(o *internalv1.ShareDirectory) { o.Status.ChangedTime = ahead })
		time.Sleep(time.Second)
		if got := w.do(request{op: "rename", path: "q", to: "n"}); got.status != nfsv4.NFS4_OK {
			t.Errorf("rename: %s", nfsv4.Nfsstat4_name[got.status])
		}
		if got := w.find("n").Status.ChangedTime; got < ahead {
			t.Errorf("it was changed at %s, and before at %s", got, ahead)
		}
	})
}

// A server changes the mode of a directory, and has not learned of what another one has just made in it or renamed into it, or that it is finished. The directory was
// modified then, and not before.
func TestAChangeOfModeDoesNotTakeTheTimeOfModificationBack(t *testing.T) {
	for _, test := range []struct {
		change     request
		unfinished time.Duration
	}{
		{change: request{op: "mkdir", path: "q/n"}},
		{request{op: "mkdir", path: "q/n"}, 5 * time.Second},
		{change: request{op: "rename", path: "p/a", to: "q/n"}},
		{request{op: "rename", path: "p/a", to: "q/n"}, 5 * time.Second},
	} {
		during(t, func(w *world) {
			const prompt, late = 1, 0
			began := time.Now()
			w.mu.Lock()
			w.lags = map[string]time.Duration{w.processes[late].name: 100 * time.Millisecond}
			w.cutting = func(_ int, _ *process, what string) mode {
				if what == "API status Ready q/n" && time.Since(began) < test.unfinished {
					return refuse
				}
				return fine
			}
			w.mu.Unlock()
			if got := w.doThrough(prompt, test.change); got.status != nfsv4.NFS4_OK {
				t.Errorf("%s: %s", test.change, nfsv4.Nfsstat4_name[got.status])
			}
			p := w.serving(late)
			entry, _ := p.tree.At("/s/q")
			mode := uint32(0o700)
			if status := p.service.SetAttributes(t.Context(), entry, tree.Settings{Mode: &mode}, tree.Credentials{UID: 1000}); status != nfsv4.NFS4_OK {
				t.Errorf("chmod: %s", nfsv4.Nfsstat4_name[status])
			}
			time.Sleep(quiet)
			for _, p := range w.running() {
				if now, _ := p.tree.At("/s/q"); now.Mode != mode || now.Modified.Before(began) {
					t.Errorf("%s, Ready after %s: %s: mode %o, modified %s before it was", test.change, test.unfinished, p.name, now.Mode, began.Sub(now.Modified))
				}
			}
		})
	}
}

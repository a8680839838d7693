package crash

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// during has a test go through with a quiet world of two namespace servers: clients ask the first, the second is the leader.
func during(t *testing.T, do func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, tree1)
		end := w.begin()
		time.Sleep(20 * time.Second)
		w.mu.Lock()
		w.trail = nil
		w.mu.Unlock()
		do(w)
		w.cutNothing()
		time.Sleep(quiet)
		if faults := w.faults(); len(faults) > 0 {
			t.Error(faults)
		}
		if t.Failed() {
			t.Log("\n" + strings.Join(w.trail, "\n"))
		}
		end()
	})
}

// cutOff has a process not reach the API, or the data servers ("NFS"), for a while from a call on; the call itself is executed.
func (w *world) cutOff(p *process, kind, from string, length time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var since time.Time
	w.cutting = func(_ int, who *process, what string) mode {
		switch {
		case who != p:
		case since.IsZero() && strings.HasPrefix(what, from):
			since = time.Now()
			if strings.HasPrefix(what, kind) {
				return lose
			}
		case !since.IsZero() && time.Since(since) < length && strings.HasPrefix(what, kind):
			return refuse
		}
		return fine
	}
}

// A namespace server does not reach the API, or no data server, after a data server has made a change. The leader finishes the change before the client asks again, and the client
// does not get NFS4ERR_NOENT or NFS4ERR_EXIST for what it has done itself.
func TestAChangeThatTheLeaderFinishedIsAnsweredAsDone(t *testing.T) {
	for _, r := range []request{
		{op: "mkdir", path: "p/n"},
		{op: "mkdir", path: "n"},
		{op: "rmdir", path: "p/a"},
		{op: "rmdir", path: "q"},
		{op: "rename", path: "p/full", to: "p/n"},
		{op: "rename", path: "p/full", to: "q/n"},
		{op: "rename", path: "p", to: "n"},
	} {
		from, again := "NFS "+r.op, nfsv4.NFS4ERR_NOENT
		switch {
		case r.path == "p":
			from = "API delete p"
		case r.op == "mkdir":
			from, again = "API create "+r.path, nfsv4.NFS4ERR_EXIST
		}
		for _, kind := range []string{"API", "NFS"} {
			t.Run(kind+" "+strings.ReplaceAll(r.String(), "/", "-"), func(t *testing.T) {
				during(t, func(w *world) {
					w.cutOff(w.processes[0], kind, from, 40*time.Second)
					if got := w.do(r); got.status != nfsv4.NFS4_OK {
						t.Errorf("%s: %s", r, nfsv4.Nfsstat4_name[got.status])
					}
					// Only once.
					if got := w.do(r); got.status != again {
						t.Errorf("%s again: %s", r, nfsv4.Nfsstat4_name[got.status])
					}
				})
			})
		}
	}
}

// A rename was answered, and the API did not take that the new name is Ready. Then the old name is made again. The leader, which finishes the rename, takes away
// neither.
func TestAnUnfinishedRenameIsNotUndoneBecauseItsOldNameWasMadeAgain(t *testing.T) {
	for _, r := range []request{
		{op: "rename", path: "p/a", to: "p/n"},
		{op: "rename", path: "p/full", to: "p/n"},
		{op: "rename", path: "q", to: "n"},
		{op: "rename", path: "p", to: "n"},
	} {
		for _, m := range []mode{refuse, dieBefore} {
			t.Run(strings.ReplaceAll(r.String(), "/", "-")+" "+string(m), func(t *testing.T) {
				during(t, func(w *world) {
					identity := string(w.find(r.path).UID)
					w.cutReady(r.to, m)
					if got := send(w.serving(0), r); got != nfsv4.NFS4_OK && m == refuse {
						t.Errorf("%s: %s", r, nfsv4.Nfsstat4_name[got])
					}
					w.cutNothing()
					if got := w.do(request{op: "mkdir", path: r.path}); got.status != nfsv4.NFS4_OK {
						t.Errorf("mkdir %s: %s", r.path, nfsv4.Nfsstat4_name[got.status])
					}
					time.Sleep(quiet)
					left := w.layout()
					for _, path := range []string{r.path, r.to} {
						if _, there := left[path]; !there {
							t.Errorf("%s is not there: %v", path, left)
						}
					}
					if o := w.find(r.to); o != nil && o.Spec.Identity != identity {
						t.Errorf("%s is another directory now", r.to)
					}
					if r.path == "p/full" && left[r.to] != "data" {
						t.Errorf("the data is not at %s: %v", r.to, left)
					}
				})
			})
		}
	}
}

// What another server has just made in a directory is renamed with it, although this server has not learned of it.
func TestADirectoryIsRenamedWithWhatAnotherServerHasJustMadeInIt(t *testing.T) {
	for lead := range 12 {
		during(t, func(w *world) {
			const prompt, late = 1, 0
			w.mu.Lock()
			w.lags = map[string]time.Duration{w.processes[late].name: time.Second}
			w.mu.Unlock()
			var made answer
			var clients sync.WaitGroup
			clients.Go(func() { made = w.doThrough(prompt, request{op: "mkdir", path: "q/new"}) })
			time.Sleep(time.Duration(3*lead) * time.Millisecond)
			renamed := w.doThrough(late, request{op: "rename", path: "q", to: "n"})
			clients.Wait()
			time.Sleep(quiet)
			left := w.layout()
			_, moved := left["n/new"]
			_, stayed := left["q/new"]
			if renamed.status != nfsv4.NFS4_OK || stayed || moved != (made.status == nfsv4.NFS4_OK) {
				t.Errorf("%d ms later: mkdir %s, rename %s, and there is %v", 3*lead, nfsv4.Nfsstat4_name[made.status], nfsv4.Nfsstat4_name[renamed.status], left)
			}
		})
	}
}

// A rename got no answer, the leader undid it, and another client removes the directory. The client that asks for the rename again does not take over what the
// other one has begun: one of the two gets NFS4ERR_NOENT.
func TestARenameThatIsAskedForAgainLeavesTheRemovalOfAnotherAlone(t *testing.T) {
	during(t, func(w *world) {
		w.mu.Lock()
		w.cutting = func(_ int, _ *process, what string) mode {
			if what == "API create p/n" {
				return refuse
			}
			return fine
		}
		w.mu.Unlock()
		rename := request{op: "rename", path: "p/a", to: "p/n"}
		if got := send(w.serving(0), rename); got != nfsv4.NFS4ERR_DELAY {
			t.Errorf("the first try: %s", nfsv4.Nfsstat4_name[got])
		}
		time.Sleep(18 * time.Second)
		w.cutNothing()
		if o := w.find("p/a"); o.State() != internalv1.DirectoryReady {
			t.Errorf("p/a is %s", o.State())
		}
		w.edit("p/a", func(o *internalv1.ShareDirectory) { o.Status.State = internalv1.DirectoryRemoving })
		removed := w.find("p/a")
		var removing sync.WaitGroup
		removing.Go(func() {
			time.Sleep(time.Second)
			if err := w.data.rmdir(w.address(removed.Spec.DataServerRef.Name), "/s/0/p/a"); err != nil {
				t.Error(err)
			}
			if err := w.api.remove(removed, metav1.Preconditions{UID: &removed.UID}); err != nil {
				t.Error(err)
			}
		})
		if got := w.do(rename); got.status != nfsv4.NFS4ERR_NOENT {
			t.Errorf("the second try: %s", nfsv4.Nfsstat4_name[got.status])
		}
		removing.Wait()
	})
}

// A client asks for a rename or rmdir and is killed before there is an answer. The leader finishes it, the names are used again, and the same is asked for again: then
// it is done for the directory that is there now, and not answered for the one before.
func TestWhatAKilledClientAskedForIsNoAnswerToTheNext(t *testing.T) {
	for _, r := range []request{{op: "rename", path: "p/a", to: "p/n"}, {op: "rename", path: "q", to: "n"}, {op: "rmdir", path: "p/a"}} {
		t.Run(strings.ReplaceAll(r.String(), "/", "-"), func(t *testing.T) {
			during(t, func(w *world) {
				from := "NFS " + r.op
				if r.path == "q" {
					from = "API delete q"
				}
				w.cutOff(w.processes[0], "API", from, 20*time.Second)
				if got := send(w.serving(0), r); got != nfsv4.NFS4ERR_DELAY {
					t.Errorf("the first try: %s", nfsv4.Nfsstat4_name[got])
				}
				time.Sleep(19 * time.Second)
				if got := w.doThrough(1, request{op: "mkdir", path: r.path}); got.status != nfsv4.NFS4_OK {
					t.Errorf("mkdir: %s", nfsv4.Nfsstat4_name[got.status])
				}
				identity := string(w.find(r.path).UID)
				if got := w.do(r); got.status != nfsv4.NFS4_OK || w.find(r.path) != nil {
					t.Errorf("the second time: %s; left: %v", nfsv4.Nfsstat4_name[got.status], w.layout())
				}
				if o := w.find(r.to); r.to != "" && (o == nil || o.Spec.Identity != identity) {
					t.Errorf("%s is another directory", r.to)
				}
			})
		})
	}
}

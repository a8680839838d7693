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
	"github.com/howdah/howdah/internal/naming"
)

// A namespace server that learns late of what the other one has changed makes the change that it is asked for, or refuses it, as if it
// had learned of it. test/consistency looks for such things at random.
func TestAServerThatLearnsLateRefusesAndMakesWhatIsRight(t *testing.T) {
	type step struct {
		through int
		request request
		want    nfsv4.Nfsstat4
	}
	mkdir := func(path string) request { return request{op: "mkdir", path: path} }
	rmdir := func(path string) request { return request{op: "rmdir", path: path} }
	const prompt, late = 1, 0
	for name, test := range map[string]struct {
		steps []step
		// there and gone are paths at the end.
		there, gone string
	}{
		"a directory that another server has just made is removed": {[]step{
			{prompt, mkdir("q/n"), nfsv4.NFS4_OK}, {late, rmdir("q/n"), nfsv4.NFS4_OK},
		}, "q", "q/n"},
		"a directory that another server has just made is renamed": {[]step{
			{prompt, mkdir("q/n"), nfsv4.NFS4_OK}, {late, request{op: "rename", path: "q/n", to: "q/m"}, nfsv4.NFS4_OK},
		}, "q/m", "q/n"},
		"a directory that another server has just removed is made": {[]step{
			{prompt, rmdir("p/a"), nfsv4.NFS4_OK}, {late, mkdir("p/a"), nfsv4.NFS4_OK},
		}, "p/a", "-"},
		"nothing is made in a directory that another server has just removed": {[]step{
			{prompt, rmdir("q"), nfsv4.NFS4_OK}, {late, mkdir("q/n"), nfsv4.NFS4ERR_NOENT},
		}, "p", "q"},
		"nothing is renamed into a directory that another server has just removed": {[]step{
			{prompt, rmdir("q"), nfsv4.NFS4_OK}, {late, request{op: "rename", path: "p/full", to: "q/full"}, nfsv4.NFS4ERR_NOENT},
		}, "p/full", "q"},
		"a directory in which another server has just made one is not removed": {[]step{
			{prompt, mkdir("q/n"), nfsv4.NFS4_OK}, {late, rmdir("q"), nfsv4.NFS4ERR_NOTEMPTY},
		}, "q/n", "-"},
		"a directory that another server has just emptied is removed": {[]step{
			{prompt, mkdir("q/n"), nfsv4.NFS4_OK},
			{late, mkdir("q/n"), nfsv4.NFS4ERR_EXIST},
			{prompt, rmdir("q/n"), nfsv4.NFS4_OK},
			{late, rmdir("q"), nfsv4.NFS4_OK},
		}, "p", "q"},
		"an empty directory that another server has just made is replaced": {[]step{
			{prompt, mkdir("q/n"), nfsv4.NFS4_OK}, {late, request{op: "rename", path: "p/full", to: "q/n"}, nfsv4.NFS4_OK},
		}, "q/n", "p/full"},
		"a directory that another server has just emptied is replaced": {[]step{
			{prompt, mkdir("q/n"), nfsv4.NFS4_OK},
			{late, mkdir("q/n"), nfsv4.NFS4ERR_EXIST},
			{prompt, rmdir("q/n"), nfsv4.NFS4_OK},
			{late, request{op: "rename", path: "r", to: "q"}, nfsv4.NFS4_OK},
		}, "q/x", "r"},
		"a directory that is not empty is not replaced": {[]step{
			{late, request{op: "rename", path: "r", to: "p"}, nfsv4.NFS4ERR_EXIST},
		}, "r/x", "p/x"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, tree1)
				end := w.begin()
				time.Sleep(20 * time.Second)
				w.mu.Lock()
				w.lags = map[string]time.Duration{w.processes[late].name: time.Second}
				w.trail = nil
				w.mu.Unlock()
				for _, s := range test.steps {
					if got := w.doThrough(s.through, s.request); got.status != s.want {
						t.Errorf("%s: %s, want %s", s.request, nfsv4.Nfsstat4_name[got.status], nfsv4.Nfsstat4_name[s.want])
					}
				}
				time.Sleep(quiet)
				left := w.layout()
				if _, there := left[test.there]; !there {
					t.Errorf("%s is not there: %v", test.there, left)
				}
				for path := range left {
					if path == test.gone || strings.HasPrefix(path, test.gone+"/") {
						t.Errorf("%s is there", path)
					}
				}
				if faults := w.faults(); len(faults) > 0 {
					t.Errorf("faults: %v", faults)
				}
				if t.Failed() {
					t.Log("\n" + strings.Join(w.trail, "\n"))
				}
				end()
			})
		})
	}
}

// The watch delivers at once that a directory was removed and made again, and then that it was removed again. In between the tree has a
// directory that the API no longer has, and a mkdir is not refused because of it.
func TestAMkdirIsNotRefusedBecauseOfADirectoryBetweenTwoRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, tree1)
		end := w.begin()
		time.Sleep(20 * time.Second)
		const prompt, late = 1, 0
		server := w.processes[late]
		w.mu.Lock()
		w.lags = map[string]time.Duration{server.name: time.Second}
		w.mu.Unlock()
		through := func(n int, op string) {
			if got := w.doThrough(n, request{op: op, path: "p/a"}); got.status != nfsv4.NFS4_OK {
				t.Errorf("%s: %s", op, nfsv4.Nfsstat4_name[got.status])
			}
		}
		through(prompt, "rmdir")
		through(prompt, "mkdir")
		time.Sleep(100 * time.Millisecond) // What is written behind the answer.
		between := w.find("p/a")
		through(prompt, "rmdir")
		var delivery sync.WaitGroup
		delivery.Go(func() {
			time.Sleep(50 * time.Millisecond)
			server.tree.SetDirectory(between)
		})
		through(late, "mkdir")
		delivery.Wait()
		time.Sleep(quiet)
		if _, there := w.layout()["p/a"]; !there {
			t.Error("p/a is not there")
		}
		if faults := w.faults(); len(faults) > 0 {
			t.Error(faults)
		}
		end()
	})
}

// A directory was removed, and made again on another data server, where it has a file. A server that only knows the first one does not
// remove the second: it asks the data server that has it.
func TestWhatWasMadeAgainElsewhereIsNotRemovedWithItsFiles(t *testing.T) {
	for name, r := range map[string]request{
		"rmdir":                   {op: "rmdir", path: "p/a"},
		"rename that replaces it": {op: "rename", path: "p/full", to: "p/a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, tree1)
				end := w.begin()
				time.Sleep(20 * time.Second)
				const prompt, late = 1, 0
				w.mu.Lock()
				w.lags = map[string]time.Duration{w.processes[late].name: time.Second}
				w.mu.Unlock()
				first := w.find("p/a")
				if got := w.doThrough(prompt, request{op: "rmdir", path: "p/a"}); got.status != nfsv4.NFS4_OK {
					t.Fatalf("rmdir: %s", nfsv4.Nfsstat4_name[got.status])
				}
				other := 0
				if first.Spec.DataServerRef.Name == w.servers[0].Name {
					other = 1
				}
				w.put("p/a", "new", other)
				if got := w.doThrough(late, r); got.status != nfsv4.NFS4ERR_NOTEMPTY && got.status != nfsv4.NFS4ERR_EXIST {
					t.Errorf("%s: %s", r, nfsv4.Nfsstat4_name[got.status])
				}
				if w.find("p/a") == nil {
					t.Error("p/a is out of the namespace")
				}
				time.Sleep(quiet)
				if got := w.layout(); got["p/a"] != "new" || got["p/full"] != "data" {
					t.Errorf("there is %v", got)
				}
				if faults := w.faults(); len(faults) > 0 {
					t.Error(faults)
				}
				end()
			})
		})
	}
}

// One of the two is refused, whoever is faster by how much: there is never a directory in one that was removed.
func TestADirectoryIsRemovedWhileAnotherServerMakesOneInIt(t *testing.T) {
	for lead := range 25 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, uint64(lead), tree1)
			end := w.begin()
			time.Sleep(20 * time.Second)
			w.mu.Lock()
			w.lags = map[string]time.Duration{w.processes[lead%2].name: 100 * time.Millisecond}
			w.mu.Unlock()
			var made, removed answer
			var clients sync.WaitGroup
			clients.Go(func() { made = w.doThrough(0, request{op: "mkdir", path: "q/n"}) })
			time.Sleep(time.Duration(lead) * time.Millisecond)
			clients.Go(func() { removed = w.doThrough(1, request{op: "rmdir", path: "q"}) })
			clients.Wait()
			time.Sleep(quiet)
			left := w.layout()
			_, above := left["q"]
			_, in := left["q/n"]
			first := made.status == nfsv4.NFS4_OK && removed.status == nfsv4.NFS4ERR_NOTEMPTY && above && in
			second := made.status == nfsv4.NFS4ERR_NOENT && removed.status == nfsv4.NFS4_OK && !above && !in
			if !first && !second {
				t.Errorf("%d ms later: mkdir %s, rmdir %s, and there is %v", lead, nfsv4.Nfsstat4_name[made.status], nfsv4.Nfsstat4_name[removed.status], left)
			}
			if faults := w.faults(); len(faults) > 0 {
				t.Errorf("%d ms later: %v", lead, faults)
			}
			end()
		})
	}
}

// A name that another server is making is not there yet, and may be taken back. So a mkdir waits, and does not get NFS4ERR_EXIST.
func TestAMkdirIsNotRefusedBecauseOfOneThatIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, tree1)
		end := w.begin()
		time.Sleep(20 * time.Second)
		o := &internalv1.ShareDirectory{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: naming.Directory("fs", "s", "p/n"), Annotations: map[string]string{tree.MadeByAnnotation: "another"},
		}}
		o.Spec = internalv1.ShareDirectorySpec{
			FileServerRef: internalv1.FileServerReference{Name: "fs"}, FileShareRef: internalv1.FileShareReference{Name: "s"}, Path: "p/n",
			DataServerRef: internalv1.DataServerReference{Name: w.servers[0].Name}, Volume: ptr.To[int32](0), Mode: "0755",
		}
		if err := w.api.create(o); err != nil {
			t.Fatal(err)
		}
		var taken sync.WaitGroup
		taken.Go(func() {
			time.Sleep(8 * time.Second)
			if err := w.api.remove(o, metav1.Preconditions{}); err != nil {
				t.Error(err)
			}
		})
		if got := w.do(request{op: "mkdir", path: "p/n"}); got.status != nfsv4.NFS4_OK {
			t.Errorf("mkdir: %s", nfsv4.Nfsstat4_name[got.status])
		}
		taken.Wait()
		time.Sleep(quiet)
		if _, there := w.layout()["p/n"]; !there {
			t.Error("p/n is not there")
		}
		if faults := w.faults(); len(faults) > 0 {
			t.Error(faults)
		}
		end()
	})
}

// The API executes a create and its answers are lost for longer than a mkdir waits. The client that tries again gets the answer of its
// own mkdir, although the watch has shown the directory meanwhile.
func TestAMkdirIsNotRefusedBecauseOfItself(t *testing.T) {
	for _, path := range []string{"n", "p/n"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, tree1)
			end := w.begin()
			time.Sleep(20 * time.Second)
			began := time.Now()
			w.mu.Lock()
			w.cutting = func(_ int, _ *process, what string) mode {
				if time.Since(began) > 7*time.Second {
					return fine
				}
				if what == "API create "+path {
					return lose
				}
				if strings.HasPrefix(what, "API") {
					return refuse
				}
				return fine
			}
			w.mu.Unlock()
			if got := w.do(request{op: "mkdir", path: path}); got.status != nfsv4.NFS4_OK {
				t.Errorf("mkdir %s: %s", path, nfsv4.Nfsstat4_name[got.status])
			}
			time.Sleep(quiet)
			if faults := w.faults(); len(faults) > 0 {
				t.Error(faults)
			}
			end()
		})
	}
}

// find is the ShareDirectory of a path in the API; nil if there is none.
func (w *world) find(path string) *internalv1.ShareDirectory {
	for _, o := range w.api.all() {
		if o.Spec.Path == path {
			return o
		}
	}
	return nil
}

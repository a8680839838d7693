package operations

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/hotdirectories"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// search has n data servers with shared storage, and a share whose directories are hot on k of them when some clients use them. What is found is
// recorded at once, if recorded is not nil: it gets the paths.
func (w *world) search(n int, clients, k int32, recorded *[]string) {
	w.heat(n, 2)
	w.seek(3, v1alpha1.HotDirectorySearch{Clients: clients, DataServers: k})
	version := 600
	w.handler.FoundHot = func(e tree.Entry) {
		if recorded == nil {
			return
		}
		*recorded = append(*recorded, e.Directory.Path)
		version++
		w.record(version, &w.now)
	}
}

// seek changes spec.findHotDirectories of the share, which names no directory.
func (w *world) seek(generation int64, search v1alpha1.HotDirectorySearch) {
	s := share("open", "/open", func(s *v1alpha1.FileShareSpec) { s.Depth, s.Mode, s.FindHotDirectories = 2, "0777", search })
	s.Generation = generation
	w.handler.Tree.SetShare(fleet.ShareOf(s))
}

// record is what the API then has of the junction; nil: it is not hot.
func (w *world) record(version int, at *time.Time) {
	o := directory("open", "plain/junction", "fs-0", internalv1.DirectoryReady, 2)
	o.ResourceVersion = fmt.Sprint(version)
	if at != nil {
		o.Status.HotTime = &metav1.Time{Time: *at}
	}
	w.handler.Tree.SetDirectory(o)
}

// enter has clients ask as Linux does when it mounts the junction, and gives where they are sent.
func (w *world) enter(t *testing.T, from, to int) (first []string, count map[string]int) {
	t.Helper()
	count = map[string]int{}
	for i := from; i < to; i++ {
		w.list(t, i)
		servers, status := w.referral(t, callerAt(i))
		if status != nfsv4.NFS4_OK || len(servers) == 0 {
			t.Fatalf("client %d: %v, %s", i, servers, nfs.StatusName(status))
		}
		first = append(first, servers[0])
		count[servers[0]]++
	}
	return first, count
}

// list has a client ask as Linux does when it shows the junction: it looks it up, learns that it is elsewhere, and asks where.
func (w *world) list(t *testing.T, i int) {
	t.Helper()
	if _, status := w.do(callerAt(i), at("/open/plain/junction", getfh)...); status != nfsv4.NFS4ERR_MOVED {
		t.Fatalf("client %d looks it up: %s", i, nfs.StatusName(status))
	}
	if servers, status := w.referral(t, callerAt(i)); status != nfsv4.NFS4_OK || len(servers) == 0 {
		t.Fatalf("client %d: %v, %s", i, servers, nfs.StatusName(status))
	}
}

func TestADirectoryThatManyClientsEnterIsFoundHot(t *testing.T) {
	w := newWorld(t)
	var recorded []string
	w.search(8, 5, 4, &recorded)
	before, _ := w.enter(t, 0, 4)
	if len(recorded) != 0 {
		t.Fatalf("four clients: %v", recorded)
	}
	w.enter(t, 4, 5)
	if !slices.Equal(recorded, []string{"plain/junction"}) {
		t.Fatalf("five clients: %v", recorded)
	}
	// The five are at the owner, and stay there. Those that come are sent so that all data servers have as many.
	_, count := w.enter(t, 5, 20)
	if count["10.9.0.0"] != 0 || len(count) != 3 || slices.Max(slices.Collect(maps.Values(count))) != 5 {
		t.Errorf("fifteen more clients: %v, want five on each of three others", count)
	}
	after, _ := w.enter(t, 0, 4)
	if !slices.Equal(before, after) {
		t.Errorf("%v, and when it is hot %v", before, after)
	}
	if len(recorded) != 1 {
		t.Errorf("it is recorded %d times", len(recorded))
	}
	// Later it is recorded again, by whoever asks.
	w.now = w.now.Add(hotdirectories.Lately - time.Minute)
	w.sentTo(t, 10)
	w.now = w.now.Add(hotdirectories.RenewAfter - hotdirectories.Lately + time.Minute)
	if w.sentTo(t, 1); len(recorded) != 2 {
		t.Errorf("after %s it is recorded %d times", hotdirectories.RenewAfter, len(recorded))
	}
}

func TestWhatIsNotFoundHot(t *testing.T) {
	many := v1alpha1.HotDirectorySearch{Clients: 5, DataServers: 4}
	enters := func(t *testing.T, w *world) { w.enter(t, 0, 20) }
	for name, tc := range map[string]struct {
		change func(w *world)
		use    func(t *testing.T, w *world)
		want   bool
	}{
		"nothing of that": {use: enters, want: true},
		"clients that only list": {use: func(t *testing.T, w *world) {
			for range 10 {
				w.sentTo(t, 20)
				w.now = w.now.Add(time.Minute)
			}
		}},
		"clients that list again and again, because the directory above changes": {use: func(t *testing.T, w *world) {
			for range 10 {
				for i := range 20 {
					w.list(t, i)
				}
				w.now = w.now.Add(100 * time.Millisecond)
			}
		}},
		"clients one after the other": {use: func(t *testing.T, w *world) {
			for i := range 20 {
				w.enter(t, i, i+1)
				w.now = w.now.Add(4 * time.Minute)
			}
		}},
		"clients that get no answer": {use: func(t *testing.T, w *world) {
			w.handler.Look = func(context.Context, *tree.Target) (nfs.Attributes, error) {
				return nfs.Attributes{}, &nfs.StatusError{Status: nfsv4.NFS4ERR_STALE}
			}
			for i := range 20 {
				for range 2 {
					if _, status := w.do(callerAt(i), at("/open/plain/junction", getattr(nfsv4.FATTR4_FS_LOCATIONS, nfsv4.FATTR4_OWNER))...); status != nfsv4.NFS4ERR_DELAY {
						t.Fatalf("client %d: %s", i, nfs.StatusName(status))
					}
				}
			}
		}},
		"its owner is silent, and clients wait for it while they mount": {change: func(w *world) {
			w.handler.Own = func(string) []string { return []string{"10.9.9.9"} }
			w.down["fs-0"] = true
		}, use: func(t *testing.T, w *world) {
			for i := range 40 {
				if _, status := w.do(callerAt(i/2), at("/open/plain/junction", getattr(nfsv4.FATTR4_FS_LOCATIONS))...); status != nfsv4.NFS4_OK {
					t.Fatalf("client %d: %s", i/2, nfs.StatusName(status))
				}
			}
		}},
		"it is not looked for":    {change: func(w *world) { w.seek(4, v1alpha1.HotDirectorySearch{}) }, use: enters},
		"more clients are needed": {change: func(w *world) { w.seek(4, v1alpha1.HotDirectorySearch{Clients: 21, DataServers: 4}) }, use: enters},
		"it is marked": {change: func(w *world) {
			s := share("open", "/open", func(s *v1alpha1.FileShareSpec) {
				s.Depth, s.Mode, s.FindHotDirectories = 2, "0777", many
				s.HotDirectories = []v1alpha1.HotDirectories{{Paths: []string{"plain/junction"}, DataServers: 2}}
			})
			s.Generation = 4
			w.handler.Tree.SetShare(fleet.ShareOf(s))
		}, use: enters},
		"storage is not shared": {change: func(w *world) {
			w.handler.Tree.SetServer(hotServer(0, func(d *internalv1.DataServer) { d.Spec.Ceph.Monitors = nil }))
		}, use: enters},
		"there are many already": {change: func(w *world) {
			for i := range hotdirectories.MaxFound {
				o := directory("open", fmt.Sprint("plain/hot", i), "fs-0", internalv1.DirectoryReady, 700+i)
				o.Status.HotTime = &metav1.Time{Time: w.now}
				w.handler.Tree.SetDirectory(o)
			}
		}, use: enters},
	} {
		w := newWorld(t)
		var recorded []string
		w.search(8, many.Clients, many.DataServers, &recorded)
		if tc.change != nil {
			tc.change(w)
		}
		tc.use(t, w)
		if got := len(recorded) > 0; got != tc.want {
			t.Errorf("%s: found %v", name, recorded)
		}
	}
}

// What one namespace server has found is so for all: they go by the record, and not by their own counts.
func TestAllNamespaceServersGoByTheRecord(t *testing.T) {
	w := newWorld(t)
	w.search(8, 200, 4, nil)
	if _, count := w.enter(t, 0, 12); len(count) != 1 {
		t.Errorf("before: %v", count)
	}
	w.record(601, &w.now)
	if _, count := w.enter(t, 100, 136); len(count) != 3 || count["10.9.0.0"] != 0 {
		t.Errorf("36 clients, and 12 are at the owner: %v", count)
	}
	// However old it is: the leader takes it away.
	w.now = w.now.Add(10 * hotdirectories.HotFor)
	if _, count := w.enter(t, 200, 208); len(count) != 4 {
		t.Errorf("an old record: %v", count)
	}
	w.seek(5, v1alpha1.HotDirectorySearch{})
	if _, count := w.enter(t, 300, 310); len(count) != 1 {
		t.Errorf("the share does not look for hot directories any more: %v", count)
	}
}

func TestADirectoryThatHasCooledDownHasOneDataServerAgain(t *testing.T) {
	w := newWorld(t)
	var recorded []string
	w.search(4, 3, 4, &recorded)
	w.enter(t, 0, 12)
	w.record(700, nil)
	w.now = w.now.Add(2 * hotdirectories.HotFor)
	if _, count := w.enter(t, 12, 14); count["10.9.0.0"] != 2 {
		t.Errorf("new clients: %v", count)
	}
	if first, _ := w.sentTo(t, 12); slices.ContainsFunc(first, func(s string) bool { return s != "10.9.0.0" }) {
		t.Errorf("clients that were sent elsewhere, and ask again: %v", first)
	}
	// Who enters it again is at the owner now, and counts for it when it is hot once more.
	recorded = nil
	w.handler.FoundHot = nil
	w.enter(t, 0, 12)
	w.record(701, &w.now)
	_, count := w.enter(t, 20, 26)
	if count["10.9.0.0"] != 0 || len(count) != 3 {
		t.Errorf("six clients, and twelve are at the owner: %v", count)
	}
}

func TestASingleShareIsFoundHot(t *testing.T) {
	w := newWorld(t)
	w.heat(3, 2)
	s := share("single", "/deep/single", func(s *v1alpha1.FileShareSpec) {
		s.Layout, s.FindHotDirectories = v1alpha1.LayoutSingle, v1alpha1.HotDirectorySearch{Clients: 2, DataServers: 3}
	})
	s.Generation = 2
	w.handler.Tree.SetShare(fleet.ShareOf(s))
	var found []string
	w.handler.FoundHot = func(e tree.Entry) { found = append(found, e.Path) }
	for i := range 2 {
		for range 2 {
			w.referralOf(t, "/deep/single", callerAt(i))
		}
	}
	if !slices.Equal(found, []string{"/deep/single"}) {
		t.Errorf("found: %v", found)
	}
}

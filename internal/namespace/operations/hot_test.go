package operations

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
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
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/test/builders"
)

// hotServer is a data server of a FileServer with shared storage that serves the share open.
func hotServer(i int, edit func(*internalv1.DataServer)) *internalv1.DataServer {
	d := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("fs-", i)}}
	d.Spec = internalv1.DataServerSpec{
		FileServerRef: internalv1.FileServerReference{Name: "fs"}, Address: fmt.Sprint("10.9.0.", i), Volumes: 1, NodeNetworks: []string{"10.0.0.0/8"},
		Ceph: internalv1.CephFileSystem{Monitors: []string{"10.8.0.1:3300"}},
	}
	d.Status.Conditions = builders.ReadyConditions()
	if edit != nil {
		edit(d)
	}
	return d
}

// heat has n data servers with shared storage, and has k of them serve the junction, whose owner is fs-0.
func (w *world) heat(n int, k int32) {
	for i := range n {
		w.handler.Tree.SetServer(hotServer(i, nil))
		w.handler.Tree.SetExport(builders.ShareExport("", "fs", "open", fmt.Sprint("fs-", i)))
	}
	w.mark(2, v1alpha1.HotDirectories{Paths: []string{"plain/junction"}, DataServers: k})
}

// mark changes spec.hotDirectories of the share.
func (w *world) mark(generation int64, entries ...v1alpha1.HotDirectories) {
	s := share("open", "/open", func(s *v1alpha1.FileShareSpec) { s.Depth, s.Mode, s.HotDirectories = 2, "0777", entries })
	s.Generation = generation
	w.handler.Tree.SetShare(fleet.ShareOf(s))
}

func callerAt(i int) rpc.Caller {
	return rpc.Caller{Addr: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), UID: 1000, GID: 1000}
}

// sentTo gives the first server of a client's referral, and how many referrals have each.
func (w *world) sentTo(t *testing.T, clients int) (first []string, count map[string]int) {
	t.Helper()
	count = map[string]int{}
	for i := range clients {
		servers, status := w.referral(t, callerAt(i))
		if status != nfsv4.NFS4_OK || len(servers) == 0 {
			t.Fatalf("client %d: %v, %s", i, servers, nfs.StatusName(status))
		}
		first = append(first, servers[0])
		count[servers[0]]++
	}
	return first, count
}

func TestClientsOfAHotDirectoryAreOnAllOfItsDataServersAndStayThere(t *testing.T) {
	w := newWorld(t)
	w.heat(8, 5)
	first, count := w.sentTo(t, 20)
	if len(count) != 5 || count["10.9.0.0"] != 4 || slices.Max(slices.Collect(maps.Values(count))) != 4 {
		t.Errorf("20 clients of 5 data servers, the owner among them: %v", count)
	}
	w.now = w.now.Add(time.Minute)
	if again, _ := w.sentTo(t, 20); !slices.Equal(again, first) {
		t.Errorf("%v, and a minute later %v", first, again)
	}
	// What is forgotten is decided in the same way: all of these prefer what they were given.
	w.handler.routes.forget()
	if alone, _ := w.referral(t, callerAt(3)); alone[0] == "" || len(alone) != maxLocations {
		t.Errorf("after a restart: %v", alone)
	}
}

func TestOnlyWhatIsHotIsServedByOthers(t *testing.T) {
	owner := []string{"10.9.0.0"}
	for name, tc := range map[string]struct {
		change func(w *world)
		want   []string
	}{
		"not marked":            {func(w *world) { w.mark(3) }, owner},
		"another one is marked": {func(w *world) { w.mark(3, v1alpha1.HotDirectories{Paths: []string{"plain/idle"}, DataServers: 3}) }, owner},
		"of another depth":      {func(w *world) { w.mark(3, v1alpha1.HotDirectories{Paths: []string{"plain"}, DataServers: 3}) }, owner},
		"storage is not shared": {func(w *world) {
			w.handler.Tree.SetServer(hotServer(0, func(d *internalv1.DataServer) { d.Spec.Ceph.Monitors = nil }))
		}, owner},
		"the others are drained": {func(w *world) { w.elsewhere(1, 2) }, owner},
		"the others do not serve the share": {func(w *world) {
			w.handler.Tree.DeleteExport("fs-1", "open")
			w.handler.Tree.DeleteExport("fs-2", "open")
		}, owner},
		"the others do not answer":  {func(w *world) { w.down["fs-1"], w.down["fs-2"] = true, true }, owner},
		"the owner does not answer": {func(w *world) { w.down["fs-0"], w.down["fs-2"] = true, true }, []string{"10.9.0.1"}},
		"the owner does not serve": {func(w *world) {
			w.handler.Tree.SetServer(hotServer(0, func(d *internalv1.DataServer) { d.Status.Conditions = nil }))
			w.down["fs-2"] = true
		}, []string{"10.9.0.1"}},
		"one is gone": {func(w *world) {
			w.handler.Tree.DeleteServer("fs-1")
			w.handler.Tree.DeleteServer("fs-2")
		}, owner},
	} {
		w := newWorld(t)
		w.heat(3, 3)
		tc.change(w)
		for i := range 10 {
			if got, status := w.referral(t, callerAt(i)); status != nfsv4.NFS4_OK || !slices.Equal(got, tc.want) {
				t.Errorf("%s: client %d: %v, %s, want %v", name, i, got, nfs.StatusName(status), tc.want)
			}
		}
	}
}

// elsewhere has data servers refuse new directories, as those that are to be idle do.
func (w *world) elsewhere(ordinals ...int) {
	for _, i := range ordinals {
		w.handler.Tree.SetServer(hotServer(i, func(d *internalv1.DataServer) { d.Spec.NewDirectories = internalv1.NewDirectoriesForbid }))
	}
}

func TestAClientOfAHotDirectoryWaitsOnlyIfNoDataServerServesIt(t *testing.T) {
	w := newWorld(t)
	w.heat(3, 3)
	for _, server := range []string{"fs-0", "fs-1", "fs-2"} {
		w.down[server] = true
	}
	if servers, status := w.referral(t, alice); status != nfsv4.NFS4ERR_DELAY {
		t.Errorf("none answers: %v, %s", servers, nfs.StatusName(status))
	}
	w.down["fs-2"] = false
	if servers, status := w.referral(t, alice); status != nfsv4.NFS4_OK || !slices.Equal(servers, []string{"10.9.0.2"}) {
		t.Errorf("one answers: %v, %s", servers, nfs.StatusName(status))
	}
}

// Its referral names the owner alone, so another data server that answers is of no use to who waits in the mount.
func TestWhoWaitsInTheMountOfAHotDirectoryGoesOnWhenItsOwnerServes(t *testing.T) {
	w := newWorld(t)
	w.heat(3, 3)
	w.handler.Own = func(string) []string { return []string{"10.9.9.9"} }
	for _, server := range []string{"fs-0", "fs-1", "fs-2"} {
		w.down[server] = true
	}
	locations, _ := w.locationsOf(t, "/open/plain/junction", alice)
	if len(locations) != 2 || len(locations[1].Server) != 1 || locations[1].Server[0] != "10.9.0.0" {
		t.Fatalf("none answers: %v", locations)
	}
	place := w.placeFor("/open/plain/junction") + "/junction"
	w.down["fs-2"] = false
	if _, status := w.do(alice, at(place)...); status != nfsv4.NFS4ERR_DELAY {
		t.Errorf("another one answers: %s", nfs.StatusName(status))
	}
	w.down["fs-0"] = false
	if _, status := w.do(alice, at(place)...); status != nfsv4.NFS4ERR_ACCESS {
		t.Errorf("the owner answers: %s", nfs.StatusName(status))
	}
}

func TestOnlyTheClientsOfADataServerThatIsSilentGoElsewhere(t *testing.T) {
	w := newWorld(t)
	w.heat(5, 5)
	before, _ := w.sentTo(t, 25)
	w.down["fs-3"] = true
	after, count := w.sentTo(t, 25)
	for i := range before {
		if before[i] != "10.9.0.3" && after[i] != before[i] || after[i] == "10.9.0.3" {
			t.Errorf("client %d: %s, then %s", i, before[i], after[i])
		}
	}
	if len(count) != 4 || slices.Max(slices.Collect(maps.Values(count))) > 7 {
		t.Errorf("25 clients on four data servers: %v", count)
	}
	w.down["fs-3"] = false
	if again, _ := w.sentTo(t, 25); !slices.Equal(again, after) {
		t.Errorf("when it answers again, clients go from %v to %v", after, again)
	}
	if servers, _ := w.referral(t, callerAt(99)); servers[0] != "10.9.0.3" {
		t.Errorf("a new client is sent to %s, and fs-3 has none", servers[0])
	}
}

func TestClientsThatHaveNotAskedForLongDoNotCount(t *testing.T) {
	w := newWorld(t)
	w.heat(2, 2)
	first, _ := w.sentTo(t, 1)
	w.now = w.now.Add(routeKept + time.Second)
	// The second client may have the same data server now, if it prefers it: without the first one all are equal.
	for i := 1; i < 40; i++ {
		w.handler.routes.forget()
		w.sentTo(t, 1)
		w.now = w.now.Add(routeKept + time.Second)
		if servers, _ := w.referral(t, callerAt(i)); servers[0] == first[0] {
			return
		}
	}
	t.Error("no client is ever sent to where a client was an hour ago")
}

func TestRoutesAreBounded(t *testing.T) {
	now := time.Unix(0, 0)
	r := routes{now: func() time.Time { return now }}
	kept := tree.ID{1}
	client := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}) }
	for i := range hotdirectories.MaxKept {
		id := kept
		if i%2 == 1 {
			id = tree.ID{2, byte(i >> 16), byte(i >> 8), byte(i)}
		}
		// The oldest half is forgotten first.
		if i == hotdirectories.MaxKept/2 {
			now = now.Add(routeKept + time.Second)
		}
		r.kept.Keep(id, client(i), &route{"a", now})
	}
	r.of(kept, netip.MustParseAddr("10.0.0.1"), []string{"a"}, nil)
	if n := r.total(); n != hotdirectories.MaxKept/2+1 {
		t.Errorf("%d are kept, want those of the last hour and the new one: %d", n, hotdirectories.MaxKept/2+1)
	}
	for i := range hotdirectories.MaxKept - r.total() { // All are new.
		r.kept.Keep(tree.ID{3}, client(1<<20+i), &route{"a", now})
	}
	r.of(kept, netip.MustParseAddr("10.0.0.2"), []string{"a"}, nil)
	if n := r.total(); n > hotdirectories.MaxKept || n < hotdirectories.MaxKept/2 {
		t.Errorf("%d are kept", n)
	}
}

// total counts what is kept.
func (r *routes) total() (n int) {
	r.kept.Forget(func(netip.Addr, *route) bool { n++; return false })
	return n
}

// A referral shows the owner and times of the directory there. They are asked of the data server that the client is sent to: one that is
// there by its word only would be found out.
func TestTheDataServerThatAClientIsSentToIsAskedForTheAttributes(t *testing.T) {
	w := newWorld(t)
	var asked []string
	w.handler = New(Config{
		Tree: w.handler.Tree, Mutator: w.mutator, Reachable: w.handler.Reachable, Now: w.handler.Now, LeaseSeconds: 60,
		Look: func(_ context.Context, target *tree.Target) (nfs.Attributes, error) {
			asked = append(asked, target.Address+target.Path)
			return nfs.Attributes{Owner: 4242}, nil
		},
	})
	w.heat(5, 5)
	for i := range 10 {
		res, status := w.do(callerAt(i), at("/open/plain/junction", getattr(nfsv4.FATTR4_FS_LOCATIONS, nfsv4.FATTR4_OWNER))...)
		if status != nfsv4.NFS4_OK {
			t.Fatalf("client %d: %s", i, nfs.StatusName(status))
		}
		_ = res
		servers, _ := w.referral(t, callerAt(i))
		if want := servers[0] + "/open/1/plain/junction"; asked[len(asked)-1] != want {
			t.Errorf("client %d: %s was asked, want %s", i, asked[len(asked)-1], want)
		}
	}
	// Another owner meanwhile is still noticed.
	w.handler.Look = func(context.Context, *tree.Target) (nfs.Attributes, error) {
		w.moveJunction("fs-4", "")
		return nfs.Attributes{}, nil
	}
	if _, status := w.do(callerAt(1), at("/open/plain/junction", getattr(nfsv4.FATTR4_FS_LOCATIONS, nfsv4.FATTR4_OWNER))...); status != nfsv4.NFS4ERR_DELAY {
		t.Errorf("moved while it was looked at: %s", nfs.StatusName(status))
	}
}

func TestAClientOutsideGetsOutsideAddressesOfAHotDirectory(t *testing.T) {
	w := newWorld(t)
	w.heat(3, 3)
	w.handler.Tree.SetServer(hotServer(1, func(d *internalv1.DataServer) { d.Spec.OutsideAddresses = []string{"192.0.2.1", "2001:db8::1"} }))
	w.handler.Tree.SetServer(hotServer(2, func(d *internalv1.DataServer) { d.Spec.OutsideAddresses = []string{"192.0.2.2"} }))
	count := map[string]int{}
	for i := range 8 {
		caller := callerAt(i)
		caller.Door = DoorOutside
		servers, status := w.referral(t, caller)
		if status != nfsv4.NFS4_OK || len(servers) != 2 {
			t.Fatalf("client %d: %v, %s", i, servers, nfs.StatusName(status))
		}
		count[servers[0]]++
	}
	if count["192.0.2.1"] != 4 || count["192.0.2.2"] != 4 {
		t.Errorf("%v: the owner has no address there, and the others should have as many", count)
	}
}

// The directory above has another change attribute when a directory becomes hot or no longer is: no client goes by an old referral.
func TestAChangeOfHotDirectoriesIsSeenInTheDirectoryAbove(t *testing.T) {
	w := newWorld(t)
	w.heat(3, 3)
	e, _ := w.handler.Tree.At("/open/plain")
	w.mark(3)
	if now, _ := w.handler.Tree.At("/open/plain"); now.Change == e.Change {
		t.Error("the change attribute is the same")
	}
}

// A Single share is one directory, which its whole mount is.
func TestASingleShareCanBeHot(t *testing.T) {
	w := newWorld(t)
	w.heat(3, 3)
	for i := range 3 {
		w.handler.Tree.SetExport(builders.ShareExport("", "fs", "single", fmt.Sprint("fs-", i)))
	}
	s := share("single", "/deep/single", func(s *v1alpha1.FileShareSpec) {
		s.Layout, s.HotDirectories = v1alpha1.LayoutSingle, []v1alpha1.HotDirectories{{DataServers: 3}}
	})
	s.Generation = 2
	w.handler.Tree.SetShare(fleet.ShareOf(s))
	count := map[string]int{}
	for i := range 6 {
		servers, status := w.referralOf(t, "/deep/single", callerAt(i))
		if status != nfsv4.NFS4_OK {
			t.Fatalf("client %d: %s", i, nfs.StatusName(status))
		}
		count[servers[0]]++
	}
	if len(count) != 3 {
		t.Errorf("six clients of three data servers: %v", count)
	}
}

// What changes a directory goes to its owner.
func TestAHotDirectoryIsChangedByItsOwner(t *testing.T) {
	w := newWorld(t)
	w.heat(5, 5)
	for i := range 10 {
		w.referral(t, callerAt(i))
	}
	e, _ := w.handler.Tree.At("/open/plain/junction")
	if e.Target.Server != "fs-0" || len(e.Next) != 0 {
		t.Errorf("the tree's entry names %s and %d more", e.Target.Server, len(e.Next))
	}
}

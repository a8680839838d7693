package tree

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
)

var born = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newShare(name, path string, age time.Duration, edit func(*v1alpha1.FileShareSpec)) *v1alpha1.FileShare {
	s := &v1alpha1.FileShare{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(born.Add(-age)), Generation: 1,
	}}
	s.Spec = v1alpha1.FileShareSpec{FileServerRef: v1alpha1.FileServerReference{Name: "fs"}, Path: path, Mode: "0755"}
	if edit != nil {
		edit(&s.Spec)
	}
	return builders.Defaulted(s)
}

func newDirectory(share, path, server string, state internalv1.DirectoryState, version int) *internalv1.ShareDirectory {
	id := int64(1000)
	r := &internalv1.ShareDirectory{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.Directory("fs", share, path), UID: types.UID("uid-" + share + path),
			ResourceVersion: fmt.Sprint(version), CreationTimestamp: metav1.NewTime(born.Add(time.Duration(len(path)) * time.Second)),
		},
		Spec:   internalv1.ShareDirectorySpec{FileServerRef: internalv1.FileServerReference{Name: "fs"}, FileShareRef: internalv1.FileShareReference{Name: share}, Path: path, UID: &id, GID: &id, Mode: "0750"},
		Status: internalv1.ShareDirectoryStatus{State: state},
	}
	if server != "" {
		volume := int32(0)
		r.Spec.DataServerRef.Name, r.Spec.Volume = server, &volume
	}
	return r
}

// idOf is the identity of what is at a path now.
func idOf(t *Tree, path string) ID {
	e, ok := t.At(path)
	if !ok {
		panic("there is no " + path)
	}
	return e.ID
}

// dump is all that a client could see of a tree, by path.
func dump(t *Tree) map[string]string {
	out := map[string]string{}
	var walk func(e Entry)
	walk = func(e Entry) {
		target := ""
		if e.Target != nil {
			target = fmt.Sprintf("%+v", *e.Target)
		}
		out[e.Path] = fmt.Sprintf("id %x change %x entries %d owner %d:%d %o modified %v target %s",
			e.ID, e.Change, e.Entries, e.Owner, e.Group, e.Mode, e.Modified.Unix(), target)
		var kids []Entry
		t.List(e.ID, 0, func(k *Entry) bool { kids = append(kids, *k); return true })
		for _, k := range kids {
			walk(k)
		}
	}
	walk(t.Root())
	out["nodes"] = fmt.Sprint(len(t.nodes), len(t.paths))
	return out
}

func TestATreeBuiltByEventsIsTheTreeBuiltAtOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		shares := map[string]*v1alpha1.FileShare{}
		directories := map[string]*internalv1.ShareDirectory{}
		live := New("fs")
		for step := range 120 {
			name := string(rune('a' + random.IntN(5)))
			switch random.IntN(10) {
			case 0:
				paths := []string{"/x", "/x/y", "/z", "/z/1/2", "/w"}
				s := newShare(name, paths[random.IntN(len(paths))], time.Duration(random.IntN(5))*time.Hour, func(s *v1alpha1.FileShareSpec) {
					s.Depth = int32(random.IntN(3)) + 1
					if random.IntN(4) == 0 {
						s.Layout, s.Depth = v1alpha1.LayoutSingle, 0
					}
				})
				s.Generation = int64(step)
				if old := shares[name]; old != nil && random.IntN(2) == 0 {
					s = old.DeepCopy()
					s.Generation = int64(step)
					s.Spec.Mode = "0700"
				}
				shares[name] = s
				live.SetShare(fleet.ShareOf(s))
			case 1:
				delete(shares, name)
				live.DeleteShare(name)
			case 2, 3:
				for key, r := range directories {
					if random.IntN(4) == 0 {
						delete(directories, key)
						live.DeleteDirectory(r.Spec.FileShareRef.Name, r.Spec.Path, string(r.UID))
						break
					}
				}
			default:
				states := []internalv1.DirectoryState{
					internalv1.DirectoryReady, internalv1.DirectoryReady, internalv1.DirectoryReady,
					internalv1.DirectoryCreating, internalv1.DirectoryRemoving, internalv1.DirectoryRenaming,
				}
				paths := []string{".", "p", "q", "p/r", "p/s", "q/r", "p/r/t", "p/r/u", "q/v/w"}
				path := paths[random.IntN(len(paths))]
				server := ""
				if random.IntN(3) > 0 {
					server = "fs-" + fmt.Sprint(random.IntN(2))
				}
				r := newDirectory(name, path, server, states[random.IntN(len(states))], round*1000+step+1)
				r.UID = types.UID(fmt.Sprint(round, step))
				if old := directories[r.Name]; old != nil && random.IntN(2) == 0 {
					r.UID = old.UID
				}
				directories[r.Name] = r
				live.SetDirectory(r)
			}
		}
		rebuilt := New("fs")
		for _, r := range directories { // in random order, and ShareDirectories before shares
			rebuilt.SetDirectory(r)
		}
		for _, s := range shares {
			rebuilt.SetShare(fleet.ShareOf(s))
		}
		if diff := cmp.Diff(dump(rebuilt), dump(live)); diff != "" {
			t.Fatalf("round %d (-rebuilt +live):\n%s", round, diff)
		}
		if diff := cmp.Diff(rebuilt.counts, live.counts); diff != "" {
			t.Fatalf("round %d, counts (-rebuilt +live):\n%s", round, diff)
		}
	}
}

func TestEveryNodeHasItsOwnHandleFileIDAndCookie(t *testing.T) {
	tr := New("fs")
	tr.SetShare(fleet.ShareOf(newShare("s", "/s", 0, func(s *v1alpha1.FileShareSpec) { s.Depth = 2 })))
	for i := range 20000 {
		tr.SetDirectory(newDirectory("s", fmt.Sprintf("p%d/d%d", i%10, i), "fs-0", internalv1.DirectoryReady, i+1))
	}
	handles, ids := map[string]string{}, map[uint64]string{}
	for _, n := range tr.paths {
		id := n.id
		h := string(EncodeHandle(HandleDirectory, id))
		if handles[h] != "" || ids[id.FileID()] != "" {
			t.Fatalf("%s has the handle or file id of %s%s", n.path, handles[h], ids[id.FileID()])
		}
		handles[h], ids[id.FileID()] = n.path, n.path
		if id.Cookie() < firstCookie || id.Cookie() >= 1<<63 || id.FileID() >= 1<<63 {
			t.Fatalf("%s has cookie %d and file id %d", n.path, id.Cookie(), id.FileID())
		}
		kind, back, err := DecodeHandle([]byte(h))
		if kind != HandleDirectory || back != id || err != nil {
			t.Fatalf("the handle of %s reads as %v %v %v", n.path, kind, back, err)
		}
	}
	if len(tr.nodes) != len(tr.paths) {
		t.Errorf("%d handles for %d directories", len(tr.nodes), len(tr.paths))
	}
	// Handles outlive releases: clients keep them over an upgrade of all servers.
	for path, want := range map[string]string{
		"/":        "480200001388d6a1d2cf3fc8b1ce8609f2641ac2",
		"/s":       "480200007204421745ee2f562599271f962dcabc",
		"/s/p1":    "48020000a3ae00445eeb6ab0fbe804d2bdb2b5e7",
		"/s/p1/d1": "48020000adf8c6d8208372670b6a3e18e0f9a68d",
	} {
		if got := fmt.Sprintf("%x", EncodeHandle(HandleDirectory, idOf(tr, path))); got != want {
			t.Errorf("the handle of %s is %s, want %s", path, got, want)
		}
	}
}

func TestAHandleIsThatOfADirectoryAndNotOfItsName(t *testing.T) { // RFC 8881 sections 4.2.2 and 5.8.2.4
	tr := New("fs")
	tr.SetShare(fleet.ShareOf(newShare("s", "/s", 0, func(s *v1alpha1.FileShareSpec) { s.Depth = 2 })))
	tr.SetDirectory(newDirectory("s", "p", "", internalv1.DirectoryReady, 1))
	before := idOf(tr, "/s/p")
	tr.DeleteDirectory("s", "p", "uid-sp")
	again := newDirectory("s", "p", "", internalv1.DirectoryReady, 2)
	again.UID = "another"
	tr.SetDirectory(again)
	if _, ok := tr.Get(before); ok || idOf(tr, "/s/p") == before {
		t.Error("a directory that was made again has the handle of the one that is gone")
	}
	root := idOf(tr, "/s")
	tr.DeleteShare("s")
	other := newShare("s", "/s", 0, nil)
	other.UID = "another"
	tr.SetShare(fleet.ShareOf(other))
	if idOf(tr, "/s") == root {
		t.Error("a share that was made again has the handle of the one that is gone")
	}
}

func TestNothingInAListingIsPartOfAHandle(t *testing.T) {
	tr := New("fs")
	tr.SetShare(fleet.ShareOf(newShare("s", "/s", 0, nil)))
	tr.SetDirectory(newDirectory("s", "a", "fs-0", internalv1.DirectoryReady, 1))
	id := idOf(tr, "/s/a")
	for at := range len(id) - 3 {
		part := binary.BigEndian.Uint32(id[at:])
		for what, v := range map[string]uint64{"file id": id.FileID(), "cookie": id.Cookie()} {
			for shift := range 33 {
				if uint32(v>>shift) == part {
					t.Errorf("the %s %x has bytes %d to %d of the handle %x", what, v, at, at+3, id)
				}
			}
		}
	}
}

func TestTheChangeAttributeDiffersWithTheContent(t *testing.T) {
	build := func(events ...func(*Tree)) uint64 {
		tr := New("fs")
		tr.SetShare(fleet.ShareOf(newShare("s", "/s", 0, nil)))
		for _, e := range events {
			e(tr)
		}
		e, _ := tr.At("/s")
		return e.Change
	}
	add := func(name string, version int) func(*Tree) {
		return func(tr *Tree) {
			tr.SetDirectory(newDirectory("s", name, "fs-0", internalv1.DirectoryReady, version))
		}
	}
	remove := func(name string) func(*Tree) {
		return func(tr *Tree) { tr.DeleteDirectory("s", name, "uid-s"+name) }
	}
	empty, a, ab := build(), build(add("a", 1)), build(add("a", 1), add("b", 2))
	if empty == a || a == ab || empty == ab {
		t.Errorf("empty %x, with a %x, with a and b %x", empty, a, ab)
	}
	if got := build(add("b", 2), add("a", 1)); got != ab {
		t.Errorf("in another order it is %x, not %x", got, ab)
	}
	if got := build(add("b", 2), add("a", 1), remove("b")); got != a {
		t.Errorf("after a removal it is %x, not %x as if it had never been", got, a)
	}
	again := func(tr *Tree) {
		r := newDirectory("s", "a", "fs-0", internalv1.DirectoryReady, 9)
		r.UID = "another"
		tr.SetDirectory(r)
	}
	if got := build(add("a", 1), remove("a"), again); got == a {
		t.Error("a directory that was made again looks like the old one")
	}
	if got := build(add("a", 1), func(tr *Tree) {
		s := newShare("s", "/s", 0, func(s *v1alpha1.FileShareSpec) { s.Mode = "0700" })
		s.Generation = 2
		tr.SetShare(fleet.ShareOf(s))
	}); got == a {
		t.Error("another mode looks like the old one")
	}
}

func TestStatesThatArriveLateAreIgnored(t *testing.T) {
	tr := New("fs")
	tr.SetShare(fleet.ShareOf(newShare("s", "/s", 0, nil)))
	shown := func() bool { _, ok := tr.Lookup(idOf(tr, "/s"), "a"); return ok }
	tr.SetDirectory(newDirectory("s", "a", "fs-0", internalv1.DirectoryReady, 5))
	tr.SetDirectory(newDirectory("s", "a", "fs-0", internalv1.DirectoryCreating, 4))
	if !shown() {
		t.Error("an older state hides the directory")
	}
	tr.DeleteDirectory("s", "a", "uid-sa")
	tr.SetDirectory(newDirectory("s", "a", "fs-0", internalv1.DirectoryReady, 6))
	if shown() {
		t.Error("a late state brings a deleted directory back")
	}
	next := newDirectory("s", "a", "fs-0", internalv1.DirectoryReady, 7)
	next.UID = "next"
	tr.SetDirectory(next)
	tr.DeleteDirectory("s", "a", "uid-sa")
	if !shown() {
		t.Error("the late deletion of an older ShareDirectory hides its successor")
	}
}

func TestOfSharesWithConflictingPathsTheOldestExists(t *testing.T) {
	tr := New("fs")
	shown := func() (out []string) {
		for _, s := range tr.Shares() {
			out = append(out, s.Name)
		}
		return out
	}
	step := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, shown()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	tr.SetShare(fleet.ShareOf(newShare("young", "/a/b", time.Hour, nil)))
	step("alone", "young")
	tr.SetShare(fleet.ShareOf(newShare("old", "/a", 2*time.Hour, nil)))
	step("the older is above it", "old")
	tr.SetShare(fleet.ShareOf(newShare("twin", "/a", 2*time.Hour, nil)))
	step("of the same age the first name counts", "old")
	tr.SetShare(fleet.ShareOf(newShare("beside", "/ab", time.Minute, nil)))
	step("a longer name is no conflict", "beside", "old")
	if diff := cmp.Diff([]string{"twin"}, tr.DeleteShare("old")); diff != "" {
		t.Errorf("what is shown in its place: %s", diff)
	}
	step("the next takes its place", "beside", "twin")
	gone := newShare("twin", "/a", 2*time.Hour, nil)
	now := metav1.NewTime(born)
	gone.DeletionTimestamp = &now
	if diff := cmp.Diff([]string{"young"}, tr.SetShare(fleet.ShareOf(gone))); diff != "" {
		t.Errorf("what is shown in the place of one that is being deleted: %s", diff)
	}
	step("one that is being deleted does not count", "beside", "young")
	if shown := tr.DeleteShare("twin"); len(shown) > 0 {
		t.Errorf("its end shows %v", shown)
	}
	other := newShare("beside", "/ab", time.Minute, func(s *v1alpha1.FileShareSpec) { s.FileServerRef.Name = "other" })
	tr.SetShare(fleet.ShareOf(other))
	step("nor one of another FileServer", "young")
}

func TestTheFirstRuleThatHasTheClientCounts(t *testing.T) {
	s := NewShare(fleet.ShareOf(newShare("s", "/s", 0, func(s *v1alpha1.FileShareSpec) {
		s.Access = []v1alpha1.AccessRule{
			{Clients: []string{"10.0.0.7"}, Squash: v1alpha1.SquashAll},
			{Clients: []string{"10.0.0.9"}, SourcePorts: v1alpha1.SourcePortsReserved},
			{Clients: []string{"10.0.0.0/8", "fd00::/8"}, AccessType: v1alpha1.AccessReadOnly, SourcePorts: v1alpha1.SourcePortsAny},
			{Clients: []string{"12.0.0.1"}, SourcePorts: "Unheard-of"},
		}
	})))
	for client, want := range map[string]string{
		"10.0.0.7": "{ReadOnly:false Squash:All} true", "10.0.0.8": "{ReadOnly:true Squash:} true", "fd00::1": "{ReadOnly:true Squash:} true",
		"::ffff:10.0.0.7": "{ReadOnly:false Squash:All} true", "11.0.0.1": "{ReadOnly:false Squash:} false", "fd00::1%eth0": "{ReadOnly:true Squash:} true",
	} {
		access, ok := s.Access(netip.MustParseAddr(client), 50000)
		if got := fmt.Sprintf("%+v %v", access, ok); got != want {
			t.Errorf("%s: %s, want %s", client, got, want)
		}
	}
	// A client that its own rule refuses for the port is not admitted by a wider one.
	for client, want := range map[string]bool{
		"10.0.0.9:1023": true, "10.0.0.9:1": true, "10.0.0.9:1024": false, "10.0.0.9:0": false, "10.0.0.8:1024": true, "12.0.0.1:2000": false,
	} {
		from := netip.MustParseAddrPort(client)
		if _, ok := s.Access(from.Addr(), from.Port()); ok != want {
			t.Errorf("%s is let in: %v, want %v", client, ok, want)
		}
	}
}

func TestNodesAreThoseThatDataServersHave(t *testing.T) {
	tr := New("fs")
	tr.SetShare(fleet.ShareOf(newShare("open", "/open", 0, nil)))
	tr.SetShare(fleet.ShareOf(newShare("ruled", "/ruled", 0, func(s *v1alpha1.FileShareSpec) {
		s.Access = []v1alpha1.AccessRule{
			{Clients: []string{"10.244.3.5"}, Squash: v1alpha1.SquashAll},
			{Clients: []string{v1alpha1.ClientNodes, "172.16.0.0/12"}, AccessType: v1alpha1.AccessReadOnly, SourcePorts: v1alpha1.SourcePortsReserved},
			{Clients: []string{"0.0.0.0/0"}},
		}
	})))
	server := func(name string, networks ...string) *internalv1.DataServer {
		o := &internalv1.DataServer{Spec: internalv1.DataServerSpec{FileServerRef: internalv1.FileServerReference{Name: "fs"}, NodeNetworks: networks}}
		o.Name = name
		return o
	}
	in := func(what, share string, want bool, from string) {
		t.Helper()
		address := netip.MustParseAddrPort(from)
		if _, ok := tr.shares[share].Access(address.Addr(), address.Port()); ok != want {
			t.Errorf("%s: %s at %s: %v", what, from, share, ok)
		}
	}
	in("no data server", "open", false, "192.168.7.2:900")
	in("no data server, the rule before", "ruled", true, "10.244.3.5:900")
	in("no data server, a network beside nodes", "ruled", true, "172.16.0.1:900")
	in("no data server, and what may be a node", "ruled", false, "192.168.7.2:900")
	tr.SetServer(server("fs-0", "10.244.1.0/31", "192.168.7.2/31", "fd00:7::2/128", "not a network"))
	for from, want := range map[string]bool{
		"192.168.7.2:900": true, "192.168.7.3:50000": true, "192.168.7.4:900": false, "10.244.1.1:900": true, "10.244.1.2:900": false,
		"[fd00:7::2]:900": true, "[fd00:7::3]:900": false, "[::ffff:192.168.7.2]:900": true, "127.0.0.1:900": false,
	} {
		in("one data server", "open", want, from)
	}
	in("a rule for nodes, by a kernel", "ruled", true, "192.168.7.2:900")
	in("a rule for nodes, by a program", "ruled", false, "192.168.7.2:5000")
	in("a network beside them", "ruled", true, "172.16.0.1:900")
	in("the rule after it", "ruled", true, "10.9.9.9:5000")
	tr.SetServer(server("fs-1", "192.168.7.9/32"))
	in("a node that one data server knows", "open", true, "192.168.7.9:900")
	in("one that the other knows", "open", true, "192.168.7.2:900")
	tr.DeleteServer("fs-0")
	in("one that is unknown by now", "open", false, "192.168.7.2:900")
	tr.SetServer(server("fs-1"))
	in("no node", "open", false, "192.168.7.9:900")
	in("no node, by a wider rule after that for nodes", "ruled", false, "192.168.7.9:900")
	tr.SetOwnNode([]netip.Addr{netip.MustParseAddr("10.244.3.1")})
	in("the pod's own node, as it sees it", "open", true, "10.244.3.1:645")
	in("a pod beside it", "open", false, "10.244.3.2:645")
	in("while no other node is known", "ruled", false, "10.244.3.2:645")
	in("the pod's own node, by the rule for nodes", "ruled", true, "10.244.3.1:645")
}

// Nodes are clients of their own, though they are in one /64.
func TestNodesCountByThemselves(t *testing.T) {
	tr := New("fs")
	server := &internalv1.DataServer{Spec: internalv1.DataServerSpec{
		FileServerRef: internalv1.FileServerReference{Name: "fs"}, NodeNetworks: []string{"fd00:7::2/127", "fd00:8::/112", "fd00:9::/64", "192.168.7.2/32"},
	}}
	server.Name = "fs-0"
	tr.SetServer(server)
	for address, want := range map[string]string{
		"fd00:7::2": "fd00:7::2", "fd00:7::3": "fd00:7::3", "fd00:7::4": "fd00:7::", "fd00:8::1:1": "fd00:8::", "fd00:8::1": "fd00:8::1",
		"fd00:9::1":   "fd00:9::", // A whole /64 was added: any machine there has any number of addresses.
		"192.168.7.2": "192.168.7.2", "192.168.7.3": "192.168.7.3",
	} {
		if got := tr.ClientOf(netip.MustParseAddr(address)); got != netip.MustParseAddr(want) {
			t.Errorf("%s counts as %s, want %s", address, got, want)
		}
	}
}

func TestARuleThatThisVersionDoesNotKnowLetsNoLaterOneDecide(t *testing.T) {
	for name, unknown := range map[string]v1alpha1.AccessRule{
		"a client":      {Clients: []string{"10.0.0.7", "@admins"}},
		"an accessType": {Clients: []string{"10.0.0.7"}, AccessType: "Append"},
	} {
		s := newShare("a", "/a", 0, func(s *v1alpha1.FileShareSpec) {
			s.Access = []v1alpha1.AccessRule{{Clients: []string{"10.0.0.1"}}, unknown, {Clients: []string{"0.0.0.0/0"}}}
		})
		for from, want := range map[string]bool{"10.0.0.1": true, "10.0.0.7": false, "10.0.0.8": false} {
			if _, ok := NewShare(fleet.ShareOf(s)).Access(netip.MustParseAddr(from), 50000); ok != want {
				t.Errorf("%s: %s is let in: %v", name, from, ok)
			}
		}
	}
}

func TestPermissionIsThatOfTheFirstClassThatTheCallerIsIn(t *testing.T) {
	for name, tc := range map[string]struct {
		mode   uint32
		caller Credentials
		want   uint32
	}{
		"root":                  {0o000, Credentials{}, 7},
		"the owner":             {0o500, Credentials{UID: 1, GID: 2}, 5},
		"the owner, not others": {0o077, Credentials{UID: 1, GID: 9}, 0},
		"the group":             {0o750, Credentials{UID: 9, GID: 2}, 5},
		"another group":         {0o750, Credentials{UID: 9, GID: 9, Groups: []uint32{2}}, 5},
		"others":                {0o751, Credentials{UID: 9, GID: 9}, 1},
	} {
		e := Entry{Owner: 1, Group: 2, Mode: tc.mode}
		if got := e.Permitted(tc.caller); got != tc.want {
			t.Errorf("%s: %o, want %o", name, got, tc.want)
		}
	}
	sticky := Entry{Owner: 1, Group: 2, Mode: 0o1777}
	for uid, want := range map[uint32]bool{0: true, 1: true, 5: true, 6: false} {
		if got := sticky.MayUnlink(Credentials{UID: uid, GID: 9}, 5); got != want {
			t.Errorf("in a sticky directory uid %d may remove what is 5's: %v", uid, got)
		}
	}
	setgid := Entry{Group: 2, Mode: 0o2775}
	if group, mode := setgid.NewAttributes(Credentials{GID: 9}, 0o755); group != 2 || mode != 0o2755 {
		t.Errorf("below a setgid directory: group %d mode %o", group, mode)
	}
}

func TestSquashMapsTo65534(t *testing.T) {
	all := Credentials{UID: 5, GID: 6, Groups: []uint32{0, 7}}
	for name, tc := range map[string]struct {
		in   Credentials
		how  v1alpha1.Squash
		want Credentials
	}{
		"None":             {Credentials{}, v1alpha1.SquashNone, Credentials{}},
		"unset":            {Credentials{}, "", Credentials{}},
		"Root of root":     {Credentials{Groups: []uint32{0, 5}}, v1alpha1.SquashRoot, Credentials{UID: SquashedID, GID: SquashedID}},
		"Root of a user":   {all, v1alpha1.SquashRoot, Credentials{UID: 5, GID: 6, Groups: []uint32{7}}},
		"Root of group 0":  {Credentials{UID: 5}, v1alpha1.SquashRoot, Credentials{UID: 5, GID: SquashedID}},
		"All of everybody": {all, v1alpha1.SquashAll, Credentials{UID: SquashedID, GID: SquashedID}},
	} {
		if diff := cmp.Diff(tc.want, Squash(tc.in, tc.how)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if all.Groups[0] != 0 {
		t.Error("squashing changed the caller's groups")
	}
}

func FuzzDecodeHandle(f *testing.F) {
	f.Add(EncodeHandle(HandleCreated, aboveID("/")))
	f.Add(NewWaiting(aboveID("/"), "d", "fs-0").Handle())
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, id, err := DecodeHandle(b)
		if err == nil && b[1] == handleVersion && string(EncodeHandle(kind, id)) != string(b) {
			t.Errorf("%x reads as a handle that is written otherwise", b)
		}
	})
}

package operations

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/google/go-cmp/cmp"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/test/builders"
)

// idle is a junction in newWorld whose data server, fs-1, does not serve.
const idle = "/open/plain/idle"

// newWaitingWorld is newWorld with addresses of the namespace servers.
func newWaitingWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.handler.Own = func(door string) []string {
		if door == DoorOutside {
			return []string{"lb.example.com", "192.0.2.9", "2001:db8::9"}
		}
		return []string{"10.96.0.1"}
	}
	w.handler.Look = func(_ context.Context, target *tree.Target) (nfs.Attributes, error) {
		t.Errorf("%s was asked, which does not serve", target.Server)
		return nfs.Attributes{}, nil
	}
	return w
}

// placeFor is the directory to wait in for what is at a path.
func (w *world) placeFor(path string) string {
	e, _ := w.handler.Tree.At(path)
	above, _ := w.handler.Tree.Parent(e.ID)
	server := ""
	if e.Target != nil {
		server = e.Target.Server
	}
	return waitingDirectory(tree.NewWaiting(above.ID, e.Name(), server))
}

// serveIdle has the owner of idle serve it.
func (w *world) serveIdle() {
	w.handler.Tree.SetExport(builders.ShareExport("", "fs", "open", "fs-1"))
}

// locationsOf are the locations of a referral, with the attributes that come after them.
func (w *world) locationsOf(t *testing.T, path string, caller rpc.Caller, more ...int) (locations []nfsv4.FsLocation4, rest []byte) {
	t.Helper()
	res, status := w.do(caller, at(path, getattr(append(more, nfsv4.FATTR4_FS_LOCATIONS)...))...)
	if status != nfsv4.NFS4_OK {
		t.Fatalf("fs_locations of %s: %s", path, nfs.StatusName(status))
	}
	given := res[len(res)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes
	values := given.AttrVals
	if hasBit(given.Attrmask, nfsv4.FATTR4_FILEID) {
		values = values[8:]
	}
	reader := bytes.NewReader(values)
	var all nfsv4.FsLocations4
	if _, err := all.ReadFrom(reader); err != nil {
		t.Fatalf("fs_locations %x: %v", given.AttrVals, err)
	}
	return all.Locations, values[len(values)-reader.Len():]
}

func TestAReferralNamesAPlaceToWaitBeforeADataServerThatDoesNotServe(t *testing.T) {
	ipv4, ipv6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	for name, tc := range map[string]struct {
		caller rpc.Caller
		want   []string
	}{
		"inside":                {rpc.Caller{Addr: ipv4}, []string{"10.96.0.1"}},
		"inside, mapped IPv4":   {rpc.Caller{Addr: netip.AddrFrom16(ipv4.As16())}, []string{"10.96.0.1"}},
		"outside, IPv4":         {rpc.Caller{Addr: ipv4, Door: DoorOutside}, []string{"192.0.2.9"}},
		"outside, IPv6":         {rpc.Caller{Addr: ipv6, Door: DoorOutside}, []string{"2001:db8::9"}},
		"inside, of no address": {rpc.Caller{Addr: ipv6}, nil},
	} {
		w := newWaitingWorld(t)
		d := hotServer(1, func(d *internalv1.DataServer) {
			d.Spec.OutsideAddresses, d.Spec.NodeNetworks = []string{"192.0.2.7", "2001:db8::7"}, []string{"10.0.0.0/8", "fd00::/8"}
		})
		w.handler.Tree.SetServer(d)
		if tc.want == nil {
			if _, status := w.do(tc.caller, at(idle)...); status != nfsv4.NFS4ERR_DELAY {
				t.Errorf("%s: LOOKUP is %s, want it to be put off", name, nfs.StatusName(status))
			}
			continue
		}
		if _, status := w.do(tc.caller, at(idle, getfh)...); status != nfsv4.NFS4ERR_MOVED {
			t.Errorf("%s: LOOKUP and GETFH are %s, want a referral at once", name, nfs.StatusName(status))
		}
		locations, _ := w.locationsOf(t, idle, tc.caller)
		if len(locations) != 2 {
			t.Errorf("%s: %d locations, want the place and the data server", name, len(locations))
			continue
		}
		place := []string{w.placeFor(idle)[1:], "idle"}
		if diff := cmp.Diff(nfsv4.FsLocation4{Server: tc.want, Rootpath: place}, locations[0]); diff != "" {
			t.Errorf("%s: the first location (-want +got):\n%s", name, diff)
		}
		w.serveIdle()
		served, _ := w.locationsOf(t, idle, tc.caller)
		if diff := cmp.Diff(served, locations[1:]); diff != "" {
			t.Errorf("%s: the second location is not that of a data server that serves (-want +got):\n%s", name, diff)
		}
	}
}

func TestClientsWaitInTheirPlaceUntilTheDataServerServes(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		want   nfsv4.Nfsstat4
	}{
		"it does not serve yet":      {func(*world) {}, nfsv4.NFS4ERR_DELAY},
		"it serves":                  {func(w *world) { w.serveIdle() }, nfsv4.NFS4ERR_ACCESS},
		"it serves, without answers": {func(w *world) { w.serveIdle(); w.down["fs-1"] = true }, nfsv4.NFS4ERR_DELAY},
		"the directory moved":        {func(w *world) { w.handler.Tree.SetDirectory(moved(t, "fs-0")) }, nfsv4.NFS4_OK},
		"it moved with another identity": {func(w *world) {
			o := moved(t, "fs-0")
			o.Spec.Identity = "another"
			w.handler.Tree.SetDirectory(o)
		}, nfsv4.NFS4_OK},
		"it moved to one that is down": {func(w *world) {
			w.handler.Tree.SetDirectory(moved(t, "fs-0"))
			w.down["fs-0"] = true
		}, nfsv4.NFS4ERR_DELAY},
		"the directory is gone":       {func(w *world) { w.remove(idle) }, nfsv4.NFS4ERR_ACCESS},
		"the server has no such name": {func(w *world) { w.handler.Own = nil }, nfsv4.NFS4ERR_DELAY},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaitingWorld(t)
			place := w.placeFor(idle)
			res, status := w.do(alice, at(place, getfh)...)
			if status != nfsv4.NFS4_OK {
				t.Fatalf("%s: %s", place, nfs.StatusName(status))
			}
			handle := res[len(res)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
			tc.change(w)
			if _, status := w.do(alice, putfh(handle), lookup("idle")); status != tc.want {
				t.Errorf("by its handle: %s, want %s", nfs.StatusName(status), nfs.StatusName(tc.want))
			}
			if _, status := w.do(alice, at(place, lookup("idle"))...); status != tc.want {
				t.Errorf("by its name: %s, want %s", nfs.StatusName(status), nfs.StatusName(tc.want))
			}
		})
	}
}

// The client follows a referral within the one that it follows: the data server that it came for may never be back.
func TestWhoWaitsForADataServerThatADirectoryLeavesIsSentToTheNextOne(t *testing.T) {
	w := newWaitingWorld(t)
	w.handler.Look = func(_ context.Context, target *tree.Target) (nfs.Attributes, error) {
		return nfs.Attributes{Owner: 7}, map[bool]error{true: errors.New("not the owner"), false: nil}[target.Server != "fs-0"]
	}
	before, _ := w.handler.Tree.At(idle)
	place := w.placeFor(idle)
	w.handler.Tree.SetDirectory(moved(t, "fs-0"))
	if _, status := w.do(alice, at(place, lookup("idle"), getfh)...); status != nfsv4.NFS4ERR_MOVED {
		t.Errorf("GETFH is %s, want a referral", nfs.StatusName(status))
	}
	locations, _ := w.locationsOf(t, place+"/idle", alice, nfsv4.FATTR4_OWNER)
	want, _ := w.locationsOf(t, idle, alice)
	if diff := cmp.Diff(want, locations); diff != "" {
		t.Errorf("locations (-of the directory +of the place):\n%s", diff)
	}
	res, _ := w.do(alice, at(place+"/idle", getattr(nfsv4.FATTR4_FS_LOCATIONS, nfsv4.FATTR4_FSID, nfsv4.FATTR4_MOUNTED_ON_FILEID))...)
	given := res[len(res)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes.AttrVals
	var fileid, path values
	fileid.u64(before.ID.FileID())
	path.pathname(place + "/idle")
	if bytes.Contains(given, fileid.Bytes()) {
		t.Error("it has the fileid of the directory itself")
	}
	if !bytes.Contains(given, path.Bytes()) {
		t.Error("fs_root is not the path that the client sees")
	}
}

// moved is idle with another owner.
func moved(t *testing.T, server string) *internalv1.ShareDirectory {
	t.Helper()
	o := directory("open", "plain/idle", server, internalv1.DirectoryReady, 3)
	o.ResourceVersion = "500"
	return o
}

func (w *world) remove(path string) {
	e, _ := w.handler.Tree.At(path)
	w.handler.Tree.DeleteDirectory(e.Share.Name, e.Rel, e.Directory.UID)
}

// Linux makes one of two directories with the same fileid and handle, and takes what has another fsid than the directory above for a mount.
func TestAPlaceToWaitIsADirectoryOfTheNamespaceAndNoOther(t *testing.T) {
	w := newWaitingWorld(t)
	attributes := func(path string) []byte {
		res, status := w.do(alice, at(path, getattr(nfsv4.FATTR4_FSID, nfsv4.FATTR4_FILEID))...)
		if status != nfsv4.NFS4_OK {
			t.Fatalf("%s: %s", path, nfs.StatusName(status))
		}
		return res[len(res)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes.AttrVals
	}
	const fsid = 16 // bytes
	root, place, other := attributes("/"), attributes(w.placeFor(idle)), attributes(w.placeFor("/open/plain/junction"))
	if !bytes.Equal(root[:fsid], place[:fsid]) {
		t.Errorf("its fsid is %x, that of the root %x", place[:fsid], root[:fsid])
	}
	e, _ := w.handler.Tree.At(idle)
	var own values
	own.u64(e.ID.FileID())
	for what, fileid := range map[string][]byte{"the root": root[fsid:], "another place": other[fsid:], "the junction": own.Bytes()} {
		if bytes.Equal(place[fsid:], fileid) {
			t.Errorf("its fileid is that of %s", what)
		}
	}
}

func TestAPlaceToWaitIsGoodForNothingElse(t *testing.T) {
	w := newWaitingWorld(t)
	limited := directory("limited", "d", "fs-0", internalv1.DirectoryReady, 9)
	w.handler.Tree.SetDirectory(limited)
	place := w.placeFor(idle)
	junction, _ := w.handler.Tree.At(idle)
	everything := nfsv4.Readdir4args{Maxcount: 4096, AttrRequest: bitmapOf(nfsv4.FATTR4_RDATTR_ERROR)}
	for name, tc := range map[string]struct {
		ops  ops
		want nfsv4.Nfsstat4
	}{
		"mkdir":                           {at(place, mkdir("x")), nfsv4.NFS4ERR_ROFS},
		"rmdir":                           {at(place, rmdir("idle")), nfsv4.NFS4ERR_ROFS},
		"mv out of it":                    {at(place, savefh, putroot, lookup("open"), rename("idle", "x")), nfsv4.NFS4ERR_ROFS},
		"mv into it":                      {at("/open", savefh, putroot, lookup(place[1:]), rename("plain", "x")), nfsv4.NFS4ERR_XDEV},
		"chmod":                           {at(place, &nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{ObjAttributes: uid5}}), nfsv4.NFS4ERR_ROFS},
		"a file":                          {at(place, open("x", creating)), nfsv4.NFS4ERR_ROFS},
		"another name":                    {at(place, lookup("x")), nfsv4.NFS4ERR_ACCESS},
		"a list":                          {at(place, readdir(everything)), nfsv4.NFS4_OK},
		"another directory than the root": {at("/open", lookup(place[1:])), nfsv4.NFS4ERR_NOENT},
		"a directory of the namespace":    {at(w.placeFor("/open/plain"), lookup("plain")), nfsv4.NFS4ERR_ACCESS},
		"in what is a junction":           {at(waitingDirectory(tree.NewWaiting(junction.ID, "x", ""))), nfsv4.NFS4ERR_STALE},
		"for what is not there":           {at(waitingDirectory(tree.Waiting{In: tree.ID{1}})), nfsv4.NFS4ERR_STALE},
		"for a share that is not seen":    {at(w.placeFor("/limited/d")), nfsv4.NFS4ERR_STALE},
		"with capital letters":            {at("/" + waitingPrefix + "ABCDEF00000000000000000000000000-0000000000000000"), nfsv4.NFS4ERR_NOENT},
		"with too few letters":            {at("/" + waitingPrefix + "00"), nfsv4.NFS4ERR_NOENT},
	} {
		if _, status := w.do(alice, tc.ops...); status != tc.want {
			t.Errorf("%s: %s, want %s", name, nfs.StatusName(status), nfs.StatusName(tc.want))
		}
	}
	res, _ := w.do(alice, at("/", readdir(everything))...)
	list := res[len(res)-1].(*nfsv4.NfsResop4_OP_READDIR).Opreaddir.(*nfsv4.Readdir4res_NFS4_OK).Resok4.Reply
	for e := list.Entries; e != nil; e = e.Nextentry {
		if _, is := placeNamed(e.Name); is {
			t.Errorf("the root lists %s", e.Name)
		}
	}
}

// What Linux shows of a directory before it is entered must not look old: jobs remove what is.
func TestADirectoryThatNoDataServerServesShowsItsMakerAndTheTimeNow(t *testing.T) {
	w := newWaitingWorld(t)
	w.now = w.now.Add(1000 * time.Hour)
	_, got := w.locationsOf(t, idle, alice, nfsv4.FATTR4_OWNER, nfsv4.FATTR4_OWNER_GROUP, nfsv4.FATTR4_TIME_MODIFY, nfsv4.FATTR4_MOUNTED_ON_FILEID)
	e, _ := w.handler.Tree.At(idle)
	var want values
	want.u64(e.ID.FileID())
	if !bytes.Contains(got, want.Bytes()) {
		t.Errorf("attributes %x do not have the fileid %x", got, want.Bytes())
	}
	want = values{}
	want.text("1000")
	want.text("1000")
	want.time(w.now)
	if !bytes.Contains(got, want.Bytes()) {
		t.Errorf("attributes %x do not have owner, group and the time now: %x", got, want.Bytes())
	}
}

// The data server counts as one that answers for some seconds after it has stopped.
func TestAQuestionEndsWhenTheDataServerIsFoundSilent(t *testing.T) {
	w := newWaitingWorld(t)
	w.serveIdle()
	var silent atomic.Bool
	w.handler.Reachable = func(string) bool { return !silent.Load() }
	w.handler.Look = func(ctx context.Context, _ *tree.Target) (nfs.Attributes, error) {
		silent.Store(true)
		select {
		case <-ctx.Done():
			return nfs.Attributes{}, ctx.Err()
		case <-time.After(time.Minute):
			t.Error("the question went on")
			return nfs.Attributes{}, nil
		}
	}
	if locations, _ := w.locationsOf(t, idle, alice, nfsv4.FATTR4_OWNER); len(locations) != 2 {
		t.Errorf("%d locations, want the place to wait and the data server", len(locations))
	}
}

// With a limit to waiting, a client goes on to the data server after it, and meets its own error.
func TestNoClientWaitsInAPlaceForLongerThanMaxWait(t *testing.T) {
	w := newWaitingWorld(t)
	own := w.handler.Own
	w.handler = New(Config{
		Tree: w.handler.Tree, Mutator: w.mutator, Reachable: w.handler.Reachable, Now: w.handler.Now, MaxWait: time.Minute, LeaseSeconds: 60, Own: own,
	})
	place := w.placeFor(idle)
	for i, want := range []struct {
		locations int
		lookup    nfsv4.Nfsstat4
	}{{2, nfsv4.NFS4ERR_DELAY}, {2, nfsv4.NFS4ERR_DELAY}, {1, nfsv4.NFS4ERR_ACCESS}} {
		locations, _ := w.locationsOf(t, idle, alice)
		_, status := w.do(alice, at(place, lookup("idle"))...)
		if len(locations) != want.locations || status != want.lookup {
			t.Errorf("try %d: %d locations and %s, want %d and %s", i, len(locations), nfs.StatusName(status), want.locations, nfs.StatusName(want.lookup))
		}
		w.now = w.now.Add(31 * time.Second)
	}
}

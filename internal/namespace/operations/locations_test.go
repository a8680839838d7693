package operations

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"github.com/google/go-cmp/cmp"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/test/builders"
)

// addressed gives the data server fs-0 its addresses.
func (w *world) addressed(inside string, outside ...string) {
	d := &internalv1.DataServer{}
	d.Name = "fs-0"
	d.Spec = internalv1.DataServerSpec{
		FileServerRef: internalv1.FileServerReference{Name: "fs"}, Address: inside, OutsideAddresses: outside, Volumes: 2,
		NodeNetworks: []string{"10.0.0.0/8", "fd00::/8"},
	}
	d.Status.Conditions = builders.ReadyConditions()
	w.handler.Tree.SetServer(d)
	w.handler.Tree.SetExport(builders.ShareExport("", "fs", "open", d.Name))
}

// referral gives the servers of fs_locations, and how the LOOKUP and the GETATTR ended.
func (w *world) referral(t *testing.T, caller rpc.Caller) (servers []string, status nfsv4.Nfsstat4) {
	t.Helper()
	return w.referralOf(t, "/open/plain/junction", caller)
}

func (w *world) referralOf(t *testing.T, path string, caller rpc.Caller) (servers []string, status nfsv4.Nfsstat4) {
	t.Helper()
	res, status := w.do(caller, at(path, getattr(nfsv4.FATTR4_FS_LOCATIONS))...)
	if status != nfsv4.NFS4_OK {
		return nil, status
	}
	given := res[len(res)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes
	var locations nfsv4.FsLocations4
	if _, err := locations.ReadFrom(bytes.NewReader(given.AttrVals)); err != nil {
		t.Fatalf("fs_locations %x: %v", given.AttrVals, err)
	}
	if len(locations.Locations) != 1 {
		t.Fatalf("%d locations, want one", len(locations.Locations))
	}
	return append([]string{}, locations.Locations[0].Server...), status
}

func TestAReferralHasTheAddressesOfTheDoorThatTheClientCameThrough(t *testing.T) {
	ipv4, ipv6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	both := []string{"192.0.2.7", "2001:db8::7"}
	for name, tc := range map[string]struct {
		door    string
		client  netip.Addr
		inside  string
		outside []string
		want    []string // nil: the client is put off
	}{
		"inside":                                  {"", ipv4, "10.9.0.0", both, []string{"10.9.0.0"}},
		"inside, of another family":               {"", ipv6, "10.9.0.0", both, []string{"10.9.0.0"}},
		"inside, no address yet":                  {"", ipv4, "", both, nil},
		"outside, IPv4":                           {DoorOutside, ipv4, "10.9.0.0", both, []string{"192.0.2.7"}},
		"outside, IPv6":                           {DoorOutside, ipv6, "10.9.0.0", both, []string{"2001:db8::7"}},
		"outside, none of the client's family":    {DoorOutside, ipv6, "10.9.0.0", []string{"192.0.2.7"}, []string{"192.0.2.7"}},
		"outside, a host name is of each family":  {DoorOutside, ipv6, "10.9.0.0", []string{"192.0.2.7", "lb.example.com"}, []string{"lb.example.com"}},
		"outside, several":                        {DoorOutside, ipv4, "10.9.0.0", []string{"192.0.2.8", "192.0.2.7"}, []string{"192.0.2.8", "192.0.2.7"}},
		"outside, no address yet":                 {DoorOutside, ipv4, "10.9.0.0", nil, nil},
		"outside, an inside address is no answer": {DoorOutside, ipv6, "10.9.0.0", nil, nil},
	} {
		w := newWorld(t)
		w.addressed(tc.inside, tc.outside...)
		got, status := w.referral(t, rpc.Caller{Addr: tc.client, UID: 1000, GID: 1000, Door: tc.door})
		if want := map[bool]nfsv4.Nfsstat4{true: nfsv4.NFS4ERR_DELAY, false: nfsv4.NFS4_OK}[tc.want == nil]; status != want {
			t.Errorf("%s: %s, want %s", name, nfs.StatusName(status), nfs.StatusName(want))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Where waiting has a limit, a client that is put off for it gets a referral without servers, and Linux ENOENT from it: never an
// address for others. Clients of the other door don't wait meanwhile.
func TestAClientWithoutAnAddressToGoToWaitsForMaxWaitAtTheMost(t *testing.T) {
	w := newWorld(t)
	w.handler = New(Config{
		Tree: w.handler.Tree, Mutator: w.mutator, Reachable: w.handler.Reachable, Now: w.handler.Now, MaxWait: time.Minute, LeaseSeconds: 60,
	})
	w.addressed("10.9.0.0")
	outside, inside := alice, alice
	outside.Door = DoorOutside
	for i, want := range []string{"NFS4ERR_DELAY", "NFS4ERR_DELAY", "[]"} {
		servers, status := w.referral(t, outside)
		got := nfs.StatusName(status)
		if status == nfsv4.NFS4_OK {
			got = fmt.Sprint(servers)
		}
		if got != want {
			t.Errorf("try %d: %s, want %s", i, got, want)
		}
		if servers, _ := w.referral(t, inside); fmt.Sprint(servers) != "[10.9.0.0]" {
			t.Errorf("try %d: inside %v", i, servers)
		}
		w.now = w.now.Add(31 * time.Second)
	}
}

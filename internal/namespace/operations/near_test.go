package operations

import (
	"fmt"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/hotdirectories"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// place puts data server i on the node of client i, and all data servers of one parity into a zone: clients 64 to 127 are in that of even ones.
func place(i int) func(*internalv1.DataServer) {
	return func(d *internalv1.DataServer) {
		d.Spec.NodeAddresses = []string{fmt.Sprint("10.0.0.", i), fmt.Sprint("fd00::", i+1)}
		if i%2 == 0 {
			d.Spec.ZoneNetworks = []string{"10.0.0.64/26", "10.0.0.0/32"}
		}
	}
}

func (w *world) place(n int) {
	for i := range n {
		w.handler.Tree.SetServer(hotServer(i, place(i)))
	}
}

func TestAClientOfANodeGetsItsNodesDataServerFirst(t *testing.T) {
	for _, k := range []int{2, 3, 5} {
		w := newWorld(t)
		w.heat(k, int32(k))
		w.place(k)
		for i := k - 1; i >= 0; i-- {
			servers, status := w.referral(t, callerAt(i))
			if status != nfsv4.NFS4_OK || servers[0] != fmt.Sprint("10.9.0.", i) || len(servers) != min(k, maxLocations) {
				t.Errorf("%d data servers: the client on the node of %d gets %v, %s", k, i, servers, nfs.StatusName(status))
			}
		}
	}
}

func TestAClientOfAZoneGetsItsDataServersFirstWhileNoneHasFewer(t *testing.T) {
	w := newWorld(t)
	w.heat(4, 4)
	w.place(4)
	even := map[string]bool{"10.9.0.0": true, "10.9.0.2": true}
	count := map[string]int{}
	for i := range 16 {
		servers, _ := w.referral(t, callerAt(64+i))
		count[servers[0]]++
		if i%4 < 2 != even[servers[0]] {
			t.Errorf("client %d of the zone goes to %s", i, servers[0])
		}
	}
	if len(count) != 4 || count["10.9.0.1"] != 4 {
		t.Errorf("16 clients of one zone: %v, want four on each", count)
	}
	// What is tried next is of the zone, too, as far as there is one.
	if servers, _ := w.referral(t, callerAt(100)); !even[servers[0]] || !even[servers[1]] {
		t.Errorf("%v: the second is not of the zone", servers)
	}
}

func TestNoOtherClientIsNear(t *testing.T) {
	w := newWorld(t)
	w.heat(2, 2)
	w.handler.Tree.SetServer(hotServer(1, func(d *internalv1.DataServer) {
		d.Spec.NodeAddresses, d.Spec.OutsideAddresses = []string{"10.0.0.7", "nonsense"}, []string{"192.0.2.1"}
		d.Spec.ZoneNetworks = []string{"10.0.1.0/24", "nonsense"}
	}))
	w.handler.Tree.SetServer(hotServer(0, func(d *internalv1.DataServer) { d.Spec.OutsideAddresses = []string{"192.0.2.0"} }))
	// Each is alone: the routes of those before are forgotten.
	far := func(of func(i int) []string) (count map[string]int) {
		count = map[string]int{}
		for i := range 64 {
			w.handler.routes.forget()
			count[of(i)[0]]++
		}
		return count
	}
	plain := func(i int) []string { servers, _ := w.referral(t, callerAt(512+i)); return servers }
	if count := far(plain); len(count) != 2 {
		t.Errorf("clients at no node: %v, want some on each", count)
	}
	zone := func(i int) []string { servers, _ := w.referral(t, callerAt(256+i)); return servers }
	if count := far(zone); count["10.9.0.1"] != 64 {
		t.Errorf("clients of the zone: %v", count)
	}
	// A load balancer puts a node's address in the place of its client's.
	outside := func(i int) []string {
		caller := callerAt(256 + i)
		caller.Door = DoorOutside
		servers, _ := w.referral(t, caller)
		return servers
	}
	if count := far(outside); len(count) != 2 {
		t.Errorf("clients of the outside door: %v, want some on each", count)
	}
	// The data server has moved to another node, and then is gone.
	w.handler.routes.forget()
	w.handler.Tree.SetServer(hotServer(1, func(d *internalv1.DataServer) { d.Spec.ZoneNetworks = []string{"10.0.2.0/24"} }))
	if count := far(zone); len(count) != 2 {
		t.Errorf("clients of the zone that it left: %v, want some on each", count)
	}
	if count := far(plain); count["10.9.0.1"] != 64 {
		t.Errorf("clients of the zone that it came to: %v", count)
	}
}

// Who was sent somewhere stays there, wherever a nearer data server comes.
func TestANearerDataServerMovesNoClient(t *testing.T) {
	w := newWorld(t)
	w.heat(3, 3)
	first, _ := w.sentTo(t, 3)
	w.place(3)
	if again, _ := w.sentTo(t, 3); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("%v, then %v", first, again)
	}
}

// forget is what a restart does.
func (r *routes) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = hotdirectories.Kept[tree.ID, *route]{}
}

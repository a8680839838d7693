package operations

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/howdah/howdah/internal/hotdirectories"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// inSubnet is one of the addresses of a /64.
func inSubnet(subnet byte, i int) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfd, 7: subnet, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)})
}

// Whoever has one address of IPv6 has all of its /64: as many routes as fit are one machine's work of minutes.
func TestTheAddressesOfOneSubnetDoNotPushOutTheRoutesOfOthers(t *testing.T) {
	s := newSpread(t, 4)
	before, _ := s.ask(50)
	for i := range hotdirectories.MaxKept + hotdirectories.MaxKept/4 {
		s.r.of(tree.ID{2, byte(i), byte(i>>8) % 4}, inSubnet(1, i), s.servers, nil)
	}
	// What is remembered goes before what a client prefers, which is another data server now.
	for i, was := range before {
		order := slices.Clone(s.servers)
		slices.SortStableFunc(order, func(a, b string) int {
			if a == was {
				return 1
			}
			return 0
		})
		if now := s.r.of(tree.ID{1}, callerAt(i).Addr, order, nil); now != was {
			t.Errorf("client %d was sent to %s, and after questions of one /64 to %s", i, was, now)
		}
	}
}

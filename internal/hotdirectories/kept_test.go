package hotdirectories

import (
	"net/netip"
	"testing"
)

func of64(subnet, i int) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfd, 6: byte(subnet >> 8), 7: byte(subnet), 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)})
}

func TestASubnetMakesRoomAtItsOwnCostFirst(t *testing.T) {
	var k Kept[string, int]
	for i := range 100 {
		k.Keep("d", client(i), i)
	}
	n := 0
	for ; k.HasRoom("d", of64(1, n)); n++ {
		k.Keep("d", of64(1, n), n)
	}
	if n != MaxOfSubnet {
		t.Errorf("%d of one /64 are kept, want %d", n, MaxOfSubnet)
	}
	if !k.HasRoom("d", of64(1, 0)) || !k.HasRoom("d", of64(2, 0)) {
		t.Error("no room for who is known, or for another /64")
	}
	k.MakeRoom(of64(1, n))
	if k.count != 100 || len(k.Of("d")) != 100 || len(k.subnets) != 100 || !k.HasRoom("d", of64(1, n)) {
		t.Errorf("%d are kept, %d in the directory, of %d subnets: want 100", k.count, len(k.Of("d")), len(k.subnets))
	}
}

func TestWhereAllRoomIsTakenTheSubnetsWithMostGo(t *testing.T) {
	var k Kept[int, int]
	for i := range 100 {
		k.Keep(i%3, client(i), i)
	}
	for subnet := 0; k.count < MaxKept; subnet++ {
		for i := 0; i < 1000 && k.count < MaxKept; i++ {
			k.Keep(i%3, of64(subnet, i), i)
		}
	}
	if k.HasRoom(0, client(100)) {
		t.Error("more is kept than there is room for")
	}
	k.MakeRoom(client(100))
	if k.count > MaxKept-MaxKept/4 || k.count < MaxKept/2 {
		t.Errorf("%d are kept of %d", k.count, MaxKept)
	}
	for i := range 100 {
		if _, is := k.Of(i % 3)[client(i)]; !is {
			t.Fatalf("client %d is forgotten for the sake of subnets with more", i)
		}
	}
}

package hotdirectories

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/howdah/howdah/internal/subnet"
)

const (
	// MaxKept is how many pairs of directory and client are remembered.
	MaxKept = 1 << 16
	// MaxOfSubnet is how many of them the clients of one subnet have.
	MaxOfSubnet = MaxKept / 4
)

// Kept is what is remembered of clients of directories. The zero value has nothing. It has no lock. Each address is a client, because nodes
// often share a /64. What is bounded is what the addresses of one /64 have together, so they don't take the room of all others.
type Kept[D comparable, V any] struct {
	directories map[D]map[netip.Addr]V
	subnets     map[netip.Addr]int
	count       int
}

// Of is what is remembered of the clients of a directory.
func (k *Kept[D, V]) Of(directory D) map[netip.Addr]V { return k.directories[directory] }

// HasRoom tells whether what is to be remembered of a client can be.
func (k *Kept[D, V]) HasRoom(directory D, client netip.Addr) bool {
	if _, again := k.directories[directory][client]; again {
		return true
	}
	return k.count < MaxKept && k.subnets[subnet.Of(client)] < MaxOfSubnet
}

// Keep remembers a client.
func (k *Kept[D, V]) Keep(directory D, client netip.Addr, v V) {
	if k.directories == nil {
		k.directories, k.subnets = map[D]map[netip.Addr]V{}, map[netip.Addr]int{}
	}
	if k.directories[directory] == nil {
		k.directories[directory] = map[netip.Addr]V{}
	}
	if _, again := k.directories[directory][client]; !again {
		k.count++
		k.subnets[subnet.Of(client)]++
	}
	k.directories[directory][client] = v
}

// Forget forgets what is of no use any more.
func (k *Kept[D, V]) Forget(isOver func(client netip.Addr, v V) bool) {
	for directory, known := range k.directories {
		for client, v := range known {
			if !isOver(client, v) {
				continue
			}
			delete(known, client)
			k.count--
			of := subnet.Of(client)
			if k.subnets[of]--; k.subnets[of] == 0 {
				delete(k.subnets, of)
			}
		}
		if len(known) == 0 {
			delete(k.directories, directory)
		}
	}
}

// MakeRoom forgets what is of use, where there is no room for more of a client: all that its subnet has, if that is too much, and all that the
// subnets with most have, until a quarter of the whole is free. So it need not look at all of it soon again.
func (k *Kept[D, V]) MakeRoom(client netip.Addr) {
	doomed := map[netip.Addr]bool{}
	if of := subnet.Of(client); k.subnets[of] > MaxOfSubnet/2 {
		doomed[of] = true
	}
	left := k.count
	for of := range doomed {
		left -= k.subnets[of]
	}
	byMost := slices.SortedFunc(maps.Keys(k.subnets), func(a, b netip.Addr) int {
		return cmp.Or(cmp.Compare(k.subnets[b], k.subnets[a]), a.Compare(b))
	})
	for _, of := range byMost {
		if left <= MaxKept-MaxKept/4 {
			break
		}
		if !doomed[of] {
			doomed[of] = true
			left -= k.subnets[of]
		}
	}
	k.Forget(func(client netip.Addr, _ V) bool { return doomed[subnet.Of(client)] })
}

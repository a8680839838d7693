package hotdirectories

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"
)

// Serving are the data servers that serve a directory: its owner, and others up to n. Which others goes by the directory and the servers'
// names (rendezvous hashing): when one comes or goes, no more than one of n is another, and not all hot directories have the same.
func Serving(directory, owner string, others []string, n int) []string {
	others = slices.Clone(others)
	others = slices.DeleteFunc(others, func(name string) bool { return name == owner })
	byWeight(others, directory)
	return append([]string{owner}, others[:min(max(n-1, 0), len(others))]...)
}

// Nearness is how near a data server is to a client.
type Nearness int

const (
	// Far is that of all others, and of all if nothing is known.
	Far Nearness = iota
	// SameZone is that of a data server whose node is in the zone of the client's.
	SameZone
	// SameNode is that of a data server that runs on the client.
	SameNode
)

// Order puts data servers in the order in which a client prefers them: the nearest first, and those that are equally near by the client's
// address and the servers' names. So all namespace servers give the same, and without one of them the order of the others stays.
func Order(servers []string, directory string, client netip.Addr, near map[string]Nearness) []string {
	servers = slices.Clone(servers)
	byWeight(servers, directory+" "+client.Unmap().WithZone("").String())
	slices.SortStableFunc(servers, func(a, b string) int { return cmp.Compare(near[b], near[a]) })
	return servers
}

// nodeMore is how many clients more than the one with the fewest a data server may have and still get the client on its own node.
const nodeMore = 1

// Choose is the place in the order of the data server that a new client is sent to: of those with the fewest clients, the one that it
// prefers. By the order alone, five clients would be on three or four of five data servers, and all clients of one zone on the data servers
// there. So a zone decides between equals only. A data server on the client's own node may have nodeMore clients more: its link carries nothing
// for that client. The data servers never differ by more than nodeMore + 1 by new clients.
func Choose(order []string, clients map[string]int, near map[string]Nearness) int {
	fewest := clients[order[0]]
	for _, server := range order {
		fewest = min(fewest, clients[server])
	}
	return slices.IndexFunc(order, func(server string) bool {
		return clients[server] == fewest || near[server] == SameNode && clients[server] <= fewest+nodeMore
	})
}

// byWeight sorts by the hash of each name with a key, and by name where that is equal.
func byWeight(names []string, key string) {
	weights := make(map[string]uint64, len(names))
	for _, name := range names {
		weights[name] = weight(key, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b)) })
}

// weight is FNV-1a with the finalizer of splitmix64: names differ in their last character only, which FNV alone does not spread.
func weight(key, name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(name))
	v := h.Sum64()
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

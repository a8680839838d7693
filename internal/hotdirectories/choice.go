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

// Order puts data servers in the order in which a client prefers them. It goes by the client's address and the servers' names, so all
// namespace servers give the same, and without one of them the order of the others stays.
func Order(servers []string, directory string, client netip.Addr) []string {
	servers = slices.Clone(servers)
	byWeight(servers, directory+" "+client.Unmap().WithZone("").String())
	return servers
}

// Choose is the place in the order of the data server that a new client is sent to: of those with the fewest clients, the one that it
// prefers. By the order alone, five clients would be on three or four of five data servers.
func Choose(order []string, clients map[string]int) int {
	best := 0
	for i, server := range order {
		if clients[server] < clients[order[best]] {
			best = i
		}
	}
	return best
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

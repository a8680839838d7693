package placement

// MaxServers is how many data servers a FileServer can have: the schema's limit of spec.replicas. Nodes can be more.
const MaxServers = 64

// Replicas is how many data servers a FileServer has, and whether less than that was asked for and is refused. needed is the
// lowest number with which every server stays that owns directories: their data is on its volumes, and nowhere else. asked 0
// leaves the number open: then it follows the eligible nodes up, and not down, because a node that is gone for an hour must not cost a server.
func Replicas(asked, existing, eligible, needed int32) (replicas int32, refused bool) {
	switch {
	case asked == 0:
		return min(max(eligible, existing, needed), MaxServers), false
	case asked >= needed:
		return asked, false
	}
	return max(existing, needed), true
}

package tree

// maxTombstones bounds the memory for deleted ShareDirectories. A tombstone is needed for
// as long as a watch may lag, which is far less than this many deletions.
const maxTombstones = 1 << 14

// tombstones are the UIDs of the last deleted ShareDirectories, oldest first.
type tombstones struct {
	uids  map[string]bool
	order []string
}

func (g *tombstones) has(uid string) bool { return g.uids[uid] }

// remove leaves the place in the order, which does no harm.
func (g *tombstones) remove(uid string) { delete(g.uids, uid) }

func (g *tombstones) add(uid string) {
	if uid == "" || g.uids[uid] {
		return
	}
	if len(g.order) >= maxTombstones {
		delete(g.uids, g.order[0])
		g.order = g.order[1:]
	}
	g.uids[uid] = true
	g.order = append(g.order, uid)
}

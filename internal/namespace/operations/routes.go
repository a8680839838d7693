package operations

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/howdah/howdah/internal/hotdirectories"
	"github.com/howdah/howdah/internal/namespace/tree"
)

const (
	// maxLocations is how many data servers a referral names at most: who does not reach the third in a row waits for nothing at the fourth.
	maxLocations = 3
	// routeKept is how long a client counts for the data server that it was sent to, after it asked last. Linux asks again at least whenever the
	// change attribute of the directory above is another (changeEvery), if it uses the path at all.
	routeKept = time.Hour
	// maxRoutes bounds the memory for routes.
	maxRoutes = 1 << 16
)

// routes are the data servers of hot directories that clients were sent to. Any of a directory's data servers is right for any client, so
// what is forgotten, or another namespace server does not know, costs balance only.
type routes struct {
	now func() time.Time

	mu          sync.Mutex
	directories map[tree.ID]map[netip.Addr]*route
	count       int
}

type route struct {
	server string
	last   time.Time
}

// route has the entry of a hot directory name the data server that the caller is to go to, and those that it can try next. Left out are
// those that do not serve the share, do not answer, or have no address for the caller. If none is left, the entry names its owner, which the caller
// waits for.
func (c *compound) route(e *tree.Entry) {
	targets := slices.DeleteFunc(c.h.Tree.Hot(e), func(target *tree.Target) bool {
		return !target.Serves || !c.h.Reachable(target.Server) || len(c.addresses(target)) == 0
	})
	if len(targets) == 0 {
		return
	}
	byName, names, near := map[string]*tree.Target{}, []string{}, map[string]hotdirectories.Nearness{}
	for _, target := range targets {
		byName[target.Server] = target
		names = append(names, target.Server)
		// A load balancer can put a node's address in the place of an outside client's.
		if c.caller.Door != DoorOutside {
			near[target.Server] = c.h.Tree.Nearness(target.Server, c.caller.Addr)
		}
	}
	order := hotdirectories.Order(names, string(e.ID[:]), c.caller.Addr, near)
	chosen := c.h.routes.of(e.ID, c.caller.Addr, order, near)
	e.Target, e.Next = byName[chosen], nil
	for _, name := range order {
		if name != chosen && len(e.Next) < maxLocations-1 {
			e.Next = append(e.Next, byName[name])
		}
	}
}

// of is the data server for a client: the one that it was sent to before, if that is among those in its order, or else the one that
// hotdirectories.Choose gives.
func (r *routes) of(directory tree.ID, client netip.Addr, order []string, near map[string]hotdirectories.Nearness) string {
	client = client.Unmap().WithZone("")
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	known := r.directories[directory]
	if before := known[client]; before != nil && slices.Contains(order, before.server) {
		before.last = now
		return before.server
	}
	if known[client] == nil && r.count >= maxRoutes {
		r.sweep(now)
		known = r.directories[directory]
	}
	clients := map[string]int{}
	for address, other := range known {
		if address != client && now.Sub(other.last) <= routeKept {
			clients[other.server]++
		}
	}
	chosen := order[hotdirectories.Choose(order, clients, near)]
	if known == nil {
		known = map[netip.Addr]*route{}
		r.directories[directory] = known
	}
	if known[client] == nil {
		r.count++
	}
	known[client] = &route{chosen, now}
	return chosen
}

// sweep forgets clients that have not asked for long; if that is nothing, all. r.mu is held.
func (r *routes) sweep(now time.Time) {
	r.count = 0
	for directory, known := range r.directories {
		for client, route := range known {
			if now.Sub(route.last) > routeKept {
				delete(known, client)
			}
		}
		if r.count += len(known); len(known) == 0 {
			delete(r.directories, directory)
		}
	}
	if r.count >= maxRoutes {
		clear(r.directories)
		r.count = 0
	}
}

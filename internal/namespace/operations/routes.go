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
)

// routes are the data servers of hot directories that clients were sent to. Any of a directory's data servers is right for any client, so
// what is forgotten, or another namespace server does not know, costs balance only.
type routes struct {
	now func() time.Time

	mu   sync.Mutex
	kept hotdirectories.Kept[tree.ID, *route]
	// visits are those of directories that can be found to be hot.
	visits hotdirectories.Visits
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
	c.h.routes.begin(e.ID, e.Directory.Server)
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
	if before := r.kept.Of(directory)[client]; before != nil && slices.Contains(order, before.server) {
		before.last = now
		return before.server
	}
	r.makeRoom(directory, client, now)
	clients := map[string]int{}
	for address, other := range r.kept.Of(directory) {
		if address != client && now.Sub(other.last) <= routeKept {
			clients[other.server]++
		}
	}
	chosen := order[hotdirectories.Choose(order, clients, near)]
	r.kept.Keep(directory, client, &route{chosen, now})
	return chosen
}

// looked counts that the caller looked a directory up, and learned that it is elsewhere: what it asks next, it would ask to show it, too.
func (c *compound) looked(e *tree.Entry) {
	search, _ := c.h.Tree.Search(e)
	if !search.IsOn() || !c.isServed(e) {
		return
	}
	r := &c.h.routes
	r.mu.Lock()
	defer r.mu.Unlock()
	r.visits.Look(string(e.ID[:]), c.caller.Addr, r.now())
}

// visited counts that the caller got the location of a directory. If the directory has enough clients to be hot, that is recorded. While its data
// server does not serve, it does not become hot: clients that wait for that data server (waiting.go) know no other.
func (c *compound) visited(e *tree.Entry) {
	search, hot := c.h.Tree.Search(e)
	if !search.IsOn() || !c.isServed(e) {
		return
	}
	clients, now := c.h.routes.visit(e.ID, c.caller.Addr, e.Directory.Server, !hot.IsZero())
	if c.h.FoundHot != nil && search.Records(clients, hot, now, func() int { return len(c.h.Tree.Found(e.Share.Name)) }) {
		c.h.FoundHot(*e)
	}
}

// visit counts that a client got the location of a directory, and gives how many clients use it. While it is not hot, whoever enters it is at its owner.
func (r *routes) visit(directory tree.ID, client netip.Addr, owner string, hot bool) (clients int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now = r.now()
	clients, enters := r.visits.Note(string(directory[:]), client, now)
	if known := r.kept.Of(directory)[client.Unmap().WithZone("")]; known != nil && enters && !hot {
		known.server, known.last = owner, now
	}
	return clients, now
}

// begin has clients that entered a directory before it was hot count for its owner, so that those that come now go to the others.
func (r *routes) begin(directory tree.ID, owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept.Of(directory) != nil {
		return
	}
	now := r.now()
	for _, client := range r.visits.Entered(string(directory[:]), now) {
		r.makeRoom(directory, client, now)
		r.kept.Keep(directory, client, &route{owner, now})
	}
}

// makeRoom forgets clients that have not asked for long, and others if that is not enough. r.mu is held.
func (r *routes) makeRoom(directory tree.ID, client netip.Addr, now time.Time) {
	if r.kept.HasRoom(directory, client) {
		return
	}
	r.kept.Forget(func(_ netip.Addr, route *route) bool { return now.Sub(route.last) > routeKept })
	r.kept.MakeRoom(client)
}

package ceph

import (
	"slices"
	"sync"
)

// watching has the watchers of the grace object that were seen while ganesha ran: ganesha's own connections to the
// recovery records. They remain after ganesha has ended. A ganesha that ends within seconds of its start may not have
// been seen.
type watching struct {
	mutex     sync.Mutex
	addresses []string
	// empty: there is certainly no watcher, because no ganesha has been started yet.
	empty bool
	// ours are the watchers since the last start of ganesha; nil if none was seen yet. dead are those of earlier starts.
	ours, dead []string
}

func (w *watching) set(addresses []string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.addresses, w.empty = addresses, false
	if seen := without(addresses, w.dead); len(seen) > 0 && (w.ours == nil || overlap(seen, w.ours)) {
		w.ours = seen
	}
}

// setBeforeFirst sets the watchers before the first start, when no new ones can appear.
func (w *watching) setBeforeFirst(addresses []string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.addresses, w.empty, w.dead = addresses, len(addresses) == 0, addresses
}

// take returns and clears the watchers. It is called while no ganesha runs, so all of them are dead. known is false if
// none was seen while a ganesha ran.
func (w *watching) take() (addresses []string, known bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	addresses, known = w.addresses, w.empty || len(w.addresses) > 0
	w.addresses, w.empty, w.ours = nil, false, nil
	w.addDead(addresses)
	return addresses, known
}

// bury adds dead watchers that were not seen while a ganesha ran.
func (w *watching) bury(dead []string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.addDead(dead)
}

// addDead keeps the newest: Ceph ends a watch 30 s after its client.
func (w *watching) addDead(dead []string) {
	const most = 64
	w.dead = append(without(w.dead, dead), dead...)
	w.dead = w.dead[max(0, len(w.dead)-most):]
}

// knowsOurs tells whether this pod's ganesha was seen as a watcher since its last start.
func (w *watching) knowsOurs() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.ours != nil
}

// successors are those of the current watchers that belong to another pod of this data server: none of this pod's ganesha watches any more,
// because Ceph has shut it out (failover), and others do.
func (w *watching) successors(current []string) []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	others := without(current, w.dead)
	if w.ours == nil || overlap(others, w.ours) {
		return nil
	}
	return others
}

func without(all, these []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(these, one) })
}

func overlap(x, y []string) bool {
	return slices.ContainsFunc(x, func(one string) bool { return slices.Contains(y, one) })
}

package ceph

import "sync"

// watching has the watchers of the grace object that were seen while ganesha ran: ganesha's own connections to the
// recovery records. They remain after ganesha has ended. A ganesha that ends within seconds of its start may not have
// been seen.
type watching struct {
	mutex     sync.Mutex
	addresses []string
	// empty: there is certainly no watcher, because no ganesha has been started yet.
	empty bool
}

func (w *watching) set(addresses []string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.addresses, w.empty = addresses, false
}

// setBeforeFirst sets the watchers before the first start, when no new ones can appear.
func (w *watching) setBeforeFirst(addresses []string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.addresses, w.empty = addresses, len(addresses) == 0
}

// take returns and clears the watchers. It is called while no ganesha runs, so all of them are dead. known is false if
// none was seen while a ganesha ran.
func (w *watching) take() (addresses []string, known bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	addresses, known = w.addresses, w.empty || len(w.addresses) > 0
	w.addresses, w.empty = nil, false
	return addresses, known
}

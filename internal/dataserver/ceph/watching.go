package ceph

import "sync"

// watching is who was seen to watch the grace object while ganesha ran: its connection to the recovery records. When ganesha has ended, they are
// what is left of it. One that ends within seconds of its start may not have been seen.
type watching struct {
	mutex     sync.Mutex
	addresses []string
	// nobody: it is known that there is nobody, since no ganesha was started yet.
	nobody bool
}

func (w *watching) set(addresses []string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.addresses, w.nobody = addresses, false
}

// setBeforeFirst is for the time before the first start, when nobody comes any more.
func (w *watching) setBeforeFirst(addresses []string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.addresses, w.nobody = addresses, len(addresses) == 0
}

// take is called while no ganesha runs, so all are dead. It is not known who watches if nobody was seen while one ran.
func (w *watching) take() (addresses []string, known bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	addresses, known = w.addresses, w.nobody || len(w.addresses) > 0
	w.addresses, w.nobody = nil, false
	return addresses, known
}

package ceph

import "sync"

// watching is who was seen to watch the grace object while ganesha ran: its connection to the recovery records. When ganesha has ended, they are
// what is left of it. One that ends within seconds of its start may not have been seen.
type watching struct {
	mutex     sync.Mutex
	addresses []string
}

func (w *watching) set(addresses []string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.addresses = addresses
}

// take is called while no ganesha runs, so all are dead.
func (w *watching) take() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	addresses := w.addresses
	w.addresses = nil
	return addresses
}

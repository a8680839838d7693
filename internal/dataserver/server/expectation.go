package server

import (
	"sync"
	"sync/atomic"
	"time"
)

// Expectation is what a healthy data server answers. The exporter sets it and the probes read it. The zero value is for
// a server that has just started.
type Expectation struct {
	generation   atomic.Int64
	stopping     atomic.Bool
	readyAt      atomic.Pointer[time.Time] // With its monotonic part: clocks are put back.
	clearedStart atomic.Int64

	mutex        sync.Mutex
	owner, scope string
}

// SetIdentity sets the server owner and scope that ganesha must return.
func (e *Expectation) SetIdentity(owner, scope string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.owner, e.scope = owner, scope
}

// Identity is the server owner and scope that ganesha must return.
func (e *Expectation) Identity() (owner, scope string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.owner, e.scope
}

// SetGeneration sets the newest generation of the DataServer that was fully served; 0 is none.
func (e *Expectation) SetGeneration(generation int64) { e.generation.Store(generation) }

// ServedGeneration is the newest generation that was fully served; 0 is none.
func (e *Expectation) ServedGeneration() int64 { return e.generation.Load() }

// SetStopping makes the server not ready from now on.
func (e *Expectation) SetStopping() { e.stopping.Store(true) }

// IsStopping is true once the server is being stopped.
func (e *Expectation) IsStopping() bool { return e.stopping.Load() }

// ClearStart records that ganesha refuses forged file handles since this start (counted from 1), or that there is no
// export to try one.
func (e *Expectation) ClearStart(start int) { e.clearedStart.Store(int64(start)) }

// isCleared is true if that start of ganesha refuses forged file handles.
func (e *Expectation) isCleared(start int) bool { return e.clearedStart.Load() == int64(start) }

// setReady records that the server was ready at this time.
func (e *Expectation) setReady(at time.Time) { e.readyAt.Store(&at) }

// lastReady is when the server was last ready; ok is false if it never was.
func (e *Expectation) lastReady() (at time.Time, ok bool) {
	last := e.readyAt.Load()
	if last == nil {
		return time.Time{}, false
	}
	return *last, true
}

package rpc

import (
	"sync"
	"time"
)

const (
	// recordOverhead is what a waiting reply costs beside its bytes.
	recordOverhead = 256
	// writeStep is how much is written before it counts as progress.
	writeStep = 32 << 10
)

// outbox is the replies of a connection that are not written yet. Whoever puts the first one in
// writes all that follow, so that one goroutine at most waits for a client that does not read.
type outbox struct {
	mu      sync.Mutex
	records [][]byte
	writing bool
}

// charged is what a reply counts for until it is written.
func charged(record []byte) int { return cap(record) + recordOverhead }

// send writes a reply that was charged, or leaves it to the goroutine that is writing.
func (c *connection) send(record []byte) {
	o := &c.outbox
	o.mu.Lock()
	o.records = append(o.records, record)
	if o.writing {
		o.mu.Unlock()
		return
	}
	o.writing = true
	for len(o.records) > 0 {
		next := o.records[0]
		o.records[0] = nil
		o.records = o.records[1:]
		o.mu.Unlock()
		if !c.gone.Load() {
			c.write(next)
		}
		c.server.taken(c, charged(next))
		o.mu.Lock()
	}
	c.stuckSince.Store(0)
	o.records, o.writing = nil, false
	o.mu.Unlock()
}

// write gives the client one reply. If it does not take it, the connection ends: part of a
// record may be out, and nothing can follow it.
func (c *connection) write(record []byte) {
	deadline := time.Now().Add(c.server.limits.Write)
	err := c.conn.SetWriteDeadline(deadline)
	for len(record) > 0 && err == nil {
		c.stuckSince.Store(time.Now().UnixNano())
		n := min(len(record), writeStep)
		n, err = c.conn.Write(record[:n])
		record = record[n:]
	}
	if err != nil {
		c.server.log.Debug("A reply could not be written", "client", c.address, "error", err)
		c.abandon()
	}
}

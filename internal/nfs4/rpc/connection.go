package rpc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"
)

// lingerTime and lingerBytes bound what is read after the last reply, so that
// the kernel closes with FIN, not with RST, which could overtake that reply.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 1 << 20
)

// connection is one TCP connection: one goroutine that reads, one for each request.
type connection struct {
	server  *Server
	conn    net.Conn
	address netip.Addr
	reader  *bufio.Reader
	slots   chan struct{}
	pending sync.WaitGroup
	write   sync.Mutex
	broken  sync.Once
}

func newConnection(server *Server, conn net.Conn, address netip.Addr) *connection {
	return &connection{
		server: server, conn: conn, address: address, reader: bufio.NewReaderSize(conn, readStep),
		slots: make(chan struct{}, server.limits.RequestsPerConnection),
	}
}

// serve reads requests until the client or stopping ends, then waits for those in flight
// (until requests ends) and closes.
func (c *connection) serve(stopping, requests context.Context) {
	defer context.AfterFunc(stopping, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })()
	err := c.readRequests(stopping, requests)
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), stopping.Err() != nil:
	default:
		c.server.log.Debug("A connection ends", "client", c.address, "error", err)
	}
	if errors.Is(err, ErrTooLarge) || errors.Is(err, errNotACall) {
		c.abandon()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.pending.Wait()
	}()
	select {
	case <-done:
	case <-requests.Done():
		// What they reply now would be the reply of a request that was cut short:
		// without one, the client asks another server.
		c.abandon()
		<-done
	}
	c.close()
}

func (c *connection) readRequests(stopping, requests context.Context) error {
	limits := c.server.limits
	for {
		if err := c.acquire(stopping); err != nil {
			return err
		}
		message, reserved, err := c.readMessage(stopping, limits)
		if err != nil {
			c.server.buffered.Add(-int64(reserved))
			<-c.slots
			return err
		}
		select {
		case c.server.requests <- struct{}{}:
		case <-stopping.Done():
			c.server.buffered.Add(-int64(reserved))
			<-c.slots
			return stopping.Err()
		}
		c.server.inFlight.Add(1)
		c.pending.Go(func() {
			defer func() {
				c.server.buffered.Add(-int64(reserved))
				c.server.inFlight.Add(-1)
				<-c.server.requests
				<-c.slots
			}()
			c.execute(requests, message)
		})
	}
}

// acquire waits until fewer than the permitted number of requests are in flight.
func (c *connection) acquire(stopping context.Context) error {
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-stopping.Done():
		return stopping.Err()
	}
}

func (c *connection) readMessage(stopping context.Context, limits Limits) (message []byte, reserved int, err error) {
	if err := c.deadline(stopping, limits.Idle); err != nil {
		return nil, 0, err
	}
	if _, err := c.reader.Peek(1); err != nil {
		return nil, 0, err
	}
	if err := c.deadline(stopping, limits.Receive); err != nil {
		return nil, 0, err
	}
	message, err = readRecord(c.reader, limits.MessageBytes, func(bytes int) bool {
		if !c.server.reserve(bytes) {
			return false
		}
		reserved += bytes
		return true
	})
	return message, reserved, err
}

// deadline limits the next reads. At shutdown another goroutine sets the deadline to the
// past, so it is looked at after the deadline was set here.
func (c *connection) deadline(stopping context.Context, timeout time.Duration) error {
	if err := c.conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	return stopping.Err()
}

func (c *connection) execute(ctx context.Context, message []byte) {
	record, err := answer(ctx, guarded{c}, Caller{Addr: c.address}, message)
	if err != nil {
		c.server.log.Debug("A message can't be answered", "client", c.address, "error", err)
		c.abandon()
		return
	}
	if ctx.Err() != nil {
		return
	}
	c.write.Lock()
	defer c.write.Unlock()
	err = c.conn.SetWriteDeadline(time.Now().Add(c.server.limits.Write))
	if err == nil {
		_, err = c.conn.Write(record)
	}
	if err != nil {
		// Part of a record may be out: nothing can follow it.
		c.server.log.Debug("A reply could not be written", "client", c.address, "error", err)
		c.abandon()
	}
}

// guarded is the handler, with a panic turned into an error of the one request.
type guarded struct{ c *connection }

func (g guarded) Compound(ctx context.Context, caller Caller, args []byte) (results []byte, stat rpcv2.AcceptStat) {
	defer func() {
		if problem := recover(); problem != nil {
			g.c.server.log.Error("A request made the server panic; please report it", "client", caller.Addr, "panic", problem, "stack", string(debug.Stack()))
			results, stat = nil, rpcv2.SYSTEM_ERR
		}
	}()
	return g.c.server.handler.Compound(ctx, caller, args)
}

// abandon closes at once, without waiting for anything.
func (c *connection) abandon() {
	c.broken.Do(func() { _ = c.conn.Close() })
}

// close ends the stream after the last reply.
func (c *connection) close() {
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		if c.conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
			_, _ = io.CopyN(io.Discard, c.conn, lingerBytes)
		}
	}
	c.abandon()
}

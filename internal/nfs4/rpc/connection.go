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
	"sync/atomic"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/rpcv2"
)

// lingerTime and lingerBytes bound what is read after the last reply, so that
// the kernel closes with FIN, not with RST, which could overtake that reply.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 1 << 20
)

// readBuffer is what every connection has for reading, however idle; most requests fit.
const readBuffer = 512

// connection is one TCP connection: one goroutine that reads, one for each request that is being executed, and the
// last of these goes on as the one that writes.
type connection struct {
	server *Server
	conn   net.Conn
	// address and port are the client's, and client what limits are kept for.
	port            uint16
	address, client netip.Addr
	// door is the listener's name.
	door   string
	link   *Link
	reader *bufio.Reader

	pending sync.WaitGroup
	broken  sync.Once
	gone    atomic.Bool
	outbox  outbox
	// stuckSince is when the client last accepted bytes of what is being written, in Unix nanoseconds; 0: nothing is.
	stuckSince atomic.Int64

	// The rest is guarded by the server's lock.
	account *account
	// room is what the reader waits on for the connection's own limits.
	room      *sync.Cond
	executing int
	replies   int
	// greeted is true after the first whole request; active is when the last one, or the connection, came.
	greeted bool
	active  time.Time
	ending  bool
	// dismissed is true once it was closed for the sake of others.
	dismissed bool
}

func newConnection(server *Server, conn net.Conn, address netip.Addr, door string) *connection {
	return &connection{
		server: server, conn: conn, address: address, port: clientPort(conn), client: server.client(address), door: door, link: &Link{},
		reader: bufio.NewReaderSize(conn, readBuffer), room: sync.NewCond(&server.mu), active: time.Now(),
	}
}

// ends is true when nothing more is to be read.
func (c *connection) ends() bool { return c.ending || c.gone.Load() }

// serve reads requests until the client or stopping ends, then waits for those in flight
// (until requests ends) and closes.
func (c *connection) serve(stopping, requests context.Context) {
	defer c.link.End()
	defer context.AfterFunc(stopping, func() {
		_ = c.conn.SetReadDeadline(time.Unix(1, 0))
		c.server.end(c)
	})()
	err := c.readRequests(stopping, requests)
	c.link.End() // Requests in flight may take long.
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
	s := c.server
	idle := s.limits.Greeting
	for {
		if !s.awaitRoom(c) {
			return net.ErrClosed
		}
		message, reserved, err := c.readMessage(stopping, idle)
		if err != nil {
			s.unreserve(c, reserved)
			return err
		}
		if !s.awaitTurn(c) {
			s.unreserve(c, reserved)
			return net.ErrClosed
		}
		idle = s.limits.Idle
		c.pending.Go(func() {
			record, kept := c.execute(requests, message)
			s.unreserve(c, reserved)
			charge := 0
			if record != nil {
				charge = charged(record)
			}
			s.executed(c, kept, charge)
			if record != nil {
				c.send(record)
			}
		})
	}
}

func (c *connection) readMessage(stopping context.Context, idle time.Duration) (message []byte, reserved int, err error) {
	limits := &c.server.limits
	if err := c.deadline(stopping, idle); err != nil {
		return nil, 0, err
	}
	if _, err := c.reader.Peek(1); err != nil {
		return nil, 0, err
	}
	if err := c.deadline(stopping, limits.Receive); err != nil {
		return nil, 0, err
	}
	message, err = readRecord(c.reader, limits.MessageBytes, func(bytes int) bool {
		if !c.server.reserve(c, bytes) {
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

// execute gives the reply to a message, or nil for none, and the memory that was kept for it.
func (c *connection) execute(ctx context.Context, message []byte) (record []byte, kept int) {
	caller := Caller{Addr: c.address, Client: c.client, Port: c.port, Door: c.door, Link: c.link, Keep: func(bytes int) bool {
		if !c.server.keep(c, bytes) {
			return false
		}
		kept += bytes
		return true
	}}
	record, err := answer(ctx, guarded{c}, caller, message)
	if err != nil {
		c.server.log.Debug("A message can't be answered", "client", c.address, "error", err)
		c.abandon()
		return nil, kept
	}
	if ctx.Err() != nil {
		return nil, kept
	}
	return record, kept
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
	c.gone.Store(true)
	c.link.End()
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

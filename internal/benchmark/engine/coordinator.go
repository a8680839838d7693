package engine

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/howdah/howdah/internal/benchmark"
)

const (
	// gatherTimeout is how long the coordinator waits for all clients to connect.
	gatherTimeout = 10 * time.Minute
	// stallTimeout is the longest time between two barriers: a mount that hangs must end the run.
	stallTimeout = 5 * time.Minute
)

// coordinator keeps the clients in step and collects their measurements.
type coordinator struct {
	plan     benchmark.Plan
	id       string
	token    string
	counters *counters
	journal  Journal
	log      *slog.Logger

	members []*member
	events  chan event
}

// member is a client that has proved that it has the token.
type member struct {
	client int
	name   string
	link   *link
	// barrier is the number of the barrier that it waits at, -1 for none.
	barrier int
	bytes   int64
	report  *benchmark.ClientReport
}

func (m *member) String() string { return fmt.Sprintf("client %d (%s)", m.client, m.name) }

// event is a message of a member, or the end of its connection.
type event struct {
	member  *member
	message message
	err     error
}

// outcome is the result of a run.
type outcome struct {
	reports []benchmark.ClientReport
	servers []benchmark.ServerBytes
}

// run serves the listener until all clients have reported or one has failed. It sends the reason to the connected clients.
func (c *coordinator) run(ctx context.Context, listener net.Listener) (outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.events = make(chan event)
	context.AfterFunc(ctx, func() { _ = listener.Close() }) // ends accept
	joined := make(chan *member)
	go c.accept(ctx, listener, joined)

	result, err := c.conduct(ctx, joined)
	last := message{Kind: kindDone}
	if err != nil {
		last = message{Kind: kindAbort, Reason: err.Error()}
	}
	for _, m := range c.members {
		if m != nil {
			_ = m.link.send(last) // a client that misses it sees the connection close
			m.link.close()
		}
	}
	return result, err
}

func (c *coordinator) accept(ctx context.Context, listener net.Listener, joined chan<- *member) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			m, err := c.greet(conn)
			if err != nil {
				c.log.Warn("refused a connection without the token of this run", "address", conn.RemoteAddr().String(), "error", err)
				_ = conn.Close()
				return
			}
			select {
			case joined <- m:
			case <-ctx.Done():
				_ = conn.Close()
			}
		}()
	}
}

// greet checks that the peer has the token.
func (c *coordinator) greet(conn net.Conn) (*member, error) {
	l := newLink(conn)
	nonce := newNonce()
	if err := l.send(message{Kind: kindChallenge, Nonce: nonce}); err != nil {
		return nil, err
	}
	hello, err := l.next(maxHello)
	switch {
	case err != nil:
		return nil, err
	case hello.Kind != kindHello || !hmac.Equal(hello.Proof, proof(c.token, nonce)):
		return nil, errors.New("the token is wrong")
	case hello.Client < 0 || hello.Client >= c.plan.Clients:
		return nil, fmt.Errorf("the client's number is %d, but the run has %d clients", hello.Client, c.plan.Clients)
	}
	return &member{client: hello.Client, name: hello.Name, link: l, barrier: -1}, nil
}

// conduct is the life of a run: gather, pass barriers, collect.
func (c *coordinator) conduct(ctx context.Context, joined <-chan *member) (outcome, error) {
	c.members = make([]*member, c.plan.Clients)
	if err := c.gather(ctx, joined); err != nil {
		return outcome{}, err
	}
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	stall := time.NewTimer(stallTimeout)
	defer stall.Stop()
	barriers := newMeter(c.plan)
	for {
		select {
		case <-ctx.Done():
			return outcome{}, fmt.Errorf("the coordinator was stopped: %w", context.Cause(ctx))
		case <-stall.C:
			return outcome{}, fmt.Errorf("no step ended within %s: %s did not finish; check whether its mount of the share hangs", stallTimeout, c.missing(barriers.next))
		case <-ticker.C:
			c.report(ctx, barriers.String())
		case e := <-c.events:
			if err := c.take(e, barriers.next); err != nil {
				return outcome{}, err
			}
			if c.allReported() {
				return c.collect(ctx), nil
			}
			if c.allAt(barriers.next) {
				if err := c.release(ctx, barriers); err != nil {
					return outcome{}, err
				}
				stall.Reset(stallTimeout)
			}
		}
	}
}

// gather waits for all clients.
func (c *coordinator) gather(ctx context.Context, joined <-chan *member) error {
	timeout := time.NewTimer(gatherTimeout)
	defer timeout.Stop()
	for count := 0; count < c.plan.Clients; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the coordinator was stopped: %w", context.Cause(ctx))
		case <-timeout.C:
			return fmt.Errorf("%s did not connect within %s", c.missing(0), gatherTimeout)
		case m := <-joined:
			if c.members[m.client] != nil {
				return fmt.Errorf("%s connected twice: its pod was restarted", m)
			}
			c.members[m.client] = m
			count++
			c.log.Info("client joined", "client", m.client, "name", m.name, "joined", count, "clients", c.plan.Clients)
			c.report(ctx, fmt.Sprintf("%d of %d clients have connected", count, c.plan.Clients))
			go m.link.keepAlive(ctx)
			go c.listen(ctx, m)
		case e := <-c.events:
			if err := c.take(e, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *coordinator) listen(ctx context.Context, m *member) {
	for {
		received, err := m.link.receive(maxMessage)
		select {
		case c.events <- event{member: m, message: received, err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// take records an event while the clients are on their way to barrier next.
func (c *coordinator) take(e event, next int) error {
	m := e.member
	if e.err != nil {
		return fmt.Errorf("lost the connection to %s: %s", m, lossReason(e.err))
	}
	switch e.message.Kind {
	case kindArrive:
		if e.message.Barrier != next || m.barrier == next {
			return fmt.Errorf("%s is out of step: it arrived at barrier %d instead of %d; check that all pods have the same image", m, e.message.Barrier, next)
		}
		m.barrier, m.bytes = e.message.Barrier, e.message.Bytes
	case kindReport:
		m.report = e.message.Report
	case kindFail:
		return fmt.Errorf("%s failed: %s", m, e.message.Reason)
	default:
		return fmt.Errorf("%s sent a message of unknown kind %q; check that all pods have the same image", m, e.message.Kind)
	}
	return nil
}

func (c *coordinator) allAt(barrier int) bool {
	for _, m := range c.members {
		if m == nil || m.barrier != barrier {
			return false
		}
	}
	return true
}

func (c *coordinator) allReported() bool {
	for _, m := range c.members {
		if m == nil || m.report == nil {
			return false
		}
	}
	return true
}

// missing names the clients that are not connected, or not at the barrier.
func (c *coordinator) missing(barrier int) string {
	var names []string
	for i, m := range c.members {
		switch {
		case m == nil:
			names = append(names, fmt.Sprintf("client %d", i))
		case m.barrier != barrier:
			names = append(names, m.String())
		}
	}
	return strings.Join(names, ", ")
}

// release lets all clients pass the barrier that they wait at. Before the first
// one, when nothing is being read, the counters of the servers are read.
func (c *coordinator) release(ctx context.Context, barriers *meter) error {
	if barriers.next == 0 {
		c.counters.before(ctx)
	}
	bytes := int64(0)
	for _, m := range c.members {
		bytes += m.bytes
	}
	passed := barriers.pass(bytes, time.Now())
	for _, m := range c.members {
		if err := m.link.send(message{Kind: kindRelease, Barrier: passed}); err != nil {
			return fmt.Errorf("lost the connection to %s: %s", m, lossReason(err))
		}
	}
	return nil
}

func (c *coordinator) collect(ctx context.Context) outcome {
	result := outcome{servers: c.counters.after(ctx)}
	for _, m := range c.members {
		result.reports = append(result.reports, *m.report)
	}
	return result
}

// report writes the progress. A journal that does not answer must not delay the barriers.
func (c *coordinator) report(ctx context.Context, progress string) {
	c.log.Info("running", "progress", progress)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, progressEvery)
		defer cancel()
		if err := c.journal.Record(ctx, map[string]string{benchmark.KeyProgress(c.id): progress}); err != nil && ctx.Err() == nil {
			c.log.Warn("progress was not recorded", "error", err)
		}
	}()
}

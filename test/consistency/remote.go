package consistency

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// WireRequest asks an agent for an operation. Paths are below Root.
type WireRequest struct {
	ID   int
	Root string
	Request
}

// WireAnswer is the agent's answer to the request with the same ID.
type WireAnswer struct {
	ID int
	Answer
}

// Agent is a connection to an agent in a client pod (folder agent). Any number of clients use it at the same time.
type Agent struct {
	mu      sync.Mutex
	to      io.Writer
	next    int
	waiting map[int]chan Answer
	gone    chan struct{}
	err     error
}

// NewAgent talks with an agent by its standard input and output.
func NewAgent(to io.Writer, from io.Reader) *Agent {
	a := &Agent{to: to, waiting: map[int]chan Answer{}, gone: make(chan struct{})}
	go a.listen(from)
	return a
}

func (a *Agent) listen(from io.Reader) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var answer WireAnswer
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			a.err = fmt.Errorf("the agent answered %q: %w", lines.Text(), err)
			break
		}
		a.mu.Lock()
		if answered := a.waiting[answer.ID]; answered != nil {
			answered <- answer.Answer
			delete(a.waiting, answer.ID)
		}
		a.mu.Unlock()
	}
	if a.err == nil {
		a.err = fmt.Errorf("the connection to the agent ended: %w", io.ErrUnexpectedEOF)
	}
	close(a.gone)
}

func (a *Agent) do(ctx context.Context, root string, r Request) (Answer, error) {
	answered := make(chan Answer, 1)
	a.mu.Lock()
	a.next++
	line, err := json.Marshal(WireRequest{a.next, root, r})
	if err == nil {
		a.waiting[a.next] = answered
		_, err = a.to.Write(append(line, '\n'))
	}
	a.mu.Unlock()
	if err != nil {
		return Answer{}, fmt.Errorf("ask the agent: %w", err)
	}
	select {
	case answer := <-answered:
		return answer, nil
	case <-a.gone:
		return Answer{}, a.err
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

// Remote is a client that works through an agent. It does not know where the kernel sends its requests, and whether it sends them
// twice: see History.TwiceDuring.
type Remote struct {
	Agent *Agent
	// Directories and Files are the folders of requests about directories and about files.
	Directories, Files string
}

// Server implements Client.
func (*Remote) Server() string { return "" }

// Do implements Client.
func (c *Remote) Do(ctx context.Context, r Request) (Answer, bool, error) {
	root := c.Directories
	if r.Kind == Read || r.Kind == Write || r.Kind == Swap {
		root = c.Files
	}
	answer, err := c.Agent.do(ctx, root, r)
	return answer, false, err
}

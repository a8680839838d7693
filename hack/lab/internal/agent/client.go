package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/plan"
	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// Client runs commands inside one node.
type Client struct {
	Instance string
	IP       string
	Token    string
}

// ExitError is the exit status of a command that ran and failed.
type ExitError int

func (e ExitError) Error() string {
	return fmt.Sprintf("exit status %d", int(e))
}

// Run runs a command; any of the streams may be nil.
func (c Client) Run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	conn, err := c.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	out := &framer{out: conn}
	if err := out.writeJSON(frameRequest, Request{Token: c.Token, Args: args}); err != nil {
		return err
	}
	go func() {
		if stdin != nil {
			// The command may end without having read everything: no error of ours.
			_, _ = io.Copy(out.stream(frameStdin), stdin)
		}
		_ = out.write(frameStdinEnd, nil)
	}()
	for {
		kind, data, err := readFrame(conn)
		if err != nil {
			return fmt.Errorf("connection to the node's agent: %w", err)
		}
		switch kind {
		case frameStdout:
			err = copyTo(stdout, data)
		case frameStderr:
			err = copyTo(stderr, data)
		case frameExit:
			return exitError(data)
		}
		if err != nil {
			return err
		}
	}
}

func copyTo(w io.Writer, data []byte) error {
	if w == nil {
		return nil
	}
	_, err := w.Write(data)
	return err
}

func exitError(data []byte) error {
	var status int
	if err := json.Unmarshal(data, &status); err != nil {
		return err
	}
	if status != 0 {
		return ExitError(status)
	}
	return nil
}

func (c Client) dial() (net.Conn, error) {
	var conn net.Conn
	err := sys.InNetNS(plan.NetNS(c.Instance), func() (err error) {
		// An IP address and one attempt: a dialer that starts goroutines would open
		// its socket on another thread, outside the namespace.
		address := net.JoinHostPort(c.IP, strconv.Itoa(plan.AgentPort))
		conn, err = net.DialTimeout("tcp", address, 5*time.Second)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the node's agent does not answer: %w", err)
	}
	return conn, nil
}

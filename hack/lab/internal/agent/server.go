package agent

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// Serve answers requests until the listener is closed.
func Serve(listener net.Listener, token string) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go serveOne(conn, token)
	}
}

func serveOne(conn net.Conn, token string) {
	defer conn.Close()
	kind, data, err := readFrame(conn)
	var request Request
	if err != nil || kind != frameRequest || json.Unmarshal(data, &request) != nil {
		return
	}
	out := &framer{out: conn}
	if subtle.ConstantTimeCompare([]byte(request.Token), []byte(token)) != 1 || len(request.Args) == 0 {
		_ = out.write(frameStderr, []byte("lab agent: refused\n"))
		_ = out.writeJSON(frameExit, 126)
		return
	}
	status, err := execute(conn, out, request.Args)
	if err != nil {
		_ = out.write(frameStderr, []byte("lab agent: "+err.Error()+"\n"))
	}
	_ = out.writeJSON(frameExit, status) // A host that has gone needs no status.
}

func execute(conn net.Conn, out *framer, args []string) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = out.stream(frameStdout), out.stream(frameStderr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// A command may leave a daemon that keeps its output open; don't wait for that.
	cmd.WaitDelay = time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 126, err
	}
	if err := cmd.Start(); err != nil {
		return 127, err
	}
	var ended atomic.Bool
	go feed(conn, stdin, cmd.Process.Pid, &ended)
	err = cmd.Wait()
	ended.Store(true)
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return 0, nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	case errors.As(err, &exit):
		signal := exit.Sys().(syscall.WaitStatus).Signal()
		return 128 + int(signal), nil
	}
	return 126, fmt.Errorf("wait: %w", err)
}

// feed hands the host's input to the command, and ends the command's session
// when the host hangs up, so that an interrupted `lab exec` leaves nothing.
func feed(conn net.Conn, stdin io.WriteCloser, pid int, ended *atomic.Bool) {
	for {
		kind, data, err := readFrame(conn)
		switch {
		case err != nil:
			stdin.Close()
			if !ended.Load() {
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
			return
		case kind == frameStdin:
			_, _ = stdin.Write(data) // A command that stopped reading is its own affair.
		case kind == frameStdinEnd:
			stdin.Close()
		}
	}
}

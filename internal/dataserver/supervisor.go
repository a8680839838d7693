package dataserver

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/howdah/howdah/internal/serverpod"
)

// lineEnded tells who waits for a reload that there is none: the process ended.
const lineEnded = "ended"

const (
	// firstBackoff to maxBackoff is the wait before a restart, doubled each time. The very
	// first restart after settledAfter of good service waits for nothing: clients stall meanwhile.
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 15 * time.Second
	settledAfter = 10 * time.Second
	// reloadWait is how long a reload may take; 1000 exports took 0.13 s.
	reloadWait = 30 * time.Second
)

// supervisor keeps ganesha running.
type supervisor struct {
	binary, configFile, pidFile string
	// roundsFile tells ganesha how often each Export_Id was used before.
	roundsFile string
	keys       handleKeys
	// port has the socket that ganesha listens on: clients wait while none is up.
	port portHolder
	// beforeStart runs before each start, while ganesha is not running.
	beforeStart func(ctx context.Context)
	// changed is called whenever state changes; it must not block.
	changed func()
	log     *slog.Logger

	mutex sync.Mutex
	now   ganeshaState
	// served is the last start that came up.
	served int
	lines  []chan string // Those who wait for a line of the log.
}

// noRecordRemembered is how long a client that ganesha could not write down is told of.
const noRecordRemembered = 10 * time.Minute

// ganeshaState is what is known of the process.
type ganeshaState struct {
	// Starts counts the starts. 0: not started yet.
	Starts int
	// PID is 0 while it is not running.
	PID int
	// Initialized is true once it serves and takes signals.
	Initialized bool
	// InGrace is true while it waits for clients to reclaim their state.
	InGrace bool
	// AtWork are its slow operations.
	AtWork atWork
	// NoRecordAt is when it last could not remember a client for its next start; zero if it always could.
	NoRecordAt time.Time
	// Config is the configuration file's text at the start.
	Config string
	// Since is when it started or stopped.
	Since time.Time
	// LastExit tells how it ended the last time; "" if it never did.
	LastExit string
}

func (s *supervisor) state() ganeshaState {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.now
}

func (s *supervisor) update(change func(*ganeshaState)) {
	s.mutex.Lock()
	change(&s.now)
	s.mutex.Unlock()
	s.changed()
}

// note changes what nobody waits for.
func (s *supervisor) note(change func(*ganeshaState)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(&s.now)
}

// run starts ganesha, and again whenever it ends, until the context ends; then
// it stops it gracefully. The configuration file must exist. The port stays held after it: the
// end of this process, which is near, resets who waits there.
func (s *supervisor) run(ctx context.Context) {
	backoff, hold := time.Duration(0), true
	for ctx.Err() == nil {
		if hold {
			s.hold()
		} else {
			s.port.release()
		}
		s.beforeStart(ctx)
		began := time.Now()
		err := s.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > settledAfter {
			backoff = 0
		}
		// It may be a ganesha that can't listen on what it is lent: the next start has the port for itself.
		hold = s.wasUp() || !hold
		s.log.Error("ganesha ended; starting it again", "how", err, "after", backoff)
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
		backoff = min(max(2*backoff, firstBackoff), maxBackoff)
	}
}

// wasUp tells whether the last start came so far that it served.
func (s *supervisor) wasUp() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.served == s.now.Starts
}

// hold has clients wait until ganesha is up.
func (s *supervisor) hold() {
	if err := s.port.hold(); err != nil {
		s.log.Warn("clients are refused until ganesha is up, and come back seconds later", "err", err)
	}
}

// once runs ganesha to its end.
func (s *supervisor) once(ctx context.Context) error {
	config, err := os.ReadFile(s.configFile)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	epoch, err := randomEpoch()
	if err != nil {
		return err
	}
	// Without -x: one export that can't be made (its volume failed) must not keep the others from
	// serving; the instance manager sees what is missing by looking, and reports it.
	// -E: session ids and the write verifier come from the epoch. Two servers with the same (started in
	// the same second) hang clients that move between addresses, and a constant one hides lost writes.
	command := exec.Command(s.binary, "-F", "-E", epoch, "-f", s.configFile, "-L", "STDOUT", "-p", s.pidFile)
	command.Env = append(s.keys.environment(), "HOWDAH_EXPORT_ROUNDS="+s.roundsFile, "HOWDAH_MOUNTS="+mountsFile(s.configFile), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C")
	lent, environment := s.port.lend()
	command.ExtraFiles, command.Env = lent, append(command.Env, environment...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, input, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting ganesha: %w", err)
	}
	command.Stdout, command.Stderr = input, input
	err = command.Start()
	_ = input.Close()
	if err != nil {
		_ = output.Close()
		err = fmt.Errorf("starting ganesha: %w", err)
		s.update(func(state *ganeshaState) { state.LastExit, state.Since = err.Error(), time.Now() })
		return err
	}
	s.update(func(state *ganeshaState) {
		*state = ganeshaState{Starts: state.Starts + 1, PID: command.Process.Pid, Config: string(config), Since: time.Now(), LastExit: state.LastExit}
	})
	s.log.Info("started ganesha", "pid", command.Process.Pid, "epoch", epoch)
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		s.forward(ctx, output)
	}()
	err = s.wait(ctx, command)
	<-forwarded
	_ = output.Close()
	s.update(func(state *ganeshaState) {
		state.PID, state.Initialized, state.InGrace, state.Since, state.LastExit = 0, false, false, time.Now(), describeExit(err)
	})
	s.tell(lineEnded)
	return errors.New(describeExit(err))
}

// wait waits for the end of the process. When the context ends it asks ganesha
// to stop, and kills it after StopAllowance.
func (s *supervisor) wait(ctx context.Context, command *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.log.Info("stopping ganesha")
	_ = command.Process.Signal(syscall.SIGTERM) // Fails only if it has just ended.
	select {
	case err := <-ended:
		return err
	case <-time.After(serverpod.StopAllowance):
		s.log.Error("ganesha did not stop; killing it", "after", serverpod.StopAllowance)
		_ = command.Process.Kill()
		return <-ended
	}
}

func (s *supervisor) forward(ctx context.Context, output io.Reader) {
	lines := bufio.NewReaderSize(output, 64<<10)
	for {
		text, err := lines.ReadString('\n')
		if text = strings.TrimRight(text, "\n"); text != "" {
			line := parseLogLine(text)
			line.forward(ctx, s.log)
			s.heard(line)
		}
		if err != nil {
			return
		}
	}
}

func (s *supervisor) heard(line logLine) {
	if strings.Contains(line.message, lineReloaded) || strings.Contains(line.message, lineReloadFailed) {
		s.tell(line.message)
	}
	if strings.Contains(line.message, lineInitialized) {
		s.update(func(state *ganeshaState) { state.Initialized, s.served = true, state.Starts })
	}
	if work, ok := parseAtWork(line.message, time.Now()); ok {
		s.note(func(state *ganeshaState) { state.AtWork = work })
	}
	switch {
	case strings.Contains(line.message, lineInGrace):
		s.note(func(state *ganeshaState) { state.InGrace = true })
	case strings.Contains(line.message, lineNotInGrace):
		s.note(func(state *ganeshaState) { state.InGrace = false })
	case strings.Contains(line.message, lineNoRecord), strings.Contains(line.message, lineNoRadosRecord):
		s.note(func(state *ganeshaState) { state.NoRecordAt = time.Now() })
	}
}

// tell gives the outcome of a reload to who waits for it. Other lines are kept from it: a thousand exports make thousands.
func (s *supervisor) tell(outcome string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, listener := range s.lines {
		select {
		case listener <- outcome:
		default: // A listener that is behind has its answer already.
		}
	}
}

func (s *supervisor) listen() (lines <-chan string, stop func()) {
	listener := make(chan string, 4)
	s.mutex.Lock()
	s.lines = append(s.lines, listener)
	s.mutex.Unlock()
	return listener, func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		for i, other := range s.lines {
			if other == listener {
				s.lines = append(s.lines[:i], s.lines[i+1:]...)
				return
			}
		}
	}
}

// reload makes ganesha read its configuration again, and returns when it has. Ganesha
// leaves an export out that it can't make, so look at what it serves afterwards.
func (s *supervisor) reload(ctx context.Context) error {
	state := s.state()
	if state.PID == 0 || !state.Initialized {
		return errors.New("ganesha is not up, so it can't reload its configuration; it reads it when it starts")
	}
	lines, stop := s.listen()
	defer stop()
	if err := syscall.Kill(state.PID, syscall.SIGHUP); err != nil {
		return fmt.Errorf("asking ganesha to reload: %w", err)
	}
	timeout := time.NewTimer(reloadWait)
	defer timeout.Stop()
	for {
		select {
		case line := <-lines:
			switch {
			case strings.Contains(line, lineReloaded):
				return nil
			case strings.Contains(line, lineReloadFailed):
				return errors.New("ganesha can't read its new configuration and keeps the old one; its log tells why")
			case line == lineEnded:
				return errors.New("ganesha ended while it reloaded its configuration; it reads it when it starts again")
			}
		case <-timeout.C:
			return fmt.Errorf("%w: %s", errSilent, reloadWait)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// kill ends a ganesha that does not hear; run starts it again.
func (s *supervisor) kill() {
	if pid := s.state().PID; pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL) // Fails only if it has just ended.
	}
}

// restart has ganesha end gracefully, or be killed after StopAllowance; run starts it again.
func (s *supervisor) restart() {
	pid := s.state().PID
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGTERM) // Fails only if it has just ended.
	time.AfterFunc(serverpod.StopAllowance, func() {
		if s.state().PID == pid {
			s.log.Error("ganesha did not stop; killing it", "after", serverpod.StopAllowance)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

func randomEpoch() (string, error) {
	var bytes [4]byte
	if _, err := rand.Read(bytes[:]); err != nil {
		return "", fmt.Errorf("choosing ganesha's epoch: %w", err)
	}
	// 0 would mean "not given".
	return strconv.FormatUint(uint64(max(binary.NativeEndian.Uint32(bytes[:]), 1)), 10), nil
}

func describeExit(err error) string {
	if err == nil {
		return "ended by itself with exit code 0"
	}
	return err.Error()
}

package supervisor

import (
	"bufio"
	"context"
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

	"github.com/howdah/howdah/internal/child"
	"github.com/howdah/howdah/internal/serverpod"
)

// lineEnded is the outcome of a reload in which the process ended.
const lineEnded = "ended"

const (
	// FirstBackoff to maxBackoff is the wait before a restart, doubled each time. The first restart
	// after SettledAfter of good service does not wait: clients stall meanwhile.
	FirstBackoff = 500 * time.Millisecond
	maxBackoff   = 15 * time.Second
	// SettledAfter is how long ganesha must have served for its restart not to be delayed.
	SettledAfter = 10 * time.Second
	// reloadWait is how long a reload may take; 1000 exports took 0.13 s.
	reloadWait = 30 * time.Second
)

// Config is how ganesha is started. Port, Outage and Ended aside, all fields are required.
type Config struct {
	// Binary is the ganesha.nfsd to run, ConfigFile its configuration, which must exist before Run, and PIDFile where it writes its process ID.
	Binary, ConfigFile, PIDFile string
	// Root is the root directory that ganesha gets; "" for that of this process. ConfigFile, PIDFile and the paths in the configuration are the
	// same in both. Keys and RoundsFile are read before ganesha goes there, so they need not be in it.
	Root string
	// RoundsFile has, for ganesha, how often each Export_Id was used before.
	RoundsFile string
	// MovingFile has, for ganesha, which directories move to other data servers (package mover).
	MovingFile string
	// MovingTakenFile is where ganesha writes which of these it has.
	MovingTakenFile string
	Keys            HandleKeys
	// Port is the TCP port that ganesha listens on; the supervisor holds it while no ganesha runs. 0: nothing is held.
	Port uint16
	// BeforeStart runs before each start, while ganesha is not running.
	BeforeStart func(ctx context.Context)
	// Outage returns what clients of before have been through. Unset: nothing is known.
	Outage func() Outage
	// Changed is called whenever the state changes. It must not block.
	Changed func()
	// Ended is called for each end that was not asked for, with the signal's name or "exit". It must not block. Unset: nothing is called.
	Ended func(signal string)
	Log   *slog.Logger
}

// Supervisor keeps ganesha running.
type Supervisor struct {
	Config
	// port has the socket that ganesha listens on, so that clients wait while ganesha is down.
	port *portHolder

	mutex sync.Mutex
	now   State
	// served is the last start that came up.
	served int
	lines  []chan string // One for each reload that waits for its outcome.
}

// New makes a supervisor. It starts nothing.
func New(config Config) *Supervisor {
	return &Supervisor{Config: config, port: &portHolder{port: config.Port}}
}

// State is what is known of the process.
type State struct {
	// Starts counts the starts. 0: not started yet.
	Starts int
	// PID is 0 while it is not running.
	PID int
	// Initialized is true once it serves and takes signals.
	Initialized bool
	// InGrace is true while it waits for clients to reclaim their state.
	InGrace bool
	// DownSince is since when clients could not reclaim their state; zero since a grace period has ended.
	DownSince time.Time
	// AtWork are its slow operations.
	AtWork atWork
	// NoRecordAt is when it last could not remember a client for its next start; zero if it always could.
	NoRecordAt time.Time
	// Config is the configuration file's text at the start.
	Config string
	// Since is when it started or stopped.
	Since time.Time
	// LastExit is how it last ended, after "ganesha": "was killed by signal SIGSEGV"; "" if it never did.
	LastExit string
	// Ends counts the ends that this process did not ask for, LastEnd is the last of them.
	Ends    int
	LastEnd End
	// asked is the start that this process has ended, by Kill or Restart.
	asked int
}

// End is an end of ganesha that the supervisor did not ask for.
type End struct {
	At time.Time
	// How continues a sentence about ganesha: "was killed by signal SIGSEGV".
	How string
	// Start is the number of the start that ended.
	Start int
}

// ConnectionsAllowed is how many connections this ganesha takes; 0 if it was not started. It reads the option at its start only.
func (s State) ConnectionsAllowed() int32 {
	_, value, _ := strings.Cut(s.Config, "RPC_Max_Connections = ")
	value, _, _ = strings.Cut(value, ";")
	if n, err := strconv.ParseInt(value, 10, 32); err == nil {
		return int32(n)
	}
	return 0
}

// Release closes the held port; connections that wait there are reset.
func (s *Supervisor) Release() { s.port.Release() }

// State is the state of the process now.
func (s *Supervisor) State() State {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.now
}

func (s *Supervisor) update(change func(*State)) {
	s.mutex.Lock()
	change(&s.now)
	s.mutex.Unlock()
	s.Changed()
}

// note changes the state without a call of Changed.
func (s *Supervisor) note(change func(*State)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(&s.now)
}

// Run starts ganesha, and restarts it whenever it ends, until the context ends; then it stops ganesha gracefully. The configuration file must
// exist. The port stays held after Run returns: connections that wait there are reset when this process ends, which is soon.
func (s *Supervisor) Run(ctx context.Context) {
	backoff, hold := time.Duration(0), true
	for ctx.Err() == nil {
		if hold {
			s.Hold()
		} else {
			s.port.Release()
		}
		s.BeforeStart(ctx)
		began := time.Now()
		err := s.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > SettledAfter {
			backoff = 0
		}
		// Maybe this ganesha can't listen on the socket that it inherits: then the next start opens the port itself.
		hold = s.wasUp() || !hold
		s.Log.Error("ganesha ended; restarting it", "how", err, "after", backoff)
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
		backoff = min(max(2*backoff, FirstBackoff), maxBackoff)
	}
}

// wasUp tells whether ganesha served after the last start.
func (s *Supervisor) wasUp() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.served == s.now.Starts
}

// Hold makes clients wait until ganesha is up.
func (s *Supervisor) Hold() {
	if err := s.port.Hold(); err != nil {
		s.Log.Warn("holding the port failed; clients are refused until ganesha is up, and try again seconds later", "err", err)
	}
}

// once runs ganesha to its end.
func (s *Supervisor) once(ctx context.Context) error {
	config, err := os.ReadFile(s.ConfigFile)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	epoch, err := randomEpoch()
	if err != nil {
		return err
	}
	// Without -x: one export that can't be made (its volume failed) must not block the others. The exporter finds out what is missing, and
	// reports it.
	// -E: session IDs and the write verifier come from the epoch. If two servers have the same one (started in the same second), clients
	// that move between addresses hang. A constant one hides lost writes.
	command := exec.Command(s.Binary, "-F", "-E", epoch, "-f", s.ConfigFile, "-L", "STDOUT", "-p", s.PIDFile)
	command.Env = append(s.Keys.environment(), "HOWDAH_EXPORT_ROUNDS="+s.RoundsFile, "HOWDAH_MOUNTS="+MountsFile(s.ConfigFile),
		"HOWDAH_MOVING="+s.MovingFile, "HOWDAH_MOVING_TAKEN="+s.MovingTakenFile, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C")
	command.Env = append(command.Env, s.outageEnvironment()...)
	environment, err := PrepareRoot(s.Root, s.ConfigFile)
	if err != nil {
		return fmt.Errorf("making ganesha's root directory: %w", err)
	}
	command.Env = append(command.Env, environment...)
	lent, environment := s.port.lend()
	command.ExtraFiles, command.Env = lent, append(command.Env, environment...)
	output, input, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting ganesha: %w", err)
	}
	nothing, end, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting ganesha: %w", err)
	}
	_ = end.Close()
	// Not /dev/null, which Go opens otherwise: with a root of its own ganesha takes nothing but pipes and sockets along.
	command.Stdin, command.Stdout, command.Stderr = nothing, input, input
	wait, err := child.Start(command)
	_, _ = input.Close(), nothing.Close()
	if err != nil {
		_ = output.Close()
		err = fmt.Errorf("could not be started: %w", err)
		s.update(func(state *State) { state.LastExit, state.Since = err.Error(), time.Now() })
		return err
	}
	s.update(func(state *State) {
		*state = State{
			Starts: state.Starts + 1, PID: command.Process.Pid, Config: string(config), Since: time.Now(),
			LastExit: state.LastExit, Ends: state.Ends, LastEnd: state.LastEnd, DownSince: state.DownSince,
		}
	})
	s.Log.Info("started ganesha", "pid", command.Process.Pid, "epoch", epoch)
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		s.forward(ctx, output)
	}()
	err = s.wait(ctx, command.Process, wait)
	<-forwarded
	_ = output.Close()
	s.update(func(state *State) {
		state.PID, state.Initialized, state.InGrace, state.Since, state.LastExit = 0, false, false, time.Now(), describeExit(err)
		if state.DownSince.IsZero() {
			state.DownSince = state.Since
		}
		if ctx.Err() == nil && state.asked != state.Starts {
			state.Ends++
			state.LastEnd = End{At: state.Since, How: state.LastExit, Start: state.Starts}
			if s.Ended != nil {
				s.Ended(signalName(err))
			}
		}
	})
	s.notify(lineEnded)
	return errors.New(describeExit(err))
}

// wait waits for the end of the process. When the context ends it asks ganesha
// to stop, and kills it after StopAllowance.
func (s *Supervisor) wait(ctx context.Context, process *os.Process, end func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.Log.Info("stopping ganesha")
	_ = process.Signal(syscall.SIGTERM) // Fails only if it has just ended.
	select {
	case err := <-ended:
		return err
	case <-time.After(serverpod.StopAllowance):
		s.Log.Error("ganesha did not stop; killing it", "after", serverpod.StopAllowance)
		_ = process.Kill()
		return <-ended
	}
}

func (s *Supervisor) forward(ctx context.Context, output io.Reader) {
	lines := bufio.NewReaderSize(output, 64<<10)
	for {
		text, err := lines.ReadString('\n')
		if text = strings.TrimRight(text, "\n"); text != "" {
			line := parseLogLine(text)
			line.forward(ctx, s.Log)
			s.read(line)
		}
		if err != nil {
			return
		}
	}
}

func (s *Supervisor) read(line logLine) {
	if line.is(lineReloaded) || strings.Contains(line.message, lineReloadFailed) {
		s.notify(line.message)
	}
	if line.is(lineInitialized) {
		s.update(func(state *State) { state.Initialized, s.served = true, state.Starts })
	}
	if work, ok := parseAtWork(line.message, time.Now()); ok {
		s.note(func(state *State) { state.AtWork = work })
	}
	switch {
	case line.is(lineInGrace):
		s.note(func(state *State) { state.InGrace = true })
	case line.is(lineNotInGrace):
		// Reported at once: others may be replaced now.
		s.update(func(state *State) { state.InGrace, state.DownSince = false, time.Time{} })
	case strings.Contains(line.message, lineNoRecord), strings.Contains(line.message, lineNoRadosRecord):
		s.note(func(state *State) { state.NoRecordAt = time.Now() })
	}
}

// notify gives the outcome of a reload to the reloads that wait. Other lines of the log don't come here: a thousand exports cause thousands.
func (s *Supervisor) notify(outcome string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, listener := range s.lines {
		select {
		case listener <- outcome:
		default: // A listener that is behind has its answer already.
		}
	}
}

func (s *Supervisor) listen() (lines <-chan string, stop func()) {
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

// ErrNoAnswer is the error of a reload without an answer.
var ErrNoAnswer = errors.New("ganesha did not report in time that it has reloaded its configuration")

// MountsFile is beside the configuration. It names the shares that ganesha can mount at the same time.
func MountsFile(configFile string) string { return configFile + ".mounts" }

// Reload makes ganesha read its configuration again, and returns when it has. Ganesha
// leaves an export out that it can't make, so look at what it serves afterwards.
func (s *Supervisor) Reload(ctx context.Context) error {
	state := s.State()
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
				return errors.New("ganesha can't read its new configuration and keeps the old one; its log says why")
			case line == lineEnded:
				return errors.New("ganesha ended while it reloaded its configuration; it reads it when it starts again")
			}
		case <-timeout.C:
			return fmt.Errorf("%w: %s", ErrNoAnswer, reloadWait)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

package supervisor

import (
	"context"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/ganesha"
)

func TestAClientThatGaneshaCouldNotRecordIsNoted(t *testing.T) {
	s := New(Config{Log: quiet})
	if at := s.State().NoRecordAt; !at.IsZero() {
		t.Errorf("at first: %s", at)
	}
	s.read(logLine{message: "Failed to create client in recovery dir (/volumes/0/x), errno: No space left on device (28)"})
	if s.State().NoRecordAt.IsZero() {
		t.Error("a record that could not be written is not noted")
	}
}

// While the exporter waits for a reload, it does nothing else for any share.
func TestAReloadInWhichGaneshaEndsIsNotWaitedFor(t *testing.T) {
	directory := t.TempDir()
	binary, config := filepath.Join(directory, "ganesha"), filepath.Join(directory, "ganesha.conf")
	mustWork(t, "write a program that SIGHUP ends", os.WriteFile(binary, []byte("#!/bin/sh\necho '"+lineInitialized+"'\nexec sleep 100\n"), 0o755))
	mustWork(t, "write its configuration", os.WriteFile(config, nil, 0o600))
	// Under nohup a program starts with SIGHUP ignored, and so do those that it starts, unless it handles it.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	s := &Supervisor{
		Config: Config{
			Binary:      binary,
			ConfigFile:  config,
			PIDFile:     filepath.Join(directory, "pid"),
			Log:         quiet,
			BeforeStart: func(context.Context) {},
			Changed:     func() {},
		},
		port: &portHolder{},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	for deadline := time.Now().Add(timeout); !s.State().Initialized; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not start")
		}
	}
	began := time.Now()
	err := s.Reload(ctx)
	if took := time.Since(began); err == nil || took > reloadWait/2 {
		t.Errorf("after %s: %v", took, err)
	}
	if state := s.State(); state.Ends != 1 || state.LastEnd.Start != 1 || state.LastEnd.How != "was killed by signal SIGHUP" || time.Since(state.LastEnd.At) > timeout {
		t.Errorf("an end that was not asked for: %+v", state)
	}
	cancel()
	<-ended
	if state := s.State(); state.Ends != 1 {
		t.Errorf("the end that the context asked for: %+v", state)
	}
}

func TestARestartEndsGaneshaGracefullyAndStartsItAgain(t *testing.T) {
	directory := t.TempDir()
	binary, config, ends := filepath.Join(directory, "ganesha"), filepath.Join(directory, "ganesha.conf"), filepath.Join(directory, "ends")
	const program = "#!/bin/sh\ntrap 'echo end >>%s; exit 0' TERM\necho '" + lineInitialized + "'\nwhile :; do sleep 0.02; done\n"
	mustWork(t, "write a program", os.WriteFile(binary, []byte(strings.Replace(program, "%s", ends, 1)), 0o755))
	mustWork(t, "write its configuration", os.WriteFile(config, nil, 0o600))
	s := &Supervisor{
		Config: Config{
			Binary:      binary,
			ConfigFile:  config,
			PIDFile:     filepath.Join(directory, "pid"),
			Log:         quiet,
			BeforeStart: func(context.Context) {},
			Changed:     func() {},
		},
		port: &portHolder{},
	}
	killedBy := make(chan string, 10)
	s.Ended = func(signal string) { killedBy <- signal }
	s.Restart() // Nothing runs.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	isUp := func(start int) {
		t.Helper()
		for deadline := time.Now().Add(timeout); s.State().Starts < start || !s.State().Initialized; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("it is not started: %+v", s.State())
			}
		}
	}
	isUp(1)
	s.Restart()
	isUp(2)
	if text, err := os.ReadFile(ends); err != nil || string(text) != "end\n" {
		t.Errorf("it did not end by itself: %q, %v", text, err)
	}
	s.Kill()
	isUp(3)
	if state := s.State(); state.Ends != 0 || len(killedBy) != 0 {
		t.Errorf("ends that were asked for are reported: %+v, %d", state, len(killedBy))
	}
	if err := syscall.Kill(s.State().PID, syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	isUp(4)
	if state := s.State(); state.Ends != 1 || state.LastEnd.Start != 3 || <-killedBy != "SIGSEGV" {
		t.Errorf("an end that was not asked for: %+v", state)
	}
	cancel()
	<-ended
}

// Between ganesha's end and the pod's, clients that are refused would come back seconds after the next pod is up.
func TestWhoConnectsWhileThePodIsBeingStoppedIsNotRefused(t *testing.T) {
	directory := t.TempDir()
	binary, config, lent := filepath.Join(directory, "ganesha"), filepath.Join(directory, "ganesha.conf"), filepath.Join(directory, "lent")
	mustWork(t, "write a program", os.WriteFile(binary, []byte("#!/bin/sh\ntest -S /proc/$$/fd/3 && echo \"$HOWDAH_HELD_SOCKET\" > "+lent+"\necho '"+lineInitialized+"'\nexec sleep 100\n"), 0o755))
	mustWork(t, "write its configuration", os.WriteFile(config, nil, 0o600))
	port, address := holdSomePort(t)
	s := &Supervisor{
		Config: Config{
			Binary:      binary,
			ConfigFile:  config,
			PIDFile:     filepath.Join(directory, "pid"),
			Log:         quiet,
			BeforeStart: func(context.Context) {},
			Changed:     func() {},
		},
		port: port,
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	for deadline := time.Now().Add(timeout); !s.State().Initialized; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not start")
		}
	}
	if command, err := os.ReadFile(lent); err != nil || string(command) != "3\n" {
		t.Errorf("the program was lent the socket %q: %v", command, err)
	}
	cancel()
	<-ended
	connection, err := net.Dial("tcp", address)
	mustWork(t, "connect after ganesha's end", err)
	_ = connection.Close() // It is open.
}

func TestConnectionsAllowedAreThoseOfTheStart(t *testing.T) {
	text, err := ganesha.Render(ganesha.Config{
		ServerScope: "scope", ServerOwner: "owner", LeaseSeconds: 10, GraceSeconds: 20, RecoveryRoot: "/r", Limits: ganesha.LimitsFor(0).WithConnections(77),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := (State{Config: text}).ConnectionsAllowed(); got != 77 {
		t.Errorf("%d", got)
	}
	if got := (State{}).ConnectionsAllowed(); got != 0 {
		t.Errorf("%d without a start", got)
	}
}

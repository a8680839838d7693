package dataserver

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	"github.com/howdah/howdah/internal/serverpod"
)

func TestAClientThatGaneshaCantWriteDownIsTold(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	mustWork(t, "write a key", os.WriteFile(key, make([]byte, handleKeyBytes), 0o400))
	root := emptyVolume(t)
	m, err := newManager(Options{
		DataServer: "training-0", VolumesRoot: root, RunDir: t.TempDir(), GaneshaBinary: "/bin/false", HandleKey: key, Log: quiet,
	}, nil, &memorySource{}, newNFSProber("training-0", ownAddress()))
	mustWork(t, "manager", err)
	s := m.ganesha.(*supervisor)
	defer s.port.release()
	m.dataServer, m.storage = sampleServer(1), volumes.New(root, quiet)
	if seen := m.verdict(nil); !seen.ready || strings.Contains(seen.message, "write down") {
		t.Errorf("at first: %+v", seen)
	}
	s.heard(logLine{message: "Failed to create client in recovery dir (/volumes/0/x), errno: No space left on device (28)"})
	if seen := m.verdict(nil); !seen.ready || !strings.Contains(seen.message, "could not write down a client") {
		t.Errorf("after a record that could not be written: %+v", seen)
	}
	m.now = func() time.Time { return time.Now().Add(noRecordRemembered + time.Second) }
	if seen := m.verdict(nil); strings.Contains(seen.message, "write down") {
		t.Errorf("long after it: %+v", seen)
	}
}

func TestAGaneshaThatEndsAtOnceIsReportedAndStartedAgain(t *testing.T) {
	root := emptyVolume(t)
	key := filepath.Join(t.TempDir(), "key")
	mustWork(t, "write a key", os.WriteFile(key, make([]byte, handleKeyBytes), 0o400))
	wishes, status := make(chan wish, 1), &memorySource{}
	manager, err := newManager(Options{
		DataServer: "training-0", VolumesRoot: root, RunDir: t.TempDir(), GaneshaBinary: "/bin/false", HandleKey: key, Log: quiet,
	}, wishes, status, newNFSProber("training-0", ownAddress()))
	mustWork(t, "manager", err)
	defer manager.ganesha.(*supervisor).port.release()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.run(ctx) }()
	wishes <- wish{server: sampleServer(1)}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		seen, _ := status.get()
		condition := meta.FindStatusCondition(seen.Conditions, v1alpha1.ConditionReady)
		if condition != nil && condition.Reason == internalv1.ReasonServerDown && strings.Contains(condition.Message, "exit status 1") &&
			manager.ganesha.state().Starts > 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain; the status is %+v", seen)
		}
	}
	for path, want := range map[string]int{serverpod.HealthPath: http.StatusOK, serverpod.ReadyPath: http.StatusServiceUnavailable} {
		answer := httptest.NewRecorder()
		manager.handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if answer.Code != want {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
	cancel()
	mustWork(t, "the manager", <-ended)
}

// While a reload is waited for, nothing else is done for any share.
func TestAReloadInWhichGaneshaEndsIsNotWaitedFor(t *testing.T) {
	directory := t.TempDir()
	binary, config := filepath.Join(directory, "ganesha"), filepath.Join(directory, "ganesha.conf")
	mustWork(t, "write a program that SIGHUP ends", os.WriteFile(binary, []byte("#!/bin/sh\necho '"+lineInitialized+"'\nexec sleep 100\n"), 0o755))
	mustWork(t, "write its configuration", os.WriteFile(config, nil, 0o600))
	// Under nohup a program starts with SIGHUP ignored, and so do those that it starts, unless it handles it.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	s := &supervisor{binary: binary, configFile: config, pidFile: filepath.Join(directory, "pid"), log: quiet, beforeStart: func(context.Context) {}, changed: func() {}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(ctx)
	}()
	for deadline := time.Now().Add(patience); !s.state().Initialized; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not start")
		}
	}
	began := time.Now()
	err := s.reload(ctx)
	if took := time.Since(began); err == nil || took > reloadWait/2 {
		t.Errorf("after %s: %v", took, err)
	}
	cancel()
	<-ended
}

func TestARestartEndsGaneshaGracefullyAndStartsItAgain(t *testing.T) {
	directory := t.TempDir()
	binary, config, ends := filepath.Join(directory, "ganesha"), filepath.Join(directory, "ganesha.conf"), filepath.Join(directory, "ends")
	const program = "#!/bin/sh\ntrap 'echo end >>%s; exit 0' TERM\necho '" + lineInitialized + "'\nwhile :; do sleep 0.02; done\n"
	mustWork(t, "write a program", os.WriteFile(binary, []byte(strings.Replace(program, "%s", ends, 1)), 0o755))
	mustWork(t, "write its configuration", os.WriteFile(config, nil, 0o600))
	s := &supervisor{binary: binary, configFile: config, pidFile: filepath.Join(directory, "pid"), log: quiet, beforeStart: func(context.Context) {}, changed: func() {}}
	s.restart() // Nothing runs.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(ctx)
	}()
	isUp := func(start int) {
		t.Helper()
		for deadline := time.Now().Add(patience); s.state().Starts < start || !s.state().Initialized; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("it is not started: %+v", s.state())
			}
		}
	}
	isUp(1)
	s.restart()
	isUp(2)
	if text, err := os.ReadFile(ends); err != nil || string(text) != "end\n" {
		t.Errorf("it did not end by itself: %q, %v", text, err)
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
	free, err := net.Listen("tcp", "127.0.0.1:0")
	mustWork(t, "find a port", err)
	port := free.Addr().(*net.TCPAddr).Port
	mustWork(t, "free it", free.Close())
	s := &supervisor{
		binary: binary, configFile: config, pidFile: filepath.Join(directory, "pid"), log: quiet,
		beforeStart: func(context.Context) {}, changed: func() {}, port: portHolder{port: uint16(port)},
	}
	defer s.port.release()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(ctx)
	}()
	for deadline := time.Now().Add(patience); !s.state().Initialized; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not start")
		}
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if command, err := os.ReadFile(lent); err != nil || string(command) != "3\n" {
		t.Errorf("the program was lent the socket %q: %v", command, err)
	}
	cancel()
	<-ended
	connection, err := net.Dial("tcp", address)
	mustWork(t, "connect after ganesha's end", err)
	_ = connection.Close() // It is open.
}

func TestAPodStaysReadyWhileGaneshaIsStartedAgainButNotWhileItIsStopped(t *testing.T) {
	now := time.Unix(1000, 0)
	m := &manager{now: func() time.Time { return now }}
	isReady := func(what string, want bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*readyPoll)
		defer cancel()
		if err := m.ready(ctx); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	isReady("it never served", false)
	m.expected.readyAt.Store(now.UnixNano())
	now = now.Add(serverpod.ReadyPatience - time.Millisecond)
	isReady("ganesha is away for less than is waited for", true)
	m.expected.stopping.Store(true)
	isReady("it is being stopped", false)
	m.expected.stopping.Store(false)
	now = now.Add(time.Millisecond)
	isReady("ganesha is away for too long", false)
}

package realtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/serverpod"
)

const (
	// startsWithin bounds a start: one with sanitizers takes seconds on a busy machine.
	startsWithin = 2 * time.Minute
	// lineInitialized is the line of ganesha's log after which it serves.
	lineInitialized = "NFS SERVER INITIALIZED"
	handleKey       = "/run/handle-key"
	sanitizerLog    = "/run/sanitizer"
	// envUser is the ID of the user that ganesha runs as; unset is the test's own. hack/ceph-processes sets it.
	envUser = "HOWDAH_GANESHA_USER"
)

// Server is a ganesha without a supervisor, as the supervisor starts it.
type Server struct {
	t       testing.TB
	command *exec.Cmd
	ended   chan struct{}

	mutex sync.Mutex
	log   bytes.Buffer
	// stopping is set once its end is asked for.
	stopping bool
}

// Client is a CLIENT block for addresses of Inside.
func Client(access ganesha.Access, squash ganesha.Squash, addresses ...string) ganesha.Client {
	client := ganesha.Client{Access: access, Squash: squash}
	for _, address := range addresses {
		client.Addresses = append(client.Addresses, netip.PrefixFrom(netip.MustParseAddr(address), netip.MustParseAddr(address).BitLen()))
	}
	return client
}

// Start starts a ganesha that is inside, with a lease and a grace of 5 s unless the configuration says more, and waits until it serves.
// It ends with the test.
func Start(t testing.TB, config ganesha.Config) *Server {
	t.Helper()
	return StartNamed(t, "ganesha", config)
}

// StartNamed is Start with files of its own, for ganeshas that run at the same time. Their ports in the configuration must differ.
func StartNamed(t testing.TB, name string, config ganesha.Config) *Server {
	t.Helper()
	if config.LeaseSeconds == 0 {
		config.LeaseSeconds, config.GraceSeconds = 5, 5
	}
	config.ServerScope, config.ServerOwner = "hostile", "hostile-0"
	text, err := ganesha.Render(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(serverpod.RunDir, name+".conf")
	for name, content := range map[string]string{file: text, handleKey: "sixteen bytes..."} {
		if err := WriteFile(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	epoch := strconv.FormatInt(time.Now().UnixNano()&0x7fffffff|1, 10)
	s := &Server{t: t, ended: make(chan struct{})}
	root, pidFile := ganeshaRoot(config), filepath.Join(serverpod.RunDir, name+".pid")
	if root != "" {
		pidFile = filepath.Join(serverpod.StateDir, name+".pid") // It can only read the other.
	}
	s.command = exec.Command(serverpod.GaneshaBinary, "-F", "-E", epoch, "-f", file, "-L", "STDOUT", "-p", pidFile)
	s.command.Env = []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "HOWDAH_HANDLE_KEY=" + handleKey,
		// Of a build with sanitizers; others don't know them. Leaks are not looked for: that needs ptrace.
		"ASAN_OPTIONS=detect_leaks=0:halt_on_error=0:exitcode=99:log_path=" + sanitizerLog,
		"UBSAN_OPTIONS=print_stacktrace=1:log_path=" + sanitizerLog,
		// The dlopen of AddressSanitizer does not look where ganesha is linked to look.
		"LD_LIBRARY_PATH=/usr/lib/ganesha",
	}
	environment, err := supervisor.PrepareRoot(root, file)
	if err != nil {
		t.Fatal(err)
	}
	s.command.Env = append(s.command.Env, environment...)
	nothing, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = end.Close()
	defer func() { _ = nothing.Close() }()
	s.command.Stdin = nothing
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if id, is := user(); is && int(id) != os.Getuid() {
		s.command.SysProcAttr.Credential = &syscall.Credential{Uid: id, Gid: id}
	}
	output, err := s.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.command.Stderr = s.command.Stdout
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	up := make(chan struct{})
	go s.follow(output, up)
	select {
	case <-up:
	case <-s.ended:
		t.Fatalf("ganesha ended: %s\n%s", s.command.ProcessState, s.Log())
	case <-time.After(startsWithin):
		t.Fatalf("ganesha does not serve after %s:\n%s", startsWithin, s.Log())
	}
	return s
}

// follow keeps what ganesha writes until it ends, and closes up when it serves.
func (s *Server) follow(output io.Reader, up chan<- struct{}) {
	reader := bufio.NewReader(output)
	for serving := false; ; {
		line, err := reader.ReadString('\n')
		s.mutex.Lock()
		s.log.WriteString(line)
		s.mutex.Unlock()
		if !serving && strings.Contains(line, lineInitialized) {
			serving = true
			close(up)
		}
		if err != nil {
			break
		}
	}
	_ = s.command.Wait() // What matters is that it ended.
	close(s.ended)
}

// ganeshaRoot is the root directory of ganesha. With Ceph it has none of its own, as in pods, and with sanitizers it needs /proc for its reports.
func ganeshaRoot(config ganesha.Config) string {
	if sanitizers, _ := filepath.Glob("/usr/lib/*/libasan.so*"); config.Ceph != nil || len(sanitizers) > 0 { // The pattern is well-formed.
		return ""
	}
	return serverpod.GaneshaRoot
}

// user is the ID of the user and group that ganesha runs as, if it is not the test's own.
func user() (id uint32, is bool) {
	number, err := strconv.ParseUint(os.Getenv(envUser), 10, 32)
	return uint32(number), err == nil
}

// WriteFile writes a file that only ganesha's user may read.
func WriteFile(name string, content []byte) error {
	if err := os.WriteFile(name, content, 0o600); err != nil {
		return err
	}
	if id, is := user(); is && int(id) != os.Getuid() {
		return os.Chown(name, int(id), int(id))
	}
	return nil
}

// PID is that of the process.
func (s *Server) PID() int { return s.command.Process.Pid }

// Ended tells how the process ended, or nil while it lives.
func (s *Server) Ended() error {
	select {
	case <-s.ended:
		return fmt.Errorf("ganesha ended: %s", s.command.ProcessState)
	default:
		return nil
	}
}

// Log is what the process wrote.
func (s *Server) Log() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.log.String()
}

// HowEnded is "exit status 0" after a stop without a fault.
func (s *Server) HowEnded() string { return s.command.ProcessState.String() }

// Stop ends the process, gracefully if it can. It may be called twice.
func (s *Server) Stop() {
	s.mutex.Lock()
	again := s.stopping
	s.stopping = true
	s.mutex.Unlock()
	if again || s.Ended() != nil {
		return
	}
	_ = s.command.Process.Signal(syscall.SIGTERM) // Fails only if it has just ended.
	select {
	case <-s.ended:
	case <-time.After(serverpod.StopAllowance):
		s.t.Errorf("ganesha did not stop within %s", serverpod.StopAllowance)
		_ = s.command.Process.Kill()
		<-s.ended
	}
}

// Kill ends the process at once.
func (s *Server) Kill() {
	s.mutex.Lock()
	s.stopping = true
	s.mutex.Unlock()
	_ = s.command.Process.Kill() // Fails only if it has ended.
	<-s.ended
}

// Memory is the process's resident memory in bytes, now and at most so far.
func (s *Server) Memory() (now, most int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		return 0, 0, err
	}
	for name, value := range map[string]*int64{"VmRSS": &now, "VmHWM": &most} {
		found := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(text)
		if found == nil {
			return 0, 0, errors.New("the process has ended")
		}
		kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
		if err != nil {
			return 0, 0, err
		}
		*value = kilobytes << 10
	}
	return now, most, nil
}

// Sanitized tells whether it is a build with sanitizers, which needs many times the memory.
func (s *Server) Sanitized() bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.PID()))
	return err == nil && bytes.Contains(maps, []byte("/libasan.so"))
}

// Findings are the reports of AddressSanitizer and UndefinedBehaviorSanitizer about this process so far.
func (s *Server) Findings() (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("%s.%d", sanitizerLog, s.PID()))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

package mover

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/moving"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// The test binary is also what the mover runs of itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case TunnelCommand:
			exit(Tunnel(os.Args[2], os.Args[3:]))
		case ConfinedCommand:
			exit(Confined(os.Args[2], os.Args[3:]))
		}
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const (
	share     = "unet3d"
	movePath  = "train/7"
	moveID    = "move-0123"
	testLimit = 2 * time.Minute
)

// server is a data server as far as moves go: volumes, a mover, and a ganesha that takes lists and renames.
type server struct {
	t     *testing.T
	name  string
	root  string
	run   string
	peers map[string]*server
	// open is how many files clients have open, as ganesha says.
	open atomic.Pointer[string]
	// away: the operator is. Before that a freeze does not end by itself, however slow the machine is.
	away atomic.Bool
	// limits are the mover's, if they are set.
	limits limits
	// crashAt is the change before which the mover ends, counted from 1; 0: none. changes counts them.
	crashAt atomic.Int64
	changes atomic.Int64

	mutex   sync.Mutex
	mover   *Mover
	reports []internalv1.MoveReport
	address string
	crashed chan struct{}
	// life ends with the mover's process, and running is all that it does: it is over before another one starts, and before directories of the
	// test are removed.
	life    context.Context
	stop    context.CancelFunc
	running *sync.WaitGroup
}

// shortFolder is for sockets, whose paths have up to 107 bytes: t.TempDir has the test's name.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

func newServer(t *testing.T, name string, peers map[string]*server) *server {
	t.Helper()
	s := &server{t: t, name: name, root: t.TempDir(), run: shortFolder(t), peers: peers}
	must(t, os.MkdirAll(filepath.Join(s.root, "0", share), 0o755))
	must(t, os.MkdirAll(movesIn(s.root, 0), 0o755))
	peers[name] = s
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { s.accept(listener) })
	serving.Go(func() { s.ganesha(ctx) })
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		s.end()
		serving.Wait()
	})
	s.start()
	return s
}

// accept answers the other server, whose name comes first: the real port has it from the certificate.
func (s *server) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = conn.Close() }()
			var name string
			var letter [1]byte
			for {
				if _, err := conn.Read(letter[:]); err != nil || letter[0] == '\n' {
					break
				}
				name += string(letter[:])
			}
			if serve := s.serving(); serve != nil {
				serve(name, conn)
			}
		}()
	}
}

// serving begins an answer of the mover; nil: there is none.
func (s *server) serving() func(name string, conn net.Conn) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.mover == nil {
		return nil
	}
	m, life, running := s.mover, s.life, s.running
	running.Add(1)
	return func(name string, conn net.Conn) {
		defer running.Done() // A crash ends the goroutine.
		m.Serve(life, name, conn)
	}
}

// ganesha takes every list at once.
func (s *server) ganesha(ctx context.Context) {
	for ctx.Err() == nil {
		if text, err := os.ReadFile(filepath.Join(s.run, "moving")); err == nil {
			if lines, number, ended := strings.Cut(string(text), "end "); ended {
				open := "0"
				if given := s.open.Load(); given != nil {
					open = *given
				}
				_ = os.WriteFile(filepath.Join(s.run, "moving.taken"), []byte(strings.TrimSpace(number)+strings.Repeat(" "+open, strings.Count(lines, "\n"))), 0o600)
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// start starts the mover, as the supervisor's process does.
func (s *server) start() {
	self, err := os.Executable()
	must(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	crashed := make(chan struct{})
	var dead atomic.Bool
	m := New(Config{
		Root: s.root, ListFile: filepath.Join(s.run, "moving"), TakenFile: filepath.Join(s.run, "moving.taken"), Rsync: "/usr/bin/rsync", Self: []string{self}, NFS: s, Now: time.Now,
		Dial: func(ctx context.Context, name, address string) (net.Conn, error) {
			if peer := s.peers[address]; peer != nil {
				address = peer.address // The name of its Service.
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err == nil {
				_, err = conn.Write([]byte(s.name + "\n"))
			}
			return conn, err
		},
		Report: func(_ context.Context, reports []internalv1.MoveReport) error {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			if !dead.Load() {
				if len(reports) > 0 && reports[0].Message != "" && (len(s.reports) == 0 || s.reports[0].Message != reports[0].Message) && !strings.Contains(reports[0].Message, "not yet") {
					s.t.Logf("%s: %s: %s", s.name, reports[0].State, reports[0].Message)
				}
				s.reports = reports
			}
			return nil
		},
		Before: func(string) {
			if n := s.changes.Add(1); n == s.crashAt.Load() {
				// The process ends here: nothing after this happens, and what was in memory is gone.
				dead.Store(true)
				cancel()
				close(crashed)
			}
			if dead.Load() {
				runtime.Goexit()
			}
		},
		Log: slog.New(slog.DiscardHandler),
	})
	m.limits.pass, m.limits.short, m.limits.stale = 20*time.Millisecond, testLimit, 100*time.Millisecond
	if s.limits != (limits{}) {
		m.limits = s.limits
	}
	m.unheard = func(at time.Time) time.Duration {
		if s.away.Load() {
			return time.Since(at)
		}
		return 0
	}
	s.mutex.Lock()
	s.mover, s.crashed, s.life, s.stop, s.running = m, crashed, ctx, cancel, &sync.WaitGroup{}
	running := s.running
	s.mutex.Unlock()
	must(s.t, BeforeStart(s.root, m.ListFile))
	running.Go(func() { m.Run(ctx) })
}

// end ends the mover's process, with all that it does.
func (s *server) end() {
	s.mutex.Lock()
	s.stop()
	s.mover = nil
	running := s.running
	s.mutex.Unlock()
	running.Wait()
}

// Rename stands in for ganesha.
func (s *server) Rename(_ context.Context, _ nfs.Credentials, from, to string) error {
	return os.Rename(s.onDisk(from), s.onDisk(to))
}

// Mkdir stands in for ganesha.
func (s *server) Mkdir(_ context.Context, _ nfs.Credentials, name string, options nfs.MkdirOptions) error {
	return os.Mkdir(s.onDisk(name), fs.FileMode(options.Mode))
}

// Stat stands in for ganesha.
func (s *server) Stat(_ context.Context, _ nfs.Credentials, name string) (nfs.Attributes, error) {
	_, err := os.Stat(s.onDisk(name))
	return nfs.Attributes{}, err
}

// onDisk is the path of /SHARE/VOLUME/PATH.
func (s *server) onDisk(name string) string {
	parts := strings.SplitN(strings.TrimPrefix(name, "/"), "/", 3)
	return filepath.Join(s.root, parts[1], parts[0], parts[2])
}

func (s *server) report() *internalv1.MoveReport {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.reports) == 0 {
		return nil
	}
	return &s.reports[0]
}

func (s *server) set(tasks ...internalv1.MoveTask) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.mover != nil {
		s.mover.Set(tasks)
	}
}

// restartIfCrashed starts the mover again if it has ended.
func (s *server) restartIfCrashed() bool {
	s.mutex.Lock()
	crashed := s.crashed
	s.mutex.Unlock()
	select {
	case <-crashed:
		s.crashAt.Store(0)
		s.end()
		s.start()
		return true
	default:
		return false
	}
}

// world is a move between two servers, with what the operator does.
type world struct {
	t              *testing.T
	source, target *server
	move           internalv1.DirectoryMove
	wanted         bool
	openFiles      internalv1.MoveOpenFiles
	// back: the servers have changed their parts.
	back           bool
	flipped, ended bool
	outcome        moving.Outcome
	// watch is called in each round, and ends the run if it says so.
	watch func() bool
	// meanwhile is called in each round before the flip, while clients may use the directory.
	meanwhile func(round int)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if _, err := os.Stat("/usr/bin/rsync"); err != nil {
		t.Skip("needs rsync: apt-get install rsync")
	}
	peers := map[string]*server{}
	w := &world{t: t, source: newServer(t, "training-0", peers), target: newServer(t, "training-1", peers), wanted: true}
	w.move = internalv1.DirectoryMove{
		ID: moveID, Step: internalv1.MoveCopying, Sequence: 1, StepTime: &metav1.Time{Time: time.Unix(1_700_000_000, 0)},
		Source: internalv1.DirectoryPlace{DataServerRef: internalv1.DataServerReference{Name: "training-0"}, Volume: ptr.To(int32(0))},
		Target: internalv1.DirectoryPlace{DataServerRef: internalv1.DataServerReference{Name: "training-1"}, Volume: ptr.To(int32(0))},
	}
	return w
}

func (w *world) task(role internalv1.MoveRole) internalv1.MoveTask {
	task := internalv1.MoveTask{
		ID: w.move.ID, Role: role, FileShareRef: internalv1.FileShareReference{Name: share}, Path: movePath, Volume: ptr.To(int32(0)),
		Step: w.move.Step, Attempt: w.move.Attempt, Sequence: w.move.Sequence, Peer: internalv1.DataServerReference{Name: "training-1"}, PeerAddress: w.target.address, OpenFiles: w.openFiles,
	}
	if role == internalv1.MoveTarget {
		task.Peer.Name, task.PeerAddress = "training-0", w.source.address
	}
	if w.back {
		task.Peer.Name = map[string]string{"training-0": "training-1", "training-1": "training-0"}[task.Peer.Name]
	}
	return task
}

// run does what the operator does until the move has ended.
func (w *world) run() {
	w.t.Helper()
	deadline := time.Now().Add(testLimit)
	for round := 0; ; round++ {
		if w.ended {
			w.source.set()
			w.target.set()
			return
		}
		w.source.set(w.task(internalv1.MoveSource))
		w.target.set(w.task(internalv1.MoveTarget))
		// What is watched for is seen before the operator acts on it.
		source, target := w.source.report(), w.target.report()
		if w.watch != nil && w.watch() {
			return
		}
		// Its clock stands still, so that it ends no freeze because the machine is slow, but for the pause before it freezes again.
		now := w.move.StepTime.Time
		if w.move.Step == internalv1.MoveCopying {
			now = now.Add(time.Hour)
		}
		next, outcome := moving.Next(w.move, moving.Input{Wanted: w.wanted, Source: source, Target: target, Now: now})
		switch outcome {
		case moving.Stay:
		case moving.Step:
			w.move = next
		case moving.Flip:
			w.move, w.flipped = next, true
		default:
			w.ended, w.outcome = true, outcome
		}
		if w.meanwhile != nil && w.move.Step == internalv1.MoveCopying {
			w.meanwhile(round)
		}
		w.source.restartIfCrashed()
		w.target.restartIfCrashed()
		if time.Now().After(deadline) {
			w.t.Fatalf("step %s of attempt %d does not end; the source reports %+v, the target %+v", w.move.Step, w.move.Attempt, w.source.report(), w.target.report())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

package crash

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/directories"
	"github.com/howdah/howdah/internal/namespace/operations"
	"github.com/howdah/howdah/internal/namespace/tree"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// mode is what goes wrong with a call of a process.
type mode string

const (
	fine mode = ""
	// refuse: it is not executed, and fails. lose: it is executed, and fails all the same.
	refuse mode = "refused"
	lose   mode = "its answer lost"
	// twice: its first answer was lost, and the call was repeated on a new session (nfs.StatusError.Retried).
	twice mode = "sent twice"
	// dieBefore and dieAfter: the process ends before it is executed, or before it gets the answer.
	dieBefore mode = "killed before it"
	dieAfter  mode = "killed after it"
)

var modes = []mode{refuse, lose, twice, dieBefore, dieAfter}

var (
	errLost = errors.New("the connection was closed before an answer came")
	errDead = errors.New("this process is dead")
)

// process is a namespace server.
type process struct {
	world   *world
	name    string
	handler *operations.Handler
	service *directories.Service
	leader  *directories.Leader
	tree    *tree.Tree
	events  chan func()
	stop    func()
	running sync.WaitGroup

	mu   sync.Mutex
	dead bool
	// gone is closed when it dies.
	gone chan struct{}
}

// start starts a namespace server: it reads everything, and then serves.
func (w *world) start(name string) *process {
	ctx, stop := context.WithCancel(context.Background())
	p := &process{world: w, name: name, tree: tree.New("fs"), events: make(chan func(), 10_000), stop: stop, gone: make(chan struct{})}
	for _, server := range w.servers {
		p.tree.SetServer(server)
	}
	w.mu.Lock()
	for _, export := range w.exports {
		p.tree.SetExport(export)
	}
	w.mu.Unlock()
	p.tree.SetShare(fleet.ShareOf(w.share))
	p.service = directories.NewService(directories.Config{
		Tree: p.tree, Client: &apiClient{p: p}, Owners: &nfsClient{p}, KubeNamespace: "ns", FileServer: "fs", Replica: name,
		Clock: clock.RealClock{}, Log: slog.New(&trail{p: p}), Concurrent: 64, Timeout: 10 * time.Second,
		Reachable: p.reaches,
	})
	p.leader = directories.NewLeader(p.service)
	p.handler = operations.New(operations.Config{
		Tree: p.tree, Mutator: p.service, Reachable: p.reaches, Now: time.Now, LeaseSeconds: 60,
	})
	w.api.watch(p, p.watch)
	for len(p.events) > 0 { // what is there at the start is known before it serves
		(<-p.events)()
	}
	p.running.Go(func() { p.service.CheckUnconfirmed(ctx) })
	p.running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case apply := <-p.events:
				time.Sleep(w.latency() + p.lag())
				apply()
			}
		}
	})
	return p
}

func (p *process) watch(o *internalv1.ShareDirectory, gone bool) {
	p.events <- func() {
		if gone {
			p.leader.DirectoryDeleted(o)
			return
		}
		p.tree.SetDirectory(o)
		p.service.Confirm(o)
		p.leader.DirectoryChanged(o.Spec.FileShareRef.Name, o.Spec.Path)
	}
}

// reaches reports whether a data server answers. A probe would find that out within seconds.
func (p *process) reaches(server string) bool { return !p.world.data.isSilent(p.world.address(server)) }

// lag is how late the process learns of changes, beside the latency of everything.
func (p *process) lag() time.Duration {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	return p.world.lags[p.name]
}

// keep makes the process the leader until its end.
func (p *process) keep() {
	ctx, stop := context.WithCancel(context.Background())
	before := p.stop
	p.stop = func() { stop(); before() }
	p.running.Go(func() { p.leader.Run(ctx) })
}

// end lets all that the process does come to an end.
func (p *process) end() {
	p.world.api.forget(p)
	p.stop()
	now, stop := context.WithCancel(context.Background())
	stop()
	p.service.EndBehind(now)
	p.running.Wait()
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		p.dead = true
		close(p.gone)
		p.world.died <- p
	}
}

// step is a call of the process to the API or to a data server, which is where it can be cut.
func (p *process) step(ctx context.Context, what string, call func() error) error {
	w := p.world
	if !pause(ctx, w.latency()+w.stall(p, what)) {
		return ctx.Err()
	}
	if p.isDead() {
		return errDead
	}
	isNFS := strings.HasPrefix(what, "NFS ")
	cut := w.cut(p, what)
	w.note("%s: %s %s", p.name, what, cut)
	var err error
	switch cut {
	case dieBefore:
		p.die()
		return errDead
	case refuse:
		if isNFS {
			return errLost
		}
		return apierrors.NewServiceUnavailable("cut")
	case lose:
		_ = call()
		return errLost
	case dieAfter:
		_ = call()
		p.die()
		return errDead
	case twice:
		_ = call()
		err = call()
		var status *nfs.StatusError
		if errors.As(err, &status) {
			status.Retried = true
		}
		if !isNFS {
			return errLost
		}
	case fine:
		err = call()
	}
	if err != nil {
		w.note("%s:   -> %v", p.name, err)
	}
	if !pause(ctx, w.latency()) {
		return ctx.Err()
	}
	if p.isDead() {
		return errDead
	}
	return err
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// trail keeps what a process logs, to be shown if the test fails.
type trail struct{ p *process }

func (h *trail) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (h *trail) WithAttrs([]slog.Attr) slog.Handler               { return h }
func (h *trail) WithGroup(string) slog.Handler                    { return h }

func (h *trail) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	h.p.world.note("%s: log: %s", h.p.name, text)
	return nil
}

package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// mishap is what goes wrong with a call of a process.
type mishap string

const (
	noMishap mishap = ""
	// refused: it is not executed, and fails. answerLost: it is executed, and fails all the same.
	refused    mishap = "refused"
	answerLost mishap = "its answer lost"
	// sentTwice: its first answer was lost, and the call was repeated.
	sentTwice mishap = "sent twice"
	// The process ends before the call is executed, or before it gets the answer.
	killedBefore mishap = "killed before it"
	killedAfter  mishap = "killed after it"
	// The process is asked to end, and does its last things.
	stopped mishap = "stopped"
	// ganeshaKilled: of a supervisor, ganesha alone ends.
	ganeshaKilled mishap = "ganesha killed"
)

var mishaps = []mishap{refused, answerLost, sentTwice, killedBefore, killedAfter, stopped, ganeshaKilled}

var (
	errAnswerLost = errors.New("the connection was closed before an answer came")
	errDead       = errors.New("this process is dead")
)

// modelProcess is an operator, a namespace server or a supervisor.
type modelProcess struct {
	model *model
	name  string
	// again starts another in its place.
	again func() *modelProcess
	// cache is what it knows of the API if it reads from a cache: the operator.
	cache *modelCache
	// ganesha is that of a supervisor.
	ganesha *modelGanesha
	// inner is what runs in it.
	inner   any
	stop    func()
	running sync.WaitGroup

	mu   sync.Mutex
	dead bool
	// gone is closed when it is dead or stopped.
	gone chan struct{}
}

func (m *model) newProcess(name string, again func() *modelProcess) (*modelProcess, context.Context) {
	ctx, stop := context.WithCancel(context.Background())
	return &modelProcess{model: m, name: name, again: again, stop: stop, gone: make(chan struct{})}, ctx
}

// follow tells a process of all there is, and then of what changes: of each kind in order, but of each with a delay of its own.
func (p *modelProcess) follow(ctx context.Context, tell func(modelEvent)) {
	queues := map[string]chan modelEvent{}
	started := false
	p.model.api.watch(p, func(e modelEvent) {
		if !started {
			tell(e) // What is there at the start is known before it works.
			return
		}
		kind := kindOf(e.object)
		if queues[kind] == nil {
			queue := make(chan modelEvent, 10_000)
			queues[kind] = queue
			p.running.Go(func() {
				for {
					select {
					case <-ctx.Done():
						return
					case e := <-queue:
						if !pauseFor(ctx, p.model.lag()) {
							return
						}
						tell(e)
					}
				}
			})
		}
		queues[kind] <- e
	})
	started = true
}

// end lets all that the process does come to an end.
func (p *modelProcess) end() {
	p.model.api.forget(p)
	p.stop()
	p.running.Wait()
}

func (p *modelProcess) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// die ends the process: from now on it changes nothing. leave lets it stop by itself.
func (p *modelProcess) die()   { p.depart(true) }
func (p *modelProcess) leave() { p.depart(false) }

func (p *modelProcess) depart(dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gone:
		p.dead = p.dead || dead
		return
	default:
	}
	p.dead = dead
	if dead && p.ganesha != nil {
		p.ganesha.Kill() // It gets the signal that its parent's death sends.
	}
	close(p.gone)
	p.model.departed <- p
}

// step is a call of the process to the API, to a data server or to ganesha, which is where it can be cut.
func (p *modelProcess) step(ctx context.Context, what string, call func() error) error {
	if !pauseFor(ctx, p.model.latency()) {
		return ctx.Err()
	}
	if p.isDead() {
		return errDead
	}
	cut := p.model.cut(p, what)
	p.model.note("%s: %s %s", p.name, what, cut)
	isAPI := strings.HasPrefix(what, "API ")
	var err error
	switch cut {
	case killedBefore:
		p.die()
		return errDead
	case refused:
		if !isAPI {
			return errAnswerLost
		}
		return apierrors.NewServiceUnavailable("cut")
	case answerLost:
		_ = call()
		return errAnswerLost
	case killedAfter:
		_ = call()
		p.die()
		return errDead
	case sentTwice:
		_ = call()
		err = call()
		var status *nfs.StatusError
		if errors.As(err, &status) {
			status.Retried = true
		}
		if isAPI {
			return errAnswerLost
		}
	case stopped:
		p.leave()
		err = call()
	case ganeshaKilled:
		err = call()
		if p.ganesha != nil {
			p.ganesha.Kill()
		}
	case noMishap:
		err = call()
	}
	if err != nil {
		p.model.note("%s:   -> %v", p.name, err)
	}
	if !pauseFor(ctx, p.model.latency()) {
		return ctx.Err()
	}
	if p.isDead() {
		return errDead
	}
	return err
}

// before is where a supervisor can be killed before it changes a volume. It takes no time.
func (p *modelProcess) before(change string) {
	if strings.HasPrefix(change, "delete ") && p.model.oneIn(2) {
		time.Sleep(p.model.between(0, 2*time.Minute)) // There is much to delete.
		select {
		case <-p.gone:
			runtime.Goexit()
		default:
		}
	}
	if !p.isDead() {
		cut := p.model.cut(p, change)
		p.model.note("%s: %s %s", p.name, change, cut)
		switch cut {
		case noMishap, refused, answerLost, sentTwice:
		case stopped:
			p.leave()
		case ganeshaKilled:
			p.ganesha.Kill()
		default:
			p.die()
		}
	}
	if p.isDead() {
		runtime.Goexit()
	}
}

func pauseFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// modelLog keeps what a process logs, to be shown if the test fails.
type modelLog struct{ p *modelProcess }

func (h *modelLog) Enabled(_ context.Context, level slog.Level) bool {
	return h.p.model.telling && level >= slog.LevelInfo
}
func (h *modelLog) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *modelLog) WithGroup(string) slog.Handler      { return h }

func (h *modelLog) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	h.p.model.note("%s: log: %s", h.p.name, text)
	return nil
}

// source is the supervisor's part of the API without its informers, which the model stands in for.
func (p *modelProcess) source(ctx context.Context, name string) *kubeapi.Source {
	source := kubeapi.NewDetachedSource(&modelClient{p: p})
	p.follow(ctx, func(e modelEvent) {
		switch o := e.object.(type) {
		case *internalv1.DataServer:
			if o.Name == name && !e.gone {
				source.ObjectChanged(o)
			}
		case *internalv1.ShareExport:
			switch {
			case o.Spec.DataServerRef.Name != name:
			case e.gone:
				source.ExportGone(o)
			default:
				source.ExportSeen(o)
			}
		}
	})
	source.SetSynced()
	return source
}

var _ client.Client = &modelClient{}

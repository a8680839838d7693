package mover

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/moving"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/printable"
)

const (
	// defaultKeepSeconds is how long what moved stays in the trash.
	defaultKeepSeconds = 24 * 60 * 60
	// tidyEvery is how often it is looked for what moves have left.
	tidyEvery = 5 * time.Second
	// informFor is for how long the target of a move that is in no task any more tells the source that it has the directory: the source keeps its own frozen
	// until then, and both may be cut off, or one of them down, for days. After informOften it does so less often.
	informFor   = 30 * 24 * time.Hour
	informOften = time.Hour
	// mostReports is the schema's limit.
	mostReports = 64
	// mostSenders bounds the requests of one move that a source answers at a time: an end that was not noticed yet, and the next.
	mostSenders = 2
	// maxMessage is the schema's limit of a message, in bytes.
	maxMessage = 1024
)

// Changes are what the mover changes through ganesha, so that ganesha knows.
type Changes interface {
	Rename(ctx context.Context, cred nfs.Credentials, from, to string) error
	Mkdir(ctx context.Context, cred nfs.Credentials, name string, options nfs.MkdirOptions) error
	Stat(ctx context.Context, cred nfs.Credentials, name string) (nfs.Attributes, error)
}

// Config is what a mover works with. All fields are required, except Before.
type Config struct {
	// Root has a directory for each volume.
	Root string
	// ListFile is what ganesha reads about moves, TakenFile where it writes the number of the list that it has.
	ListFile, TakenFile string
	// Rsync is the program; Self runs this program's subcommands.
	Rsync string
	Self  []string
	NFS   Changes
	// Dial connects to the port for servers of a data server of this FileServer, and shows this one's certificate there.
	Dial func(ctx context.Context, name, address string) (net.Conn, error)
	// Report is called with the reports of all moves.
	Report func(ctx context.Context, reports []internalv1.MoveReport) error
	Now    func() time.Time
	// Before is called before each change of a volume. Tests end the process there.
	Before func(change string)
	Log    *slog.Logger
}

// Mover does a data server's part of moves.
type Mover struct {
	Config
	// confines: the kernel can confine the sender.
	confines bool
	telling  sync.Mutex
	// staging is held while a source goes back to serving a directory, or promises that it does not.
	staging sync.Mutex
	started bool
	limits  limits
	// unheard is how long nothing is heard of the operator that was heard of at a time: time.Since, except in tests.
	unheard func(at time.Time) time.Duration
	// sync makes a volume durable: syncVolume, except in tests.
	sync  func(path string) error
	tasks chan []internalv1.MoveTask

	mutex   sync.Mutex
	known   map[string]*work
	acting  map[string]*sync.Mutex
	sending map[string]int
	reports map[string]internalv1.MoveReport
	// orphans are reports of directories that are frozen for moves that are in no task.
	orphans []internalv1.MoveReport
	changed chan struct{}
}

// limits of waiting; tests have shorter ones.
type limits struct {
	// release is how long a directory stays frozen if nothing is heard of the operator, closing how long clients wait for those who have files open,
	// orphan how long a move waits that is in no task any more: all objects may be lost, and are written again. tidy is how often it is looked for these.
	// inform is for how long the target tells the source of such a move that it has the directory.
	release, closing, orphan, tidy, inform time.Duration
	// pass is the least pause between two passes, short how long one takes at the most for the directory to be frozen next, stale how long clients of
	// the source wait after the flip.
	pass, short, stale time.Duration
}

// work is a move that this data server has a part of.
type work struct {
	task *internalv1.MoveTask
	// since is when the task was last changed.
	since time.Time
	// cancel ends the step at work; wake has a value when the task has changed.
	cancel context.CancelFunc
	wake   chan struct{}
}

// New makes a mover. It does nothing before Run.
func New(config Config) *Mover {
	return &Mover{
		Config: config, confines: HasLandlock(), tasks: make(chan []internalv1.MoveTask, 1), known: map[string]*work{}, sending: map[string]int{}, acting: map[string]*sync.Mutex{},
		reports: map[string]internalv1.MoveReport{}, changed: make(chan struct{}, 1), sync: syncVolume,
		limits:  limits{release: moving.ReleaseLimit, closing: closingLimit, orphan: orphanAfter, tidy: tidyEvery, inform: informFor, pass: passPause, short: shortPass, stale: staleAfter},
		unheard: time.Since,
	}
}

func (m *Mover) about(change string) {
	if m.Before != nil {
		m.Before(change)
	}
}

// Set gives the tasks. It replaces tasks that were not taken.
func (m *Mover) Set(tasks []internalv1.MoveTask) {
	select {
	case <-m.tasks:
	default:
	}
	m.tasks <- tasks
}

// Run works until the context ends. The volumes must be this data server's, and ganesha must run.
func (m *Mover) Run(ctx context.Context) {
	var moves sync.WaitGroup
	defer moves.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case tasks := <-m.tasks:
			if !m.started {
				m.started = true
				moves.Go(func() { m.tidyAlways(ctx) })
				if !m.confines {
					m.Log.Info("the kernel has no Landlock: while a directory is copied from here, its clients could read what this container can")
				}
			}
			m.take(ctx, &moves, tasks)
			m.report(ctx)
		case <-m.changed:
			m.report(ctx)
		}
	}
}

// take starts work on new tasks, passes on changes, and ends work on tasks that are gone.
func (m *Mover) take(ctx context.Context, moves *sync.WaitGroup, tasks []internalv1.MoveTask) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	wanted := map[string]bool{}
	for i := range tasks {
		task := tasks[i].DeepCopy()
		wanted[task.ID] = true
		w := m.known[task.ID]
		if w == nil {
			w = &work{task: task, since: time.Now(), wake: make(chan struct{}, 1)}
			m.known[task.ID] = w
			moves.Go(func() { m.work(ctx, w) })
			continue
		}
		if reflect.DeepEqual(w.task, task) || task.Sequence < w.task.Sequence {
			continue // The operator has read what it has written itself, but not the newest of it.
		}
		interrupt := w.task.Step != task.Step && task.Step != internalv1.MoveFreezing || w.task.Execution != task.Execution || w.task.MegabytesPerSecond != task.MegabytesPerSecond
		w.task, w.since = task, time.Now()
		if interrupt && w.cancel != nil {
			w.cancel()
		}
		poke(w.wake)
	}
	for id, w := range m.known {
		if !wanted[id] {
			delete(m.known, id)
			delete(m.reports, id)
			if w.cancel != nil {
				w.cancel()
			}
			poke(w.wake)
		}
	}
}

func poke(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default: // It is awake already.
	}
}

// task is the newest task of a move, nil if there is none.
func (m *Mover) task(id string) *internalv1.MoveTask {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if w := m.known[id]; w != nil {
		return w.task
	}
	return nil
}

func (m *Mover) placeFor(task *internalv1.MoveTask) place {
	return place{root: m.Root, volume: ptr.Deref(task.Volume, 0), id: task.ID, share: task.FileShareRef.Name, path: task.Path}
}

// work does the steps of one move until its task is gone.
func (m *Mover) work(ctx context.Context, w *work) {
	c := &copying{}
	for {
		m.mutex.Lock()
		task, since := w.task, w.since
		gone := m.known[task.ID] != w
		step, cancel := context.WithCancel(ctx)
		w.cancel = cancel
		m.mutex.Unlock()
		if gone || ctx.Err() != nil {
			cancel()
			if gone {
				m.end(ctx, task)
			}
			return
		}
		var report internalv1.MoveReport
		var again time.Duration
		release := m.alone(task.ID)
		if task.Role == internalv1.MoveSource {
			report, again = m.sourceStep(step, m.placeFor(task), task, since)
		} else {
			report, again = m.targetStep(step, m.placeFor(task), task, c)
		}
		report.Sequence = max(task.Sequence, m.sequenceOn(task))
		release()
		interrupted := step.Err() != nil
		cancel()
		if !interrupted {
			m.note(report)
		}
		if report.Message != "" && !interrupted {
			m.Log.Debug("a move waits", "move", task.ID, "share", task.FileShareRef.Name, "path", task.Path, "step", task.Step, "why", report.Message)
		}
		var timer <-chan time.Time
		if again > 0 {
			timer = time.After(again)
		}
		if interrupted {
			continue
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer:
		}
	}
}

// sequenceOn is the sequence of the task that has frozen a directory, 0 if none has.
func (m *Mover) sequenceOn(task *internalv1.MoveTask) int64 {
	if j, err := m.placeFor(task).read(); err == nil && j != nil {
		return j.Sequence
	}
	return 0
}

// end removes what is left of a move that the operator has ended. A frozen directory stays for tidy: only if its move is in no task for a while is it
// certain that the operator did not mean to go on.
func (m *Mover) end(ctx context.Context, task *internalv1.MoveTask) {
	defer m.alone(task.ID)()
	where := m.placeFor(task)
	j, err := where.read()
	if err == nil && j != nil && !j.isSource() && ctx.Err() == nil {
		err = m.endTarget(ctx, where, j)
	}
	switch {
	case errors.Is(err, errUnaware):
		m.Log.Debug("the record of a move stays until its source knows that the directory is here", "move", task.ID, "err", err)
	case err != nil:
		m.Log.Error("removing what a move has left failed; trying again", "move", task.ID, "err", err)
	}
}

// note keeps a report until it is written.
func (m *Mover) note(report internalv1.MoveReport) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.known[report.ID] == nil {
		return
	}
	if report.State == "" {
		report.State = m.reports[report.ID].State
		report.Attempt = m.reports[report.ID].Attempt
		if report.State == "" {
			report.State = internalv1.MoveStateServing
			report.Attempt = 0
		}
	}
	m.reports[report.ID] = report
	poke(m.changed)
}

// report writes the reports. What can't be written is written with the next.
func (m *Mover) report(ctx context.Context) {
	m.mutex.Lock()
	reports := make([]internalv1.MoveReport, 0, len(m.reports))
	for id := range m.known {
		if report, known := m.reports[id]; known {
			reports = append(reports, report)
		}
	}
	for _, orphan := range m.orphans {
		if m.known[orphan.ID] == nil && len(reports) < mostReports {
			reports = append(reports, orphan)
		}
	}
	m.mutex.Unlock()
	if err := m.Report(ctx, sorted(reports)); err != nil && ctx.Err() == nil {
		m.Log.Error("reporting moves failed; trying again", "err", err)
		time.AfterFunc(retryAfter, func() { poke(m.changed) })
	}
}

// cut makes a message fit the schema.
func cut(message string) string {
	message = printable.Text(message)
	if len(message) > maxMessage {
		return message[:maxMessage-3] + "..."
	}
	return message
}

func sorted(reports []internalv1.MoveReport) []internalv1.MoveReport {
	slices.SortFunc(reports, func(a, b internalv1.MoveReport) int { return strings.Compare(a.ID, b.ID) })
	return reports
}

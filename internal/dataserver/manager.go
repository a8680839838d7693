package dataserver

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/exportids"
)

const (
	// usageEvery is how often the storage is measured.
	usageEvery = time.Minute
	// retryFirst to retryMost is the wait before a failed pass is tried again.
	retryFirst = 250 * time.Millisecond
	retryMost  = 15 * time.Second
	// stopReport is how long the report of a stop may take.
	stopReport = 2 * time.Second
)

// reporter writes the statuses of the DataServer and of its exports. It is the only writer of them.
type reporter interface {
	// report makes the DataServer's status durable; a status that is there already costs no write.
	report(ctx context.Context, build func(earlier internalv1.DataServerStatus) internalv1.DataServerStatus) error
	// reportExports makes the statuses of the exports durable, at the same price.
	reportExports(ctx context.Context, build func(export *internalv1.ShareExport) internalv1.ShareExportStatus) error
}

// daemon is ganesha as the manager sees it: a supervisor.
type daemon interface {
	// hold has clients wait from now on, until it is up.
	hold()
	// run keeps it running until the context ends.
	run(ctx context.Context)
	state() ganeshaState
	// reload makes it read its configuration again, and returns when it has.
	reload(ctx context.Context) error
	// restart has it stopped gracefully and started again, and does not wait for that.
	restart()
	// kill has it ended at once and started again.
	kill()
	// setRounds tells it how often each Export_Id was used before.
	setRounds(rounds []byte) error
}

// manager brings ganesha to what the DataServer asks for, and reports.
type manager struct {
	// volumesRoot is where volumes are mounted.
	volumesRoot     string
	nodeName, podIP string
	configFile      string
	keys            handleKeys
	certificates    certificates
	// gateways are the addresses from which the pod's own node comes to it.
	gateways []netip.Addr
	// nodes are the Nodes of access rules, as the DataServer has them.
	nodes atomic.Pointer[[]netip.Prefix]
	// memoryLimit is what the container may use, in bytes; 0 if nothing limits it.
	memoryLimit int64
	// own is the address from which ganesha trusts the instance manager.
	own      netip.Addr
	proxy    *tlsProxy
	ganesha  daemon
	prober   prober
	reporter reporter
	// fence has clients of Ceph shut out, nil if there is nobody to ask.
	fence func(ctx context.Context, addresses []string) error
	// leave is how long it goes on after it was told to end, so that new connections are led elsewhere before.
	leave time.Duration
	// isDeleted tells whether the DataServer is being deleted, or is gone.
	isDeleted func() bool
	wishes    <-chan wish
	wake      chan struct{}
	log       *slog.Logger
	now       func() time.Time
	// storageBack is when the storage answered again after it had not; storageAway belongs to the goroutine that watches its health.
	storageBack atomic.Pointer[time.Time]
	storageAway bool
	// count tells how many connections clients have.
	count   func() (int32, error)
	metrics *serverMetrics
	figures *figures

	// The rest belongs to the goroutine of run.
	dataServer *internalv1.DataServer
	exports    []*internalv1.ShareExport
	// storage is the back end, nil until the first DataServer names it.
	storage  backend.Backend
	memory   *exportids.Table
	started  bool
	loaded   string                // The configuration that ganesha has.
	proven   int                   // The start of ganesha that was seen to refuse a forged handle.
	ended    int                   // The start of ganesha that was ended because it was outdated.
	starts   int                   // The start of ganesha that loaded and serving are about.
	verified string                // The configuration that ganesha was last looked at with.
	serving  map[string]fileSystem // Pseudo paths that serve, as far as was looked.
	leaving  map[string]bool       // Pseudo paths that it may still serve.
	stranger *fault                // Why namespace servers can't know this one; nil if they can.
	failing  map[string]*fault     // What is wrong with single shares, by their names.
	lost     map[string]*lostShare // Shares that ganesha has lost for good: they are taken away, and then brought back.
	lookedAt time.Time             // When all exports were looked at last.
	silent   int                   // Reloads in a row that had no answer.
	hangs    bool                  // Ganesha is to be ended as soon as its configuration is another.
	// askedStart is the start of ganesha that took so long that the storage was asked why, at askedAt.
	askedStart int
	askedAt    time.Time
	removed    map[types.UID]bool // Exports being deleted that are gone.
	usage      []backend.Usage
	usedAt     time.Time
	shares     *string // The digest of the shares that the storage has; nil if they are too many.
	// connections are those of clients when they were counted last.
	connections int32
	trash       trashCan
	group       sync.WaitGroup
	expected    expectation
	// refused: the last pass refused the storage, and looked at all exports for it.
	refused bool
}

// run works until the context ends, then stops ganesha and says so in the status.
func (m *manager) run(ctx context.Context) error {
	supervised, stopGanesha := context.WithCancel(context.WithoutCancel(ctx))
	defer stopGanesha()
	retry := time.NewTimer(0)
	wait := retryFirst
	for {
		select {
		case <-ctx.Done():
			m.stop(ctx, stopGanesha)
			return nil
		case next := <-m.wishes:
			m.dataServer, m.exports = next.server, next.exports
			if nodes, err := clusterNodes(m.dataServer, m.gateways); err == nil { // What can't be read is said when it is applied.
				m.nodes.Store(&nodes.networks)
			}
			if m.storage == nil {
				m.storage = m.storageOf(next.server)
				if lister, can := m.storage.(backend.Lister); can {
					m.proxy.offer(lister)
				}
				m.group.Go(func() {
					m.storage.WatchHealth(ctx, func(health backend.Health) error { return m.tellHealth(ctx, health) })
				})
			}
			wait = retryFirst
		case <-m.wake:
		case <-retry.C:
		}
		again := usageEvery
		if m.dataServer != nil {
			if again = m.rest(); !m.pass(ctx, supervised) {
				again, wait = wait, min(2*wait, retryMost)
			} else {
				wait = retryFirst
			}
		}
		retry.Reset(again)
	}
}

// rest is the time between two passes while nothing changes.
func (m *manager) rest() time.Duration {
	if every := m.lookEvery(); every > 0 {
		return min(every, usageEvery)
	}
	return usageEvery
}

// stop reports that the server is going and waits for ganesha's end.
func (m *manager) stop(ctx context.Context, stopGanesha func()) {
	m.expected.stopping.Store(true)
	if m.dataServer != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopReport)
		seen := m.observe()
		seen.ready, seen.reason, seen.message = false, internalv1.ReasonStopping, "the pod is being stopped"
		if err := m.write(last, seen); err != nil {
			m.log.Warn("the stop was not reported", "err", err)
		}
		cancel()
		m.letLeave()
		m.sayGoodbye(context.WithoutCancel(ctx))
	}
	stopGanesha()
	m.group.Wait()
}

// letLeave goes on serving until the pod's Service leads elsewhere.
func (m *manager) letLeave() {
	if m.isDeleted() {
		return // Nobody comes in its place.
	}
	<-time.After(m.leave)
}

// pass does what is to be done for the present DataServer and reports. It is true if nothing is left to do.
func (m *manager) pass(ctx, supervised context.Context) bool {
	m.identify()
	fault := m.apply(ctx, supervised)
	if ctx.Err() != nil {
		return false
	}
	if m.now().Sub(m.usedAt) >= usageEvery {
		m.measure(ctx)
	}
	if n, err := m.count(); err != nil {
		m.log.Error("the clients' connections were not counted", "err", err)
	} else {
		m.connections = n
	}
	seen := m.verdict(fault)
	m.metrics.observe(seen)
	m.metrics.setShares(m.active())
	// The exports first: who sees that the server is Ready must not see of them what was so before it started.
	var err error
	if fault == nil || m.refused {
		err = m.reportExports(ctx)
	}
	err = errors.Join(err, m.write(ctx, seen))
	if err != nil {
		m.log.Error("a status was not written; trying again", "err", err)
		return false
	}
	return fault == nil && len(m.failing) == 0
}

// verdict is what is said of the server after a pass. What is wrong with single shares, and a configuration that ganesha
// does not take, are no reason to call a server not ready that goes on serving others.
func (m *manager) verdict(fault *fault) observation {
	seen := m.observe()
	switch {
	case fault != nil:
		seen.ready = fault.reason == internalv1.ReasonReloadFailed && m.expected.generation.Load() != 0
		seen.reason, seen.message = fault.reason, fault.Error()
		m.log.Warn("not everything that the DataServer asks for is done", "reason", fault.reason, "err", fault.err)
		return seen
	case m.stranger != nil:
		// It goes on serving clients. Its pod is not ready: an update that brings such certificates stops here.
		seen.reason, seen.message = m.stranger.reason, m.stranger.Error()
		m.log.Error("namespace servers can't make changes here", "reason", m.stranger.reason, "err", m.stranger.err)
	case len(m.failing) > 0:
		seen.reason, seen.message = internalv1.ReasonExportsFailing, describeFailing(m.failing)
		m.log.Warn("some shares are not as they should be", "err", seen.message)
	default:
		seen.reason, seen.message = v1alpha1.ReasonReady, "ganesha serves everything that is asked for"
	}
	if at := m.ganesha.state().NoRecordAt; !at.IsZero() && m.now().Sub(at) < noRecordRemembered {
		seen.message += "; but ganesha could not write down a client that connected: after a restart such clients lose what they have open and " +
			"locked. Look whether volume 0 (with storage.ceph, the pool for recovery records) is full"
	}
	seen.loaded, seen.ready = true, true
	m.expected.generation.Store(m.dataServer.Generation)
	return seen
}

// reportExports writes what is known of each export after a pass that looked at all of them.
func (m *manager) reportExports(ctx context.Context) error {
	now := metav1.NewTime(m.now().Truncate(time.Second))
	wished := map[types.UID]*internalv1.ShareExport{}
	for _, export := range m.exports {
		wished[export.UID] = export
	}
	return m.reporter.reportExports(ctx, func(export *internalv1.ShareExport) internalv1.ShareExportStatus {
		known := wished[export.UID]
		if known == nil || known.Generation != export.Generation {
			return export.Status // Newer than this pass; the next one knows.
		}
		share := shareOf(known)
		return exportStatusFrom(export.Status, exportSight{
			generation: known.Generation, deleting: known.DeletionTimestamp != nil, data: known.Spec.DataPolicy,
			ids: m.memory.IDs(share), rootIDs: m.rootIDs(share), serves: m.servesShare(share), removed: m.removed[known.UID], fault: m.failing[share],
		}, now)
	})
}

// observe tells what is known without a look at the verdict.
func (m *manager) observe() observation {
	seen := observation{nodeName: m.nodeName, podIP: m.podIP, generation: m.dataServer.Generation, usage: m.usage}
	seen.volumeIDs = m.storage.Identities()
	if m.memory == nil {
		return seen
	}
	seen.connections, seen.failing = m.connections, len(m.failing)
	seen.held = m.shares
	seen.maxConnections = connectionsAllowed(m.ganesha.state().Config)
	for _, export := range m.active() {
		if m.servesShare(shareOf(export)) {
			seen.shares++
		}
	}
	return seen
}

// tellHealth writes what the storage says of itself, beside passes: those may be waiting for that very storage.
func (m *manager) tellHealth(ctx context.Context, health backend.Health) error {
	m.noteHealth(health)
	m.log.Info("the health of the storage is another", "failing", health.Failing, "degraded", health.Degraded)
	return m.reporter.report(ctx, func(status internalv1.DataServerStatus) internalv1.DataServerStatus {
		return withHealth(status, health, metav1.NewTime(m.now().Truncate(time.Second)))
	})
}

func (m *manager) write(ctx context.Context, seen observation) error {
	return m.reporter.report(ctx, func(earlier internalv1.DataServerStatus) internalv1.DataServerStatus {
		return statusFrom(earlier, seen, metav1.NewTime(m.now().Truncate(time.Second)))
	})
}

// measure looks how full the storage is. If it can't be measured the last report stays.
func (m *manager) measure(ctx context.Context) {
	usage, err := m.storage.Measure(ctx, m.dataServer)
	if err != nil {
		m.log.Error("measuring the storage", "err", err)
		return
	}
	m.usage, m.usedAt = usage, m.now()
}

// active are the exports to serve: those that are not being deleted.
func (m *manager) active() []*internalv1.ShareExport {
	return slices.DeleteFunc(slices.Clone(m.exports), func(e *internalv1.ShareExport) bool { return e.DeletionTimestamp != nil })
}

func shareOf(export *internalv1.ShareExport) string { return export.Spec.FileShareRef.Name }

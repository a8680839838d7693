package exporter

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/fill"
	"github.com/howdah/howdah/internal/mtls"
)

const (
	// usageEvery is how often the storage is measured.
	usageEvery = time.Minute
	// retryFirst to retryMost is the wait before a failed pass is tried again.
	retryFirst = 250 * time.Millisecond
	retryMost  = 15 * time.Second
	// stopReport is how long the report of a stop may take.
	stopReport = 2 * time.Second
	// noRecordRemembered is how long the status mentions a client that ganesha could not record.
	noRecordRemembered = 10 * time.Minute
)

// Reporter writes the statuses of the DataServer and of its exports. It is the only writer of them.
type Reporter interface {
	// Report writes the DataServer's status; an unchanged status costs no write.
	Report(ctx context.Context, build func(earlier internalv1.DataServerStatus) internalv1.DataServerStatus) error
	// ReportExports writes the statuses of the exports; unchanged ones cost no write.
	ReportExports(ctx context.Context, build func(export *internalv1.ShareExport) internalv1.ShareExportStatus) error
}

// Daemon is ganesha as the exporter uses it: the supervisor.
type Daemon interface {
	// Hold makes clients wait from now on, until ganesha is up.
	Hold()
	// Run keeps it running until the context ends.
	Run(ctx context.Context)
	State() supervisor.State
	// Reload makes it read its configuration again, and returns when it has.
	Reload(ctx context.Context) error
	// Restart stops it gracefully and starts it again. It returns at once.
	Restart()
	// Kill ends it at once; it is then started again.
	Kill()
	// SetRounds gives it how often each Export_Id was used before.
	SetRounds(rounds []byte) error
}

// Config is what an Exporter works with. All fields are required, except where a comment says what the zero value means.
type Config struct {
	// NodeName, PodIP and PodUID go into the status.
	NodeName, PodIP, PodUID string
	// FirstPort is the first of the pod's ports on its node's network; 0: it has a network of its own.
	FirstPort int32
	// NodeAddresses are the addresses of the node at which the data server is to be reached, and what is missing there; "" if nothing is.
	// nil: it is reached at the pod's.
	NodeAddresses func() (addresses []string, missing string)
	// ConfigFile is where ganesha's configuration is written.
	ConfigFile string
	// Keys are those of file handles.
	Keys supervisor.HandleKeys
	// Certificates identify this data server to namespace servers.
	Certificates Certificates
	// MemoryLimit is what the container may use, in bytes; 0 if nothing limits it.
	MemoryLimit int64
	// Own is the address from which ganesha trusts this process.
	Own netip.Addr
	// Storage makes the back end that a DataServer names.
	Storage func(dataServer *internalv1.DataServer) backend.Backend
	Ganesha Daemon
	Prober  server.Prober
	// Reporter writes the statuses.
	Reporter Reporter
	// Desired has the newest desired state.
	Desired <-chan kubeapi.Desired
	// IsDeleted reports whether the DataServer is being deleted or is deleted.
	IsDeleted func() bool
	// Leave is how long ganesha goes on serving after the context has ended, so that new connections go elsewhere before it stops.
	Leave time.Duration
	// Connections counts the connections of clients.
	Connections func() (int32, error)
	// Expected, Nodes, Proxy and Metrics pass what the exporter knows to the parts that answer requests.
	Expected *server.Expectation
	Nodes    *server.Nodes
	Proxy    *server.Proxy
	Metrics  *server.Metrics
	// Moves does the data server's part of moves; nil: it has none.
	Moves Moves
	Log   *slog.Logger
}

// Moves copies directories between the volumes of data servers: the mover.
type Moves interface {
	// Identify gives it the certificates of this data server, nil if there are none.
	Identify(identities []*mtls.Identity, serverScope string)
	// Set gives it the tasks of the DataServer. The volumes are this data server's, and ganesha serves them.
	Set(tasks []internalv1.MoveTask)
}

// Exporter makes ganesha serve what the DataServer and its exports specify, and reports.
type Exporter struct {
	Config
	wakeup chan struct{}
	now    func() time.Time
	// storageBack is when the storage answered again after it had not; storageAway belongs to the goroutine that watches its health.
	storageBack atomic.Pointer[time.Time]
	storageAway bool
	// lostClients are those of Outage.
	lostClients atomic.Pointer[[]string]

	// The rest belongs to the goroutine of run.
	dataServer *internalv1.DataServer
	exports    []*internalv1.ShareExport
	// storage is the back end, nil until the first DataServer names it.
	storage backend.Backend
	memory  *exportids.Table
	// idsChanged: memory is to be read again.
	idsChanged  bool
	started     bool
	loaded      string                       // The configuration that ganesha has.
	proven      int                          // The start of ganesha that refused a forged handle.
	ended       int                          // The start of ganesha that was ended because it was outdated.
	starts      int                          // The start of ganesha that loaded and serving are about.
	verified    string                       // The configuration with which the exports were last verified.
	serving     map[string]server.FileSystem // Pseudo paths that served when they were last verified.
	leaving     map[string]bool              // Pseudo paths that it may still serve.
	uncertified *kubeapi.Fault               // Why namespace servers can't verify this data server; nil if they can.
	failing     map[string]*kubeapi.Fault    // What is wrong with single shares, by their names.
	lost        map[string]*lostShare        // Shares whose exports ganesha lost: they are removed, and then exported again.
	lookedAt    time.Time                    // When all exports were last checked.
	silent      int                          // Reloads in a row without an answer.
	hangs       bool                         // Ganesha hangs, and is killed as soon as its configuration has changed.
	slowStart   slowStart
	removed     map[types.UID]bool // Exports being deleted that are gone.
	usage       []backend.Usage
	usedAt      time.Time
	histories   []fill.History
	shares      *string // The digest of the shares that the storage has; nil if they are too many.
	// connections is the last count of the clients' connections.
	connections int32
	trash       trashCan
	group       sync.WaitGroup
	// restartPending are the fields that the running ganesha does not have yet, as of the last pass without a fault.
	restartPending []string
	// refused is true if the last pass refused the storage; it has a fault for every export then.
	refused bool
	ends    ends
}

// New makes an exporter. It does nothing before run.
func New(config Config) *Exporter {
	return &Exporter{Config: config, wakeup: make(chan struct{}, 1), now: time.Now}
}

// Wake asks for a pass.
func (m *Exporter) Wake() {
	select {
	case m.wakeup <- struct{}{}:
	default: // A pass is due already.
	}
}

// BeforeStart puts the recovery records of the storage in order. It is for the supervisor, before it starts ganesha.
func (m *Exporter) BeforeStart(ctx context.Context, hostname string) {
	if err := m.storage.BeforeStart(ctx, hostname); err != nil {
		m.Log.Warn("putting the recovery records in order failed", "err", err)
	}
}

// Run works until the context ends, then stops ganesha and reports it.
func (m *Exporter) Run(ctx context.Context) error {
	supervised, stopGanesha := context.WithCancel(context.WithoutCancel(ctx))
	defer stopGanesha()
	retry := time.NewTimer(0)
	wait := retryFirst
	for {
		select {
		case <-ctx.Done():
			m.stop(ctx, stopGanesha)
			return nil
		case next := <-m.Desired:
			m.dataServer, m.exports = next.Server, next.Exports
			m.lostClients.Store(&next.Server.Spec.LostNodeAddresses)
			m.ends.begin(m.dataServer.Status, m.PodIP, m.PodUID, m.now())
			if nodes, err := clusterNodes(m.dataServer, m.Nodes.Gateways); err == nil { // The pass reports what can't be read.
				m.Nodes.Set(nodes.networks)
			}
			if m.storage == nil {
				m.storage = m.Storage(next.Server)
				m.reportStart(ctx)
				if lister, can := m.storage.(backend.Lister); can {
					m.Proxy.Offer(lister)
				}
				m.group.Go(func() {
					m.storage.WatchHealth(ctx, func(health backend.Health) error { return m.reportHealth(ctx, health) })
				})
			}
			wait = retryFirst
		case <-m.wakeup:
		case <-retry.C:
		}
		again := usageEvery
		if m.dataServer != nil {
			if m.pass(ctx, supervised) {
				again, wait = m.rest(), retryFirst // By what the pass has measured.
			} else {
				again, wait = wait, min(2*wait, retryMost)
			}
		}
		retry.Reset(again)
	}
}

// rest is the time between two passes while nothing changes.
func (m *Exporter) rest() time.Duration {
	if every := m.lookEvery(); every > 0 {
		return min(every, m.measureEvery())
	}
	return m.measureEvery()
}

// stop reports that the server is going and waits for ganesha's end.
func (m *Exporter) stop(ctx context.Context, stopGanesha func()) {
	m.Expected.SetStopping()
	if m.dataServer != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopReport)
		seen := m.Observe()
		seen.Ready, seen.Reason, seen.Message = false, internalv1.ReasonStopping, "the pod is being stopped"
		if err := m.write(last, seen); err != nil {
			m.Log.Warn("reporting the stop in the status failed", "err", err)
		}
		cancel()
		m.letLeave()
		m.sayGoodbye(context.WithoutCancel(ctx))
	}
	stopGanesha()
	m.group.Wait()
}

// letLeave goes on serving until the pod's Service no longer leads here.
func (m *Exporter) letLeave() {
	if m.IsDeleted() {
		return // No other pod replaces it.
	}
	<-time.After(m.Leave)
}

// pass applies the newest DataServer and reports. It returns true if nothing is left to do.
func (m *Exporter) pass(ctx, supervised context.Context) bool {
	m.identify()
	fault := m.apply(ctx, supervised)
	if ctx.Err() != nil {
		return false
	}
	if m.now().Sub(m.usedAt) >= m.measureEvery() {
		m.measure(ctx)
	}
	if n, err := m.Connections(); err != nil {
		m.Log.Error("counting the connections of clients failed", "err", err)
	} else {
		m.connections = n
	}
	if fault == nil && m.Moves != nil {
		m.Moves.Set(m.dataServer.Spec.Moves)
	}
	seen := m.verdict(fault)
	m.Metrics.Observe(seen)
	m.Metrics.SetShares(m.active())
	// The exports first: a reader that sees a Ready server must not see statuses of exports from before its start.
	var err error
	if fault == nil || m.refused {
		err = m.ReportExports(ctx)
	}
	err = errors.Join(err, m.write(ctx, seen))
	if err != nil {
		m.Log.Error("writing a status failed; trying again", "err", err)
		return false
	}
	return fault == nil && len(m.failing) == 0
}

// verdict is what a pass reports about the server. Faults of single shares, or a configuration that ganesha refuses,
// don't make the server not ready, because it still serves other shares.
func (m *Exporter) verdict(fault *kubeapi.Fault) kubeapi.Observation {
	seen := m.Observe()
	switch {
	case fault != nil:
		seen.Ready = fault.Reason == internalv1.ReasonReloadFailed && m.Expected.ServedGeneration() != 0
		seen.Reason, seen.Message = fault.Reason, fault.Error()
		m.Log.Warn("the pass did not do everything that the DataServer asks for; trying again", "reason", fault.Reason, "err", fault.Err)
		return seen
	case m.uncertified != nil:
		// Clients are still served. The pod is not ready, so that an update that brings such certificates stops here.
		seen.Reason, seen.Message = m.uncertified.Reason, m.uncertified.Error()
		m.Log.Error("namespace servers can't make changes here", "reason", m.uncertified.Reason, "err", m.uncertified.Err)
	case len(m.failing) > 0:
		seen.Reason, seen.Message = internalv1.ReasonExportsFailing, kubeapi.DescribeFailing(m.failing)
		m.Log.Warn("some shares have faults", "err", seen.Message)
	default:
		seen.Reason, seen.Message = v1alpha1.ReasonReady, "ganesha serves everything that is asked for"
	}
	if at := m.Ganesha.State().NoRecordAt; !at.IsZero() && m.now().Sub(at) < noRecordRemembered {
		seen.Message += "; but ganesha could not record a client that connected: after a restart such clients lose their open files and " +
			"locks. Check whether volume 0 (with storage.ceph, the pool for recovery records) is full"
	}
	seen.Loaded, seen.Ready, seen.RestartPending = true, true, m.restartPending
	if _, missing := m.nodeAddresses(); missing != "" {
		seen.Ready, seen.Reason, seen.Message = false, internalv1.ReasonNodeAddressMissing, missing
	}
	m.Expected.SetGeneration(m.dataServer.Generation)
	return seen
}

// measure measures the used space. If that fails, the last report stays.
func (m *Exporter) measure(ctx context.Context) {
	usage, err := m.storage.Measure(ctx, m.dataServer)
	if err != nil {
		m.Log.Error("measuring the storage failed", "err", err)
		return
	}
	m.usedAt = m.now()
	m.forecast(usage, m.usedAt)
	m.usage = usage
}

// active are the exports to serve: those that are not being deleted.
func (m *Exporter) active() []*internalv1.ShareExport {
	return slices.DeleteFunc(slices.Clone(m.exports), func(e *internalv1.ShareExport) bool { return e.DeletionTimestamp != nil })
}

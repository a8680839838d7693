package instance

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

const (
	// usageEvery is how often the volumes are measured.
	usageEvery = time.Minute
	// retryFirst to retryMost is the wait before a failed pass is tried again.
	retryFirst = 250 * time.Millisecond
	retryMost  = 15 * time.Second
	// stopReport is how long the report of a stop may take.
	stopReport = 2 * time.Second
)

// reporter writes the status of the record. It is the only writer of it.
type reporter interface {
	// report makes the status durable; a status that is there already costs no write.
	report(ctx context.Context, build func(earlier internalv1.DataServerStatus) internalv1.DataServerStatus) error
}

// manager brings ganesha to what the record asks for, and reports.
type manager struct {
	where           layout
	hostname        string
	nodeName, podIP string
	configFile      string
	keys            handleKeys
	ganesha         *supervisor
	prober          prober
	reporter        reporter
	records         <-chan *internalv1.DataServer
	wake            chan struct{}
	log             *slog.Logger
	now             func() time.Time
	metrics         *metrics

	// The rest belongs to the goroutine of run.
	record  *internalv1.DataServer
	memory  *ledger
	started bool
	loaded  string // The configuration that ganesha has.
	proven  int    // The start of ganesha that was seen to refuse a forged handle.
	starts  int    // The start of ganesha that loaded and serving are about.
	serving map[string]fileSystem
	leaving map[string]bool // Pseudo paths that it may still serve.
	removed map[string]bool
	usage   []volumeUsage
	usedAt  time.Time
	// connections are those of clients when they were counted last.
	connections int32
	trash       trashCan
	group       sync.WaitGroup
	expected    expectation
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
		case m.record = <-m.records:
			wait = retryFirst
		case <-m.wake:
		case <-retry.C:
		}
		again := usageEvery
		if m.record != nil {
			if again = usageEvery; !m.pass(ctx, supervised) {
				again, wait = wait, min(2*wait, retryMost)
			} else {
				wait = retryFirst
			}
		}
		retry.Reset(again)
	}
}

// stop reports that the server is going and waits for ganesha's end.
func (m *manager) stop(ctx context.Context, stopGanesha func()) {
	m.expected.stopping.Store(true)
	if m.record != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopReport)
		seen := m.observe()
		seen.ready, seen.reason, seen.message = false, internalv1.ReasonStopping, "the pod is being stopped"
		if err := m.write(last, seen); err != nil {
			m.log.Warn("the stop was not reported", "err", err)
		}
		cancel()
	}
	stopGanesha()
	m.group.Wait()
}

// pass does what is to be done for the present record and reports. It is true if nothing is left to do.
func (m *manager) pass(ctx, supervised context.Context) bool {
	fault := m.apply(ctx, supervised)
	if ctx.Err() != nil {
		return false
	}
	if m.now().Sub(m.usedAt) >= usageEvery {
		m.measure()
	}
	if n, err := readConnections(); err != nil {
		m.log.Error("the clients' connections were not counted", "err", err)
	} else {
		m.connections = n
	}
	seen := m.observe()
	switch {
	case fault != nil:
		seen.reason, seen.message = fault.reason, fault.Error()
		m.log.Warn("not everything that the record asks for is done", "reason", fault.reason, "err", fault.err)
	default:
		seen.loaded, seen.ready, seen.reason = true, true, v1alpha1.ReasonReady
		seen.message = "ganesha serves everything that is asked for"
		m.expected.generation.Store(m.record.Generation)
	}
	m.metrics.observe(seen, m.ganesha.state())
	if err := m.write(ctx, seen); err != nil {
		m.log.Error("the status was not written; trying again", "err", err)
		return false
	}
	return fault == nil
}

// observe tells what is known without a look at the verdict.
func (m *manager) observe() observation {
	seen := observation{nodeName: m.nodeName, podIP: m.podIP, generation: m.record.Generation, usage: m.usage}
	if m.memory == nil {
		return seen
	}
	seen.connections = m.connections
	seen.maxConnections = connectionsAllowed(m.ganesha.state().Config)
	for _, export := range m.record.Spec.Exports {
		if m.servesShare(export.ShareName) {
			seen.exports = append(seen.exports, internalv1.ServedExport{ShareName: export.ShareName, ExportIDs: m.memory.ids(export.ShareName)})
		}
	}
	for _, share := range m.record.Spec.Removals {
		if m.removed[share] {
			seen.removed = append(seen.removed, share)
		}
	}
	return seen
}

func (m *manager) write(ctx context.Context, seen observation) error {
	return m.reporter.report(ctx, func(earlier internalv1.DataServerStatus) internalv1.DataServerStatus {
		return statusFrom(earlier, seen, metav1.NewTime(m.now().Truncate(time.Second)))
	})
}

// measure looks how full the volumes are. A volume that can't be measured keeps the last report.
func (m *manager) measure() {
	usage := make([]volumeUsage, 0, m.record.Spec.Volumes)
	for index := range m.record.Spec.Volumes {
		volume, err := readUsage(m.where.volume(index))
		if err != nil {
			m.log.Error("measuring a volume", "volume", index, "err", err)
			return
		}
		usage = append(usage, volume)
	}
	m.usage, m.usedAt = usage, m.now()
}

// exported tells whether the record asks for the share.
func (m *manager) exported(share string) bool {
	return slices.ContainsFunc(m.record.Spec.Exports, func(e internalv1.ShareExport) bool { return e.ShareName == share })
}

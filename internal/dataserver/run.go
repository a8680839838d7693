package dataserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/memory"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// Options configure the instance manager.
type Options struct {
	// DataServer and Namespace name the object. Required.
	DataServer, Namespace string
	// Gateways are the addresses from which the pod's own node comes to it.
	Gateways []netip.Addr
	// NodeName and PodIP go into the status.
	NodeName, PodIP string
	// VolumesRoot has a directory for each volume; unset means naming.VolumesRoot.
	VolumesRoot string
	// RunDir has ganesha's configuration and pid file; unset means RunDir.
	RunDir string
	// GaneshaBinary is unset for GaneshaBinary.
	GaneshaBinary string
	// HandleKey and PreviousHandleKey are files with the keys of file handles; unset means the constants of these names.
	HandleKey, PreviousHandleKey string
	// Certificate and PreviousCertificate are files with the certificates by which namespace servers know this one, and it
	// them (internal/mtls); unset means the constants of these names.
	Certificate, PreviousCertificate string
	// NFSTLSPort is that of namespace servers; unset means v1alpha1.NFSTLSPort.
	NFSTLSPort int
	// Port is that of probes and metrics; unset means v1alpha1.ManagerPort.
	Port int
	// Log is where everything is told, ganesha's own lines too. Required.
	Log *slog.Logger

	// own is the address from which ganesha trusts the instance manager.
	own netip.Addr
}

func (o Options) withDefaults() (Options, error) {
	var missing []string
	if o.DataServer == "" {
		missing = append(missing, "the data server's name ("+serverpod.EnvDataServer+")")
	}
	if o.Namespace == "" {
		missing = append(missing, "its namespace ("+serverpod.EnvNamespace+")")
	}
	if len(missing) > 0 {
		return o, errors.New("missing: " + strings.Join(missing, ", "))
	}
	if o.VolumesRoot == "" {
		o.VolumesRoot = naming.VolumesRoot
	}
	if o.RunDir == "" {
		o.RunDir = serverpod.RunDir
	}
	if o.GaneshaBinary == "" {
		o.GaneshaBinary = serverpod.GaneshaBinary
	}
	if o.HandleKey == "" {
		o.HandleKey, o.PreviousHandleKey = serverpod.HandleKey, serverpod.PreviousHandleKey
	}
	if o.Certificate == "" {
		o.Certificate, o.PreviousCertificate = serverpod.Certificate, serverpod.PreviousCertificate
	}
	if o.NFSTLSPort == 0 {
		o.NFSTLSPort = v1alpha1.NFSTLSPort
	}
	o.own = ownAddress()
	if o.Port == 0 {
		o.Port = v1alpha1.ManagerPort
	}
	return o, nil
}

// Run is the instance manager. It returns when the context has ended and ganesha has
// stopped, or with the error that keeps it from working at all.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	options, err := options.withDefaults()
	if err != nil {
		return err
	}
	source, err := newAPISource(config, options.Namespace, options.DataServer)
	if err != nil {
		return err
	}
	manager, err := newManager(options, source.wishes, source, newNFSProber(options.DataServer, options.own))
	if err != nil {
		return err
	}
	manager.leave = serverpod.LeaveAllowance
	manager.fence, manager.isDeleted = source.fence, source.isDeleted
	// Clients of the pod before are on their way already, and the first look at the storage takes a second.
	manager.ganesha.hold()
	group, ctx := errgroup.WithContext(ctx)
	// These outlive the manager, which looks in the end whether its DataServer goes as well, and serves on for a while.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error { return source.run(serving) })
	group.Go(func() error { return manager.serveHTTP(serving, options.Port, manager.handler()) })
	group.Go(func() error {
		return manager.serveHTTP(serving, v1alpha1.MetricsPort, tellGanesha(manager.ganesha.state, ganeshaMetrics))
	})
	group.Go(func() error { return manager.proxy.listenAndServe(serving, options.NFSTLSPort) })
	group.Go(func() error {
		defer stopServing()
		return manager.run(ctx)
	})
	group.Go(func() error {
		reapOrphans(ctx, func() int { return manager.ganesha.state().PID })
		return nil
	})
	return group.Wait()
}

func newManager(options Options, wishes <-chan wish, to reporter, through prober) (*manager, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("asking for the host name: %w", err)
	}
	if hostname != options.DataServer {
		// Ganesha keeps its clients under the host name; another one would forget them.
		options.Log.Warn("the host name is not the data server's name; recovery records follow the host name",
			"hostname", hostname, "dataServer", options.DataServer)
	}
	m := &manager{
		volumesRoot: options.VolumesRoot, nodeName: options.NodeName, podIP: options.PodIP,
		configFile: filepath.Join(options.RunDir, "ganesha.conf"), keys: handleKeys{options.HandleKey, options.PreviousHandleKey},
		certificates: certificates{options.Certificate, options.PreviousCertificate}, own: options.own, gateways: options.Gateways,
		memoryLimit: memory.Limit(),
		prober:      through, reporter: to, wishes: wishes, wake: make(chan struct{}, 1),
		log: options.Log, now: time.Now, count: readConnections, isDeleted: func() bool { return false }, metrics: newMetrics(options.Namespace, options.DataServer),
	}
	m.proxy = newTLSProxy(func(ctx context.Context) (net.Conn, error) { return dialGanesha(ctx, m.own) }, m.metrics, options.Log)
	m.ganesha = &supervisor{
		binary: options.GaneshaBinary, configFile: m.configFile,
		pidFile: filepath.Join(options.RunDir, "ganesha.pid"), roundsFile: filepath.Join(options.RunDir, "export-rounds"),
		log: options.Log.With("process", "ganesha"), keys: m.keys, port: portHolder{port: v1alpha1.NFSPort},
		beforeStart: func(ctx context.Context) {
			if err := m.storage.BeforeStart(ctx, hostname); err != nil {
				m.log.Warn("putting the recovery records in order", "err", err)
			}
		},
		changed: func() {
			select {
			case m.wake <- struct{}{}:
			default: // A pass is due already.
			}
		},
	}
	collector := &ganeshaCollector{
		kubeNamespace: options.Namespace, state: m.ganesha.state, connections: readConnections, serves: m.metrics.serves,
		source: newGaneshaSource(ganeshaMetrics), log: m.log,
	}
	m.metrics.register(collector)
	m.figures = newFigures(options.DataServer, m.proxy.lister, collector.served)
	return m, nil
}

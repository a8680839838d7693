package dataserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/exporter"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/mover"
	"github.com/howdah/howdah/internal/dataserver/server"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/memory"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// Options configure a data server's process.
type Options struct {
	// DataServer and Namespace name the object. Required.
	DataServer, Namespace string
	// Gateways are the addresses from which the pod's own node comes to it.
	Gateways []netip.Addr
	// NodeName, PodIP and PodUID go into the status.
	NodeName, PodIP, PodUID string
	// FirstPort is the first of the pod's ports on its node's network; 0: it has a network of its own.
	FirstPort int32
	// AddressesIn are networks: the data server is reached at the node's address in them. None: at the pod's.
	AddressesIn []netip.Prefix
	// VolumesRoot has a directory for each volume; unset means naming.VolumesRoot.
	VolumesRoot string
	// RunDir has ganesha's configuration and pid file; unset means RunDir.
	RunDir string
	// GaneshaBinary is unset for GaneshaBinary.
	GaneshaBinary string
	// GaneshaRoot is the root directory of ganesha; unset means that of this process.
	GaneshaRoot string
	// HandleKey and PreviousHandleKey are files with the keys of file handles; unset means the constants of these names.
	HandleKey, PreviousHandleKey string
	// Certificate and PreviousCertificate are files with the certificates by which namespace servers know this one, and it
	// them (internal/mtls); unset means the constants of these names.
	Certificate, PreviousCertificate string
	// Log gets everything, ganesha's own lines too. Required.
	Log *slog.Logger

	// own is the address from which ganesha trusts this process.
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
	o.own = server.OwnAddress()
	return o, nil
}

func (o Options) ports() naming.Ports { return naming.DataServerPorts(o.FirstPort) }

func (o Options) ganesha() server.Ganesha { return server.Ganesha{Own: o.own, Ports: o.ports()} }

// Run is the data server's main process. It returns when the context has ended and ganesha has stopped, or with the error that keeps it from
// working at all.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	options, err := options.withDefaults()
	if err != nil {
		return err
	}
	if options.GaneshaRoot != "" {
		if err := supervisor.KeepOut(); err != nil {
			return err
		}
	}
	source, err := kubeapi.NewSource(config, options.Namespace, options.DataServer)
	if err != nil {
		return err
	}
	p, err := newProcess(options, parts{
		reporter: source, desired: source.Desired(), isDeleted: source.IsDeleted, leave: serverpod.LeaveAllowance,
		storage: func(dataServer *internalv1.DataServer) backend.Backend {
			return storageOf(dataServer, options, source.Fence)
		},
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	// These outlive the exporter, which looks in the end whether its DataServer goes as well, and serves on for a while.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error { return source.Run(serving) })
	if !p.addresses.await(ctx, source.Report) || !awaitPorts(ctx, options, source.Report) {
		stopServing()
		return group.Wait()
	}
	// Clients of the pod before are on their way already, and the first look at the storage takes a second.
	p.supervisor.Hold()
	group.Go(func() error {
		return server.ServeHTTP(serving, options.ports().Manager, p.handler(), p.nodes, options.Log)
	})
	group.Go(func() error {
		return server.ServeHTTP(serving, options.ports().Metrics, server.NewGaneshaHandler(p.supervisor.State, options.ganesha().MetricsURL()), p.nodes, options.Log)
	})
	group.Go(func() error { return p.proxy.ListenAndServe(serving, options.ports().NFSTLS) })
	release, alone := takeStorage(ctx, options, source.Report)
	if !alone {
		stopServing()
		return group.Wait()
	}
	defer release()
	group.Go(func() error {
		p.moves.Run(ctx)
		return nil
	})
	group.Go(func() error {
		p.addresses.watch(ctx, p.exporter.Wake)
		return nil
	})
	group.Go(func() error {
		defer stopServing()
		return p.exporter.Run(ctx)
	})
	group.Go(func() error {
		supervisor.ReapOrphans(ctx)
		return nil
	})
	return group.Wait()
}

// parts are what a process works with, which tests replace.
type parts struct {
	reporter  exporter.Reporter
	desired   <-chan kubeapi.Desired
	isDeleted func() bool
	leave     time.Duration
	storage   func(dataServer *internalv1.DataServer) backend.Backend
	// prober is unset for one that speaks NFS with ganesha.
	prober server.Prober
}

// process is a data server's process: its rooms, and what they share.
type process struct {
	options     Options
	supervisor  *supervisor.Supervisor
	exporter    *exporter.Exporter
	proxy       *server.Proxy
	moves       *moves
	probes      *server.Probes
	usage       *server.Usage
	metrics     *server.Metrics
	nodes       *server.Nodes
	prober      server.Prober
	addresses   *nodeAddresses
	memoryLimit int64
}

// newProcess makes the rooms and starts nothing.
func newProcess(options Options, with parts) (*process, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("asking for the host name: %w", err)
	}
	if hostname != options.DataServer && options.FirstPort == 0 {
		// Ganesha keeps its clients under the host name; another one would forget them.
		options.Log.Warn("the host name is not the data server's name; recovery records follow the host name",
			"hostname", hostname, "dataServer", options.DataServer)
	}
	p := &process{
		options: options, metrics: server.NewMetrics(options.Namespace, options.DataServer), nodes: server.NewNodes(options.Gateways),
		prober: with.prober, addresses: newNodeAddresses(options), memoryLimit: memory.Limit(),
	}
	if p.prober == nil {
		p.prober = server.NewNFSProber(options.DataServer, options.ganesha())
	}
	keys, expected := supervisor.HandleKeys{Current: options.HandleKey, Previous: options.PreviousHandleKey}, &server.Expectation{}
	p.proxy = server.NewProxy(options.ganesha().Dial, p.metrics, options.Log)
	p.moves = newMoves(options, with.reporter)
	p.proxy.ServePeers(p.moves.serve)
	p.supervisor = supervisor.New(supervisor.Config{
		Binary: options.GaneshaBinary, ConfigFile: options.configFile(), PIDFile: options.pidFile(), Root: options.GaneshaRoot,
		RoundsFile: options.roundsFile(), MovingFile: options.movingFile(), MovingTakenFile: options.movingTakenFile(), Keys: keys, Port: uint16(options.ports().NFS), Log: options.Log.With("process", "ganesha"),
		BeforeStart: func(ctx context.Context) {
			p.exporter.BeforeStart(ctx, hostname)
			if err := mover.BeforeStart(options.VolumesRoot, options.movingFile()); err != nil {
				options.Log.Error("finding out which directories have moved failed: ganesha does not start before that is known", "err", err)
			}
		},
		Outage:  func() supervisor.Outage { return p.exporter.Outage() },
		Changed: func() { p.exporter.Wake() }, Ended: p.metrics.GaneshaEnded,
	})
	p.exporter = exporter.New(exporter.Config{
		NodeName: options.NodeName, PodIP: options.PodIP, PodUID: options.PodUID, FirstPort: options.FirstPort, NodeAddresses: p.addresses.known,
		ConfigFile: options.configFile(), Keys: keys,
		Certificates: exporter.Certificates{Current: options.Certificate, Previous: options.PreviousCertificate},
		MemoryLimit:  p.memoryLimit, Own: options.own, Storage: with.storage, Ganesha: p.supervisor, Prober: p.prober, Reporter: with.reporter,
		Desired: with.desired, IsDeleted: with.isDeleted, Leave: with.leave, Connections: options.ganesha().ReadConnections,
		Expected: expected, Nodes: p.nodes, Proxy: p.proxy, Metrics: p.metrics, Moves: p.moves, Log: options.Log,
	})
	p.probes = server.NewProbes(p.supervisor.State, p.prober, expected)
	collector := server.NewGaneshaCollector(options.Namespace, options.ganesha(), p.supervisor.State, p.metrics.Serves, options.Log)
	p.metrics.Register(collector)
	p.usage = server.NewUsage(options.DataServer, p.proxy.Lister, collector.Served)
	return p, nil
}

func (p *process) handler() http.Handler {
	return server.NewHandler(p.probes, p.options.ganesha(), p.usage, p.metrics)
}

func (o Options) configFile() string { return filepath.Join(o.RunDir, "ganesha.conf") }

// pidFile is where ganesha may write: it can only read RunDir in a root of its own.
func (o Options) pidFile() string {
	if o.GaneshaRoot != "" {
		return filepath.Join(serverpod.StateDir, "ganesha.pid")
	}
	return filepath.Join(o.RunDir, "ganesha.pid")
}

// movingTakenFile is where ganesha says which list of moves it has: beside its pid file.
func (o Options) movingTakenFile() string {
	return filepath.Join(filepath.Dir(o.pidFile()), "moving.taken")
}

func (o Options) roundsFile() string { return filepath.Join(o.RunDir, "export-rounds") }

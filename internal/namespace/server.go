package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/namespace/directories"
	"github.com/howdah/howdah/internal/namespace/operations"
	"github.com/howdah/howdah/internal/namespace/owners"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
	"github.com/howdah/howdah/internal/publichttp"
	"github.com/howdah/howdah/internal/serverpod"
)

// closeTimeout bounds the goodbyes to data servers.
const closeTimeout = 2 * time.Second

// server is the parts of a running namespace server.
type server struct {
	Options
	config  *rest.Config
	tree    *tree.Tree
	pool    *owners.Pool
	prober  *owners.Prober
	service *directories.Service
	leader  *directories.Leader
	// reachability is the leader's, too.
	reachability *reachability
	watcher      *watcher
	metrics      *serverMetrics
	room         *waitingRoom

	// calls is nil until there is a server for clients.
	calls     atomic.Pointer[rpc.Server]
	probe     selfProbe
	listening atomic.Bool
	stopping  atomic.Bool
}

// Run serves the namespace of a FileServer until the context ends; then it lets clients go
// elsewhere, ends what is being done, and returns nil. An error means that it can't serve
// (any longer): the process should end, and be started again.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	s, err := newServer(config, o)
	if err != nil {
		return err
	}
	keepWithin(s.Memory)
	// What serves clients outlives the order to stop.
	lingering, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		s.stopping.Store(true)
		s.Log.Info("stopping")
		timer := s.Clock.NewTimer(s.Linger)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-lingering.Done():
		}
		stop()
	})()

	group, serving := errgroup.WithContext(lingering)
	group.Go(func() error { return s.manager(serving) })
	group.Go(func() error { return s.watcher.run(serving) })
	group.Go(func() error { s.prober.Run(serving); return nil })
	group.Go(func() error { s.service.CheckUnconfirmed(serving); return nil })
	group.Go(func() error { return s.nfs(serving) })
	group.Go(func() error { return s.keep(serving, ctx) })
	group.Go(func() error { s.waitingRoom(serving); return nil })
	err = group.Wait()
	goodbye, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	s.service.EndBehind(goodbye)
	s.pool.Close(goodbye)
	return err
}

func newServer(config *rest.Config, o Options) (*server, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	// The API server protects itself (priority and fairness); client-go's own limit of 5
	// requests a second would make mkdir slow.
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("prepare to write ShareDirectories: %w", err)
	}
	s := &server{Options: o, config: config, tree: tree.New(o.FileServer), metrics: newMetrics(o.KubeNamespace, o.FileServer)}
	s.tree.SetOwnNode(o.Gateways)
	identities, err := mtls.Load(o.Certificate, o.PreviousCertificate)
	if err != nil {
		return nil, err
	}
	// Any name: data servers know what it must be.
	if err := mtls.Check(identities, "", mtls.AsClient, o.Clock.Now()); err != nil {
		return nil, err
	}
	s.pool = owners.NewPool("howdah-namespace "+o.KubeNamespace+"/"+o.Replica, s.tree.IdentityAt, owners.MutualTLS(identities, s.tlsName), o.Log)
	s.prober = owners.NewProber(s.tree.ProbeTargets, s.pool.Null, o.Clock, o.Log)
	s.service = directories.NewService(directories.Config{
		Tree: s.tree, Client: api, Owners: s.pool, KubeNamespace: o.KubeNamespace, FileServer: o.FileServer, Replica: o.Replica,
		Clock: o.Clock, Log: o.Log, Concurrent: o.Changes, Timeout: o.ChangeTimeout, Observe: s.metrics.observeMkdir,
		Reachable: s.prober.Reachable, Answers: s.prober.Answers, List: s.pool.Directories,
	})
	s.leader = directories.NewLeader(s.service)
	s.reachability = &reachability{
		servers: s.tree.Servers, answer: s.prober.Answer, client: api, kubeNamespace: o.KubeNamespace, replica: o.Replica,
		clock: o.Clock, log: o.Log, gauge: s.metrics.reachable,
	}
	s.watcher, err = newWatcher(config, scheme, &o, s.tree, s.leader)
	if err != nil {
		return nil, err
	}
	s.room = newWaitingRoom(waitingTime, s.RPC.Connections, s.metrics.waiting.Inc, s.Log)
	s.watcher.addressesChanged, s.watcher.serverComes = s.leave, s.room.serverComes
	s.countTree()
	return s, nil
}

// tlsName is what the certificate of the data server at an address says; "" if no DataServer has it.
func (s *server) tlsName(address string) string {
	server, known := s.tree.ServerAt(address)
	if !known || server.Scope == "" {
		return ""
	}
	return naming.DataServerTLSName(server.Scope, server.Name)
}

// leave ends the sessions with data servers that are gone, without keeping the caller waiting.
func (s *server) leave() {
	addresses := map[string]bool{}
	for _, server := range s.tree.Servers() {
		addresses[server.Address] = true
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		s.pool.Keep(ctx, addresses)
	}()
}

// nfs serves clients once the tree is complete: a name that is not in it yet would be
// missing to them.
func (s *server) nfs(ctx context.Context) error {
	if err := s.complete(ctx); err != nil {
		return ignoreEnd(ctx, err)
	}
	identity, err := s.identity(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	refused := &refusals{log: s.Log, clock: s.Clock, count: s.metrics.refusals.Inc, logged: map[refusal]time.Time{}}
	handler := operations.New(operations.Config{
		Tree: s.tree, Mutator: s.service, Reachable: s.prober.Reachable, Now: s.Clock.Now, MaxWait: s.MaxWait,
		Look: s.look, Own: s.watcher.own.of, Hold: s.Hold, Ends: ctx.Done(), Held: s.RPC.Requests / 8, FoundHot: s.service.FoundHot,
		LeaseSeconds: uint32(s.Lease / time.Second), Observe: s.metrics.observeOperation, Refused: refused.note,
	})
	sessions, err := session.New(session.Config{
		// Clients take servers of one owner for one server with the same client IDs (RFC 8881 section 2.10.5), and replicas
		// share none. The scope is the same: it is about file handles, and these are.
		Handler: handler, Owner: identity + "/" + s.Replica, Scope: identity, Lease: s.Lease + renewalDelay, Limits: s.Sessions,
		Now: s.Clock.Now, Logger: s.Log,
	})
	if err != nil {
		return fmt.Errorf("prepare NFS sessions: %w", err)
	}
	calls := rpc.NewServer(rpc.Config{Handler: sessions, Limits: s.RPC, Logger: s.Log, Client: s.tree.ClientOf})
	s.countServing(sessions, calls)
	s.calls.Store(calls)
	doors, err := s.open(ctx)
	if err != nil {
		return err
	}
	s.Log.Info("serving", "address", doors[""].Addr().String(), "identity", identity)
	s.listening.Store(true)
	group, serving := errgroup.WithContext(ctx)
	go s.probe.run(serving, s, doors[""].Addr())
	for name, listener := range doors {
		group.Go(func() error { return calls.ServeDoor(serving, name, listener) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("serve NFS clients: %w", err)
	}
	return nil
}

// open listens for clients, by the names of the doors.
func (s *server) open(ctx context.Context) (map[string]net.Listener, error) {
	doors := map[string]net.Listener{}
	for name, address := range map[string]string{"": s.Listen, operations.DoorOutside: s.ListenOutside} {
		if address == "" && name != "" {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			for _, other := range doors {
				_ = other.Close()
			}
			return nil, fmt.Errorf("listen for NFS clients: %w", err)
		}
		doors[name] = listener
	}
	return doors, nil
}

// pollSynced is how often the watcher is asked whether it has read everything; there is no event for it.
const pollSynced = 20 * time.Millisecond

// complete waits until the tree has all that the API has.
func (s *server) complete(ctx context.Context) error {
	ticker := s.Clock.NewTicker(pollSynced)
	defer ticker.Stop()
	for s.watcher.check() != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
		}
	}
	return nil
}

// identity is the server's scope, and with its name its owner.
func (s *server) identity(ctx context.Context) (string, error) {
	if s.Identity != "" {
		return s.Identity, nil
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-s.watcher.identified:
	}
	for _, server := range s.tree.Servers() {
		if server.Scope != "" {
			return naming.NamespaceServerIdentity(server.Scope), nil
		}
	}
	return "", errors.New("no DataServer has a serverScope to make an identity from: use --identity")
}

// keep takes part in the election of the leader until the order to stop.
func (s *server) keep(serving, ordered context.Context) error {
	if err := s.complete(serving); err != nil {
		return ignoreEnd(serving, err)
	}
	keeping, cancel := context.WithCancel(serving)
	defer cancel()
	defer context.AfterFunc(ordered, cancel)()
	return elect(keeping, s.config, &s.Options, s.metrics, func(ctx context.Context) {
		var reporting sync.WaitGroup
		reporting.Go(func() { s.reachability.run(ctx) })
		s.leader.Run(ctx)
		reporting.Wait()
	})
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// answerAge is how old metrics and figures may be: whoever reaches the port may ask all the time, and they are made once for all.
const answerAge = time.Second

// manager answers probes and gives metrics.
func (s *server) manager(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+serverpod.HealthPath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET "+serverpod.ReadyPath, func(w http.ResponseWriter, _ *http.Request) {
		if err := s.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET "+serverpod.ConnectionsPath, func(w http.ResponseWriter, _ *http.Request) {
		calls := s.calls.Load()
		if calls == nil {
			http.Error(w, "not serving yet", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(serverpod.Connections{
			Used: int32(calls.Stats().Connections), Limit: int32(calls.Limits().Connections),
		})
	})
	mux.Handle("GET "+serverpod.ClientsPath, publichttp.Page(answerAge, http.HandlerFunc(s.tellClients)))
	mux.Handle("GET "+serverpod.MetricsPath, publichttp.Page(answerAge, promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})))
	web := &publichttp.Server{Handler: mux, Reserved: s.tree.IsNode, Log: s.Log}
	return web.ListenAndServe(ctx, s.Manager)
}

// tellClients tells which addresses have connections; its own probe is none.
func (s *server) tellClients(w http.ResponseWriter, _ *http.Request) {
	calls := s.calls.Load()
	if calls == nil {
		http.Error(w, "not serving yet", http.StatusServiceUnavailable)
		return
	}
	connections := map[string]int{}
	for address, n := range calls.Clients() {
		if !address.IsLoopback() {
			connections[address.String()] = n
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(serverpod.NewClients(connections))
}

// ready tells why clients should not come here.
func (s *server) ready() error {
	switch {
	case s.stopping.Load():
		return errors.New("stopping")
	case s.watcher.check() != nil:
		return s.watcher.check()
	case !s.listening.Load():
		return errors.New("no DataServer is known yet, so the server has no identity")
	}
	return s.probe.check(s.Clock.Now())
}

// look asks a junction's data server for the attributes of the directory. They are not cached: Linux keeps what it gets for minutes.
func (s *server) look(ctx context.Context, target *tree.Target) (nfs.Attributes, error) {
	return s.pool.Stat(ctx, target.Address, target.Path, nfs.Credentials{})
}

package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/howdah/howdah/internal/publichttp"
	"github.com/howdah/howdah/internal/serverpod"
)

// NewHandler serves the probes, the usage and the metrics of the data server.
func NewHandler(p *Probes, ganesha Ganesha, usage *Usage, metrics *Metrics) http.Handler {
	mux := http.NewServeMux()
	for path, probe := range map[string]func(context.Context) error{serverpod.HealthPath: p.healthy, serverpod.ReadyPath: p.ready} {
		shared := publichttp.Shared(probeAge, probeTimeout, probe)
		mux.HandleFunc("GET "+path, func(writer http.ResponseWriter, request *http.Request) {
			err := shared(request.Context())
			if path == serverpod.ReadyPath && p.expected.IsStopping() {
				err = errStopping // The shared answer may be older.
			}
			if err != nil {
				http.Error(writer, err.Error(), http.StatusServiceUnavailable)
				return
			}
			writer.WriteHeader(http.StatusOK)
		})
	}
	mux.Handle("GET "+serverpod.ClientsPath, publichttp.Page(answerAge, http.HandlerFunc(ganesha.answerClients)))
	mux.Handle("GET "+serverpod.SizesPath, publichttp.AtOnce(maxSizesAsked, http.HandlerFunc(usage.answerSizes)))
	mux.Handle("GET "+serverpod.ServedPath, publichttp.Page(answerAge, http.HandlerFunc(usage.answerServed)))
	mux.Handle("GET "+serverpod.MetricsPath, publichttp.Page(answerAge, promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{})))
	return mux
}

// ServeHTTP serves on a port until the context ends. It reserves connections for nodes.
func ServeHTTP(ctx context.Context, port int32, handler http.Handler, nodes *Nodes, log *slog.Logger) error {
	server := &publichttp.Server{Handler: handler, Reserved: nodes.has, Log: log}
	return server.ListenAndServe(ctx, net.JoinHostPort("", strconv.Itoa(int(port))))
}

// Nodes has the addresses of the cluster's nodes: the kubelet's probes come from there.
type Nodes struct {
	// Gateways are the addresses that the pod's own node uses to reach the pod. They don't change.
	Gateways []netip.Addr
	networks atomic.Pointer[[]netip.Prefix]
}

// NewNodes returns the nodes for a pod whose own node uses the gateways.
func NewNodes(gateways []netip.Addr) *Nodes {
	return &Nodes{Gateways: gateways}
}

// Set replaces the networks of nodes with those of the DataServer.
func (n *Nodes) Set(networks []netip.Prefix) { n.networks.Store(&networks) }

func (n *Nodes) has(address netip.Addr) bool {
	if slices.Contains(n.Gateways, address) {
		return true
	}
	networks := n.networks.Load()
	return networks != nil && slices.ContainsFunc(*networks, func(network netip.Prefix) bool { return network.Contains(address) })
}

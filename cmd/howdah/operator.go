package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"
	_ "time/tzdata" // for schedules: the image has no time zones

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/metricsaccess"
	"github.com/howdah/howdah/controllers/servertime"
	"github.com/howdah/howdah/internal/memory"
	"github.com/howdah/howdah/internal/metrics"
)

type operatorOptions struct {
	images          desired.Images
	watchNamespaces []string
	metricsAddress  string
	metricsSecure   bool
	healthAddress   string
	profileAddress  string
	networkPolicies bool
	provisionClaims bool
	failover        bool
	failoverVolumes bool
	metricsFrom     []string
	podNamespace    string
	leaderElect     bool
	leaderLease     time.Duration
	leaderNamespace string
	leaderID        string
	leaderIdentity  string
	logLevel        slog.Level
}

func newOperatorCommand() *cobra.Command {
	var o operatorOptions
	command := &cobra.Command{
		Use:   "operator",
		Short: "Run the operator: the controllers of FileServers, FileShares, snapshots and MLPerfStorageJobs",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return runOperator(o) },
	}
	flags := command.Flags()
	flags.StringVar(&o.images.Server, "server-image", os.Getenv("HOWDAH_SERVER_IMAGE"), "image of the data servers (nfs-ganesha and howdah) ($HOWDAH_SERVER_IMAGE)")
	flags.StringVar(&o.images.Howdah, "howdah-image", os.Getenv("HOWDAH_IMAGE"), "image of the namespace servers and of benchmarks (howdah alone) ($HOWDAH_IMAGE)")
	flags.StringSliceVar(&o.images.PullSecrets, "image-pull-secrets", nil, "pull secrets for the pods of every FileServer and benchmark, separated by commas; they must exist in each pod's Kubernetes namespace")
	flags.StringSliceVar(&o.watchNamespaces, "watch-namespaces", nil, "Kubernetes namespaces to watch, of shares and of FileServers, separated by commas; empty: all")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "address of /metrics: HTTPS, for clients that RBAC allows to get it; 0 turns it off")
	flags.BoolVar(&o.metricsSecure, "metrics-secure", true, "false: serve /metrics by HTTP without authentication, on a loopback address only")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 turns it off")
	flags.StringVar(&o.profileAddress, "pprof-bind-address", "0", "loopback address of Go's profiles by HTTP, /debug/pprof/, such as 127.0.0.1:6060; 0 turns it off")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "elect one of several operators to be active")
	flags.DurationVar(&o.leaderLease, "leader-election-lease", 15*time.Second, "with --leader-elect: how long the active operator may be silent before another one takes over; at least 5s")
	flags.StringVar(&o.leaderIdentity, "leader-election-identity", os.Getenv("POD_UID"), "with --leader-elect: what no other pod has, so that an operator whose container starts again is active at once ($POD_UID); empty: it waits until its Lease has expired")
	flags.StringVar(&o.leaderID, "leader-election-id", leaderElectionID, "with --leader-elect: name of the Lease; operators with one Lease stand by for each other, so another installation needs another")
	flags.StringVar(&o.leaderNamespace, "leader-election-namespace", "", "Kubernetes namespace of the Lease; empty: the pod's own")
	flags.BoolVar(&o.networkPolicies, "network-policies", false, "make NetworkPolicies for the pods of every FileServer")
	flags.StringSliceVar(&o.metricsFrom, "metrics-from-namespaces", nil, "with --network-policies: Kubernetes namespaces whose pods may read the metrics of servers")
	flags.BoolVar(&o.provisionClaims, "provision-claims", false, "make shares for claims of StorageClasses with the provisioner "+v1alpha1.Provisioner)
	flags.BoolVar(&o.failover, "failover", false, "allow failover of data servers to other nodes, for FileServers with spec.failover.fencing: Storage")
	flags.BoolVar(&o.failoverVolumes, "failover-volumes", false, "allow failover of data servers to other nodes, for FileServers on volumes with spec.failover.fencing: Power")
	flags.StringVar(&o.podNamespace, "pod-namespace", os.Getenv("POD_NAMESPACE"), "Kubernetes namespace of the operator ($POD_NAMESPACE)")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "lowest level to log: DEBUG, INFO, WARN or ERROR")
	return command
}

// metricsOptions serve HTTPS with a self-signed certificate made at the start, as kubebuilder's projects do: clients authenticate, and the
// metrics themselves are not secret. HTTP/2 is off because it made denial of service easy. Without TLS (for measurements) only the machine
// itself can read them.
func metricsOptions(address string, secure bool) (metricsserver.Options, error) {
	if !secure {
		if !isLoopback(address) {
			return metricsserver.Options{}, fmt.Errorf("--metrics-secure=false needs a loopback address, such as 127.0.0.1:8080, in --metrics-bind-address, not %q", address)
		}
		return metricsserver.Options{BindAddress: address}, nil
	}
	return metricsserver.Options{
		BindAddress: address, SecureServing: true, FilterProvider: metricsaccess.WithReviews,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	}, nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

func runOperator(o operatorOptions) error {
	if o.networkPolicies && o.podNamespace == "" {
		return errors.New("--network-policies needs --pod-namespace (or $POD_NAMESPACE): the policies let the operator's pods in")
	}
	if o.images.Server == "" || o.images.Howdah == "" {
		return errors.New("--server-image and --howdah-image (or $HOWDAH_SERVER_IMAGE and $HOWDAH_IMAGE) are required: data servers and namespace servers run them")
	}
	if o.leaderLease < 5*time.Second {
		return fmt.Errorf("--leader-election-lease is %s; with less than 5s a slow API server would end the operator", o.leaderLease)
	}
	if o.profileAddress != "0" && !isLoopback(o.profileAddress) {
		return fmt.Errorf("--pprof-bind-address is %q; it must be a loopback address, such as 127.0.0.1:6060: profiles have no authentication", o.profileAddress)
	}
	newLog(o.logLevel)
	memory.KeepWithin(memory.Limit())
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}
	scraping, err := metricsOptions(o.metricsAddress, o.metricsSecure)
	if err != nil {
		return err
	}
	clock := servertime.New()
	config.Wrap(clock.Observe)
	// In the proportions of the defaults: 15 s, 10 s and 2 s.
	renewDeadline, retryPeriod := o.leaderLease*2/3, o.leaderLease*2/15
	lock, err := o.leaderLock(config, renewDeadline)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Cache:                   controllers.CacheOptions(o.watchNamespaces),
		Metrics:                 scraping,
		HealthProbeBindAddress:  o.healthAddress,
		PprofBindAddress:        o.profileAddress,
		LeaderElection:          o.leaderElect,
		LeaderElectionID:        o.leaderID,
		LeaderElectionNamespace: o.leaderNamespace,

		LeaderElectionResourceLockInterface: lock,
		// The process ends with the manager, so that a successor does not have to wait until the lease expires.
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.leaderLease,
		RenewDeadline:                 &renewDeadline,
		RetryPeriod:                   &retryPeriod,
	})
	if err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	metrics.RegisterProcess(runtimemetrics.Registry, false)
	options := controllers.Options{
		Images: o.images, Clock: clock, WatchNamespaces: o.watchNamespaces, ProvisionClaims: o.provisionClaims, Failover: o.failover, FailoverVolumes: o.failoverVolumes,
		Metrics: runtimemetrics.Registry,
	}
	if o.networkPolicies {
		options.NetworkPolicies = &desired.NetworkPolicies{OperatorNamespace: o.podNamespace, MetricsFrom: o.metricsFrom}
	}
	if err := controllers.SetupWithManager(ctx, mgr, options); err != nil {
		return err
	}
	ctrl.Log.WithName("operator").Info("starting", "version", version, "serverImage", o.images.Server, "howdahImage", o.images.Howdah)
	return mgr.Start(ctx)
}

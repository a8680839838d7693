package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/gateway"
	"github.com/howdah/howdah/internal/namespace"
	"github.com/howdah/howdah/internal/serverpod"
)

func newNamespaceCommand() *cobra.Command {
	var o namespace.Options
	command := &cobra.Command{
		Use:   "namespace",
		Short: "Run a namespace server of a FileServer: it answers directories with referrals to data servers",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			o.Log = newLog(slog.LevelInfo)
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the API server: %w", err)
			}
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			o.Gateways = gateway.Addresses()
			return namespace.Run(ctx, config, o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.FileServer, "file-server", "", "name of the FileServer whose namespace to serve")
	flags.StringVar(&o.KubeNamespace, "namespace", os.Getenv("POD_NAMESPACE"), "Kubernetes namespace of the FileServer ($POD_NAMESPACE)")
	flags.StringVar(&o.Replica, "replica", os.Getenv("POD_NAME"), "name of this server among the FileServer's namespace servers ($POD_NAME)")
	flags.StringVar(&o.Identity, "identity", "", "NFS server scope, and with the server's name the server owner; default: made from the FileServer's UID in the DataServers")
	flags.StringVar(&o.Certificate, "certificate", serverpod.Certificate, "file with the certificate that data servers accept from this server")
	flags.StringVar(&o.PreviousCertificate, "previous-certificate", serverpod.PreviousCertificate, "file with the certificate of the previous keys; it may be missing")
	flags.StringVar(&o.Listen, "listen", ":"+strconv.Itoa(v1alpha1.NFSPort), "address for NFS clients")
	flags.StringVar(&o.ListenOutside, "listen-outside", "", "address for NFS clients outside the cluster, who get the outside addresses of data servers; empty: none")
	flags.StringVar(&o.Manager, "manager", ":"+strconv.Itoa(v1alpha1.ManagerPort), "address of /healthz, /readyz and /metrics")
	flags.StringVar(&o.WaitingRoom, "waiting-room", ":"+strconv.Itoa(v1alpha1.WaitingRoomPort), "address where clients of data servers without a pod wait; empty: none")
	flags.DurationVar(&o.Lease, "lease", namespace.DefaultLease, "NFS lease: how long a client may send nothing before it loses its state")
	flags.DurationVar(&o.MaxWait, "max-wait", 0, "how long to let clients wait while the data server of a directory does not serve; 0: no limit")
	flags.DurationVar(&o.Hold, "hold", namespace.DefaultHold, "how long a question for a directory that no data server serves yet is held before its client is put off; 0: not at all")
	flags.DurationVar(&o.Linger, "linger", namespace.DefaultLinger, "how long to keep serving after the signal to stop")
	flags.IntVar(&o.Changes, "max-changes", namespace.DefaultChanges, "limit of directories that change at the same time; more wait")
	flags.DurationVar(&o.ChangeTimeout, "change-timeout", namespace.DefaultChangeTimeout, "time limit for the change of one directory")
	flags.IntVar(&o.RPC.Connections, "max-connections", 0, "limit of connections in total; 0: the default")
	flags.IntVar(&o.RPC.ConnectionsPerAddress, "max-connections-per-address", 0, "limit of connections of one client address; 0: the default")
	flags.IntVar(&o.RPC.Requests, "max-requests", 0, "limit of requests in flight; 0: the default")
	flags.IntVar(&o.Sessions.Clients, "max-clients", 0, "limit of NFS clients; 0: the default")
	flags.IntVar(&o.Sessions.Sessions, "max-sessions", 0, "limit of NFS sessions; 0: the default")
	return command
}

package main

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/howdah/howdah/internal/dataserver"
	"github.com/howdah/howdah/internal/gateway"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// ownNode are the addresses from which the pod's own node comes to it. On the node's network they are the pod's own; the default
// gateway is a router there, and must not count as a node.
func ownNode(options dataserver.Options) []netip.Addr {
	if options.FirstPort == 0 {
		return gateway.Addresses()
	}
	if address, err := netip.ParseAddr(options.PodIP); err == nil {
		return []netip.Addr{address}
	}
	return nil
}

func newServerCommand() *cobra.Command {
	var options dataserver.Options
	var addressesIn []string
	command := &cobra.Command{
		Use:   "server",
		Short: "Run a data server: the supervisor and ganesha, configured from a DataServer",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options.Log = newLog(slog.LevelInfo)
			for _, text := range addressesIn {
				network, err := netip.ParsePrefix(text)
				if err != nil {
					return fmt.Errorf("reading --%s: %w", serverpod.FlagAddressesIn, err)
				}
				options.AddressesIn = append(options.AddressesIn, network)
			}
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the API server: %w", err)
			}
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			options.Gateways = ownNode(options)
			return dataserver.Run(ctx, config, options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.DataServer, "data-server", os.Getenv(serverpod.EnvDataServer), "name of the DataServer ($"+serverpod.EnvDataServer+")")
	flags.StringVar(&options.Namespace, "namespace", os.Getenv(serverpod.EnvNamespace), "namespace of the DataServer ($"+serverpod.EnvNamespace+")")
	flags.StringVar(&options.NodeName, "node-name", os.Getenv(serverpod.EnvNodeName), "node to report ($"+serverpod.EnvNodeName+")")
	flags.StringVar(&options.PodIP, "pod-ip", os.Getenv(serverpod.EnvPodIP), "address of the pod to report ($"+serverpod.EnvPodIP+")")
	flags.StringVar(&options.VolumesRoot, "volumes-root", naming.VolumesRoot, "directory with a directory for each volume")
	flags.StringVar(&options.RunDir, "run-dir", serverpod.RunDir, "directory for ganesha's configuration and pid file")
	flags.StringVar(&options.GaneshaBinary, "ganesha-binary", serverpod.GaneshaBinary, "the ganesha.nfsd to run")
	flags.StringVar(&options.GaneshaRoot, serverpod.FlagGaneshaRoot, "",
		"root directory of ganesha, with volumes and run directory in it; unset: this process's")
	flags.StringVar(&options.PodUID, "pod-uid", os.Getenv(serverpod.EnvPodUID), "UID of the pod to report ($"+serverpod.EnvPodUID+")")
	flags.Int32Var(&options.FirstPort, serverpod.FlagFirstPort, 0, "first of the ports on the node's network; unset: the pod has a network of its own")
	flags.StringSliceVar(&addressesIn, serverpod.FlagAddressesIn, nil, "networks in which the data server is reached at its node's address; unset: at the pod's")
	return command
}

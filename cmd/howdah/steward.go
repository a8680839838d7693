package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/serverpod"
	"github.com/howdah/howdah/internal/steward"
)

func newStewardCommand() *cobra.Command {
	var options steward.Options
	command := &cobra.Command{
		Use:   "steward",
		Short: "Run the steward of a FileServer: it makes and deletes subvolumes and users in Ceph",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options.Log = newLog(slog.LevelInfo)
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the API server: %w", err)
			}
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return steward.Run(ctx, config, options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.FileServer, "file-server", "", "name of the FileServer")
	flags.StringVar(&options.Namespace, "namespace", os.Getenv(serverpod.EnvNamespace), "Kubernetes namespace of the FileServer ($"+serverpod.EnvNamespace+")")
	flags.StringVar(&options.Credential, "credential", serverpod.StewardCredential, "directory with userID and userKey of the Ceph account that makes subvolumes")
	flags.StringVar(&options.RunDir, "run-dir", serverpod.RunDir, "directory for ceph.conf and keyrings")
	flags.StringVar(&options.Helper, "ceph-helper", client.Binary, "program that talks to Ceph")
	flags.IntVar(&options.Port, "port", v1alpha1.ManagerPort, "port of /healthz and /readyz")
	return command
}

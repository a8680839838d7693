package main

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/howdah/howdah/internal/serverpod"
)

// newIdleCommand is what the pods run that keep others off lost nodes, should such a node come back before its pod is deleted.
func newIdleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   serverpod.IdleCommand,
		Short: "Do nothing until stopped: the pod that keeps others off a lost node",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			<-ctx.Done()
			return nil
		},
	}
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/howdah/howdah/internal/dataserver/mover"
)

// newMoveCommands are what a data server runs of itself while it copies a directory. They are for nothing else.
func newMoveCommands() []*cobra.Command {
	return []*cobra.Command{{
		Use:                mover.TunnelCommand + " SOCKET HOST COMMAND…",
		Short:              "Be rsync's remote shell: what it says goes through a socket of the data server",
		Hidden:             true,
		Args:               cobra.MinimumNArgs(2),
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return mover.Tunnel(args[0], args[1:]) },
	}, {
		Use:                mover.ConfinedCommand + " DIRECTORY COMMAND…",
		Short:              "Run a command that can read one directory, and change nothing",
		Hidden:             true,
		Args:               cobra.MinimumNArgs(2),
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return mover.Confined(args[0], args[1:]) },
	}}
}

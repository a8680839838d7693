// Command howdah is every role of Howdah in one binary: the operator, the
// namespace server, the supervisor of a data server and the load engine.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/howdah/howdah/internal/metrics"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

func main() {
	metrics.Version = version
	root := &cobra.Command{
		Use:           "howdah",
		Short:         "Distributed NFS file services for Kubernetes",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: false,
	}
	root.AddCommand(
		newOperatorCommand(),
		newNamespaceCommand(),
		newServerCommand(),
		newStewardCommand(),
		newBenchmarkCommand(),
		newLoadCommand(),
		newIdleCommand(),
	)
	root.AddCommand(newMoveCommands()...)
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}

// Command argocd is the part of Argo CD that compares and syncs, in one binary: the controllers of Applications and ApplicationSets, the
// repository server, the API server and Git's password helper. The name that it is called by selects one. Argo CD's own main also has the
// CLI, which is not needed here; the module has no web pages.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	sets "github.com/argoproj/argo-cd/v3/cmd/argocd-applicationset-controller/commands"
	askpass "github.com/argoproj/argo-cd/v3/cmd/argocd-git-ask-pass/commands"
	repository "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	server "github.com/argoproj/argo-cd/v3/cmd/argocd-server/commands"
	"github.com/argoproj/argo-cd/v3/common"
	"github.com/spf13/cobra"
)

var programs = map[string]func() *cobra.Command{
	common.CommandApplicationController:    controller.NewCommand,
	common.CommandApplicationSetController: sets.NewCommand,
	common.CommandRepoServer:               repository.NewCommand,
	common.CommandServer:                   server.NewCommand,
	common.CommandGitAskPass:               askpass.NewCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	program, found := programs[name]
	if !found {
		fmt.Fprintf(os.Stderr, "argocd: no program named %q\n", name)
		os.Exit(2)
	}
	if err := program().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

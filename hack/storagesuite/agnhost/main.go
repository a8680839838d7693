// Command agnhost is what the storage suite uses of Kubernetes' test image of that name: it looks at mounted volumes, and it waits.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/test/images/agnhost/mounttest"
	"k8s.io/kubernetes/test/images/agnhost/pause"
)

func main() {
	command := &cobra.Command{Use: "agnhost"}
	command.AddCommand(mounttest.CmdMounttest, pause.CmdPause)
	os.Exit(cli.Run(command))
}

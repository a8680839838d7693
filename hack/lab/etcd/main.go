// Command etcd is the upstream etcd server, built here because Debian's is two
// minor releases older than what the API server expects (it lacks the progress
// requests that watches with a consistent start need). With "snapshot" as its
// first word it is etcdutl, which makes a data directory of a copy.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "snapshot" {
		tool := &cobra.Command{Use: "etcd"}
		tool.AddCommand(etcdutl.NewSnapshotCommand())
		if tool.Execute() != nil {
			os.Exit(1)
		}
		return
	}
	etcdmain.Main(os.Args)
}

// Command etcdutl is upstream's snapshot command, which makes a data directory of a copy of etcd's database.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
)

func main() {
	tool := &cobra.Command{Use: "etcdutl"}
	tool.AddCommand(etcdutl.NewSnapshotCommand())
	if tool.Execute() != nil {
		os.Exit(1)
	}
}

// Command etcd is the upstream etcd server, built here because Debian's is two
// minor releases older than what the API server expects (it lacks the progress
// requests that watches with a consistent start need).
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}

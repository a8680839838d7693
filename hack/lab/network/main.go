// Command network makes volumes that every node of the lab can use, one at a time: network block devices (NBD). It is a small
// CSI driver, and the storage behind it. What a cloud does when a volume is detached it does as well: the node is cut off, and
// may not come back until the volume is attached to it again.
//
//	network serve    the storage: NBD for nodes, volumes for claims, and the CSI controller, which Kubernetes' external-attacher calls.
//	                 One process in the lab's network namespace
//	network node     the CSI node plugin: a service of each node
//
// Settings are in the environment: ADDRESS and DATA_DIR of the storage, CSI_SOCKET, NODE_NAME, API_SERVER, PKI_DIR.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// driverName is the driver's, and the provisioner's of the storage class.
const driverName = "network.howdah-lab"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 1 {
		switch args[0] {
		case "serve":
			return serve(ctx)
		case "node":
			return serveNode(ctx)
		}
	}
	return errors.New("usage: network serve|node")
}

func serve(ctx context.Context) error {
	storage, err := openStorage(os.Getenv("DATA_DIR"))
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", os.Getenv("ADDRESS"))
	if err != nil {
		return err
	}
	failed := make(chan error, 3)
	go func() { failed <- storage.serveNBD(listener) }()
	go func() {
		failed <- serveSocket(ctx, os.Getenv("CSI_SOCKET"), func(s *grpc.Server) {
			csi.RegisterIdentityServer(s, identity{})
			csi.RegisterControllerServer(s, &controller{storage: storage})
		})
	}()
	go func() { failed <- provision(ctx, storage) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// serveSocket serves gRPC on a Unix socket, after removing the one of an earlier run.
func serveSocket(ctx context.Context, path string, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	server := grpc.NewServer()
	register(server)
	go func() {
		<-ctx.Done()
		server.Stop()
	}()
	return server.Serve(listener)
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/howdah/howdah/controllers"
)

// size is how much the operator is given.
type size struct {
	fileServers, replicas, shares, directories int
	// maxShares is spec.limits.total.shares; 0 leaves it unset.
	maxShares int32
	// rounds is how often one event is measured, each time on another FileServer.
	rounds int
	idle   time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "operatorload:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	var s size
	operator := flag.String("operator", filepath.Join("bin", "howdah"), "the binary to measure")
	flag.IntVar(&s.fileServers, "file-servers", 50, "number of FileServers")
	flag.IntVar(&s.replicas, "replicas", 2, "data servers of each")
	flag.IntVar(&s.shares, "shares", 10, "shares of each")
	flag.IntVar(&s.directories, "directories", 200, "directories of each share")
	flag.IntVar(&s.rounds, "rounds", 10, "how often one event is measured")
	flag.DurationVar(&s.idle, "idle", time.Minute, "how long nothing is done")
	var m many
	flag.IntVar(&m.long, "many-shares", 0, "number of shares with the longest access lists for one FileServer; measures that instead")
	flag.IntVar(&m.limit, "limit", 4096, "how many shares a FileServer can have: with --many-shares, others are added up to it, and one more")
	flag.IntVar(&m.deleted, "deleted", 300, "how many of many shares are deleted at once")
	profiles := flag.String("profiles", "", "folder for CPU profiles of the operator and the API server during each step, and for the operator's heap after it; empty means none")
	flag.Parse()
	if m.long > 0 {
		s.fileServers, s.shares, s.maxShares = 1, 0, int32(m.limit)
	}
	ctrl.SetLogger(logr.Discard())
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("config", "crd", "bases")},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	environment.ControlPlane.Etcd = &envtest.Etcd{}
	environment.ControlPlane.Etcd.Configure().Set("quota-backend-bytes", etcdQuota)
	folder, err := os.MkdirTemp("", "operatorload")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	audit, err := configureAudit(environment, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	config, err := environment.Start()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, -1
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	watching, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	server, err := newAPIServer(config, audit, *profiles)
	if err != nil {
		return err
	}
	w := &world{Client: admin, watching: watching, size: s, server: server}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	access, err := allow(ctx, admin, environment)
	if err != nil {
		return err
	}
	access, err = writeAccess(folder, access)
	if err != nil {
		return err
	}
	if m.long > 0 {
		return measureMany(ctx, w, m, *operator, access)
	}
	figures, err := measure(ctx, w, *operator, access)
	fmt.Print(report(s, figures))
	return err
}

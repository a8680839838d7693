package steward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/publichttp"
	"github.com/howdah/howdah/internal/serverpod"
)

// Options configure a steward.
type Options struct {
	// FileServer and Namespace name the Steward object. Required.
	FileServer, Namespace string
	// Credential is the directory where the Secret with the provisioning account is mounted, RunDir a writable directory.
	// Unset means those of the pod.
	Credential, RunDir string
	// Helper is howdah-ceph; unset means client.Binary.
	Helper string
	// Port is the port of the probes. 0 means v1alpha1.ManagerPort, a negative number means none.
	Port int
	// Log is the logger. Required.
	Log *slog.Logger
}

// Run runs the steward until the context ends, or until an error that prevents all work.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	if o.FileServer == "" || o.Namespace == "" {
		return errors.New("the name of the FileServer and its Kubernetes namespace are required")
	}
	if o.Credential == "" {
		o.Credential = serverpod.StewardCredential
	}
	if o.RunDir == "" {
		o.RunDir = serverpod.RunDir
	}
	if o.Port == 0 {
		o.Port = v1alpha1.ManagerPort
	}
	to, err := newAPI(config, o.Namespace, o.FileServer)
	if err != nil {
		return err
	}
	connectors := make([]*connector, 3)
	for i, name := range []string{"places", "fences", "snapshots"} {
		directory := filepath.Join(o.RunDir, name)
		if err := os.MkdirAll(directory, 0o700); err != nil {
			return fmt.Errorf("preparing to connect to Ceph: %w", err)
		}
		connectors[i] = &connector{helper: o.Helper, credential: o.Credential, directory: directory}
	}
	places := &steward{api: to, connector: connectors[0], log: o.Log, now: time.Now, room: roomForShares, places: map[string]known{}, lost: map[string]bool{}, stuck: map[string]bool{}}
	fences := &fencer{
		api: to, connector: connectors[1], log: o.Log, seen: map[string]sighting{}, answered: map[string]string{},
		podFences: map[string]internalv1.PodFenceAnswer{}, tried: map[string]time.Time{}, lookAt: map[string]time.Time{}, now: time.Now,
	}
	snapshots := &snapper{api: to, connector: connectors[2], log: o.Log, now: time.Now}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return to.run(ctx) })
	group.Go(func() error { return places.run(ctx) })
	group.Go(func() error { return fences.run(ctx) })
	group.Go(func() error { return snapshots.run(ctx) })
	if o.Port > 0 {
		group.Go(func() error { return serveProbes(ctx, o.Port, o.Log) })
	}
	return group.Wait()
}

// serveProbes answers the kubelet's probes. They only test that the program runs: a restart would not repair Ceph, whose state
// is in the statuses.
func serveProbes(ctx context.Context, port int, log *slog.Logger) error {
	mux := http.NewServeMux()
	for _, path := range []string{serverpod.HealthPath, serverpod.ReadyPath} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	}
	server := &publichttp.Server{Handler: mux, Log: log}
	return server.ListenAndServe(ctx, ":"+strconv.Itoa(port))
}

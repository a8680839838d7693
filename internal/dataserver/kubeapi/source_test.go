package kubeapi

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/fill"
	"github.com/howdah/howdah/internal/naming"
)

// TestTheDataServerInTheAPI shows, on a real API server, that the data server gets events of its own DataServer only, that its status is
// accepted, that it does not write a status twice, and that its own write causes no event.
func TestTheDataServerInTheAPI(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("needs KUBEBUILDER_ASSETS: a directory with etcd and kube-apiserver")
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join("..", "..", "..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
	}
	t.Cleanup(func() { _ = environment.Stop() }) // Also what a failed start left.
	config, err := environment.Start()
	mustWork(t, "starting the API server", err)
	scheme := runtime.NewScheme()
	mustWork(t, "scheme", internalv1.AddToScheme(scheme))
	operator, err := client.New(config, client.Options{Scheme: scheme})
	mustWork(t, "client", err)

	source, err := NewSource(config, "default", "training-0")
	mustWork(t, "source", err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	defer func() {
		cancel()
		mustWork(t, "the watch", <-ended)
	}()

	seen := Observation{NodeName: "node1", PodIP: "10.0.0.1", Generation: 1, Reason: internalv1.ReasonStarting, Message: "ganesha is starting"}
	report := func() {
		t.Helper()
		mustWork(t, "report", source.Report(t.Context(), func(earlier internalv1.DataServerStatus) internalv1.DataServerStatus {
			return StatusFrom(earlier, seen, metav1.Now())
		}))
	}
	next := func() Desired {
		t.Helper()
		select {
		case next := <-source.Desired():
			return next
		case <-time.After(timeout):
			t.Fatal("heard nothing")
			return Desired{}
		}
	}
	silent := func(what string) {
		t.Helper()
		select {
		case next := <-source.Desired():
			t.Fatalf("%s was heard: %+v", what, next)
		case <-time.After(500 * time.Millisecond):
		}
	}
	report() // Before the first DataServer is seen there is nothing to write to.

	other := dataservertest.DataServer(1)
	other.Name, other.Generation = "training-1", 0
	mustWork(t, "create another server's DataServer", operator.Create(t.Context(), other))
	mustWork(t, "create another server's export", operator.Create(t.Context(), exportFor("training-1", "alpha")))
	silent("another server's DataServer")
	dataServer := dataservertest.DataServer(2)
	dataServer.Generation = 0
	mustWork(t, "create the DataServer", operator.Create(t.Context(), dataServer))
	if heard := next(); heard.Server.Name != "training-0" || heard.Server.Generation != 1 || heard.Server.Spec.Volumes != 2 || len(heard.Exports) != 0 {
		t.Fatalf("heard %+v", heard)
	}

	report()
	silent("the manager's own write")
	stored := func() *internalv1.DataServer {
		t.Helper()
		var found internalv1.DataServer
		mustWork(t, "get", operator.Get(t.Context(), client.ObjectKeyFromObject(dataServer), &found))
		return &found
	}
	first := stored()
	if first.Status.NodeName != "node1" || first.Status.Conditions[0].Reason != internalv1.ReasonStarting {
		t.Errorf("status %+v", first.Status)
	}
	report()
	if again := stored(); again.ResourceVersion != first.ResourceVersion {
		t.Error("the same status was written again")
	}

	first.Spec.LeaseSeconds = 11
	mustWork(t, "update", operator.Update(t.Context(), first))
	if heard := next(); heard.Server.Generation != 2 {
		t.Fatalf("heard %+v", heard)
	}
	seen.Generation, seen.Loaded, seen.Ready, seen.Reason, seen.Message = 2, true, true, v1alpha1.ReasonReady, "all is served"
	seen.Usage = []backend.Usage{
		{
			Usage:        fill.Usage{Bytes: fill.Amount{Total: 6400, Used: 6240, Free: 160}, Files: fill.Amount{Total: 6400, Used: 150, Free: 6250}},
			FileSystemID: "0123456789abcdef", FullAt: time.Now().Add(time.Hour),
		},
		{Usage: fill.Usage{Bytes: fill.Amount{Total: 6400, Free: 6400}}},
	}
	report()
	whole := stored()
	if *whole.Status.ObservedGeneration != 2 || len(whole.Status.Volumes) != 2 {
		t.Errorf("status %+v", whole.Status)
	}

	// A status from another writer is corrected.
	foreign := stored()
	foreign.Status.NodeName = "elsewhere"
	mustWork(t, "a foreign write", operator.Status().Update(t.Context(), foreign))
	next()
	report()
	if healed := stored(); !equality.Semantic.DeepEqual(healed.Status, whole.Status) {
		t.Errorf("status %+v", healed.Status)
	}
	exportsInTheAPI(t, operator, source, next, silent)

	if source.IsDeleted() {
		t.Error("a DataServer that is there is taken for deleted")
	}
	mustWork(t, "delete the DataServer", operator.Delete(t.Context(), stored()))
	for deadline := time.Now().Add(timeout); !source.IsDeleted(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the deletion of the DataServer was not heard")
		}
	}
	dataServer.ResourceVersion, dataServer.UID = "", ""
	mustWork(t, "make the DataServer again", operator.Create(t.Context(), dataServer))
	if next(); source.IsDeleted() {
		t.Error("a DataServer that was made again is taken for deleted")
	}
}

// exportsInTheAPI goes through the life of exports: many at once are heard as few changes, own statuses not at all, and a
// deletion is heard while the finalizer keeps the object.
func exportsInTheAPI(t *testing.T, operator client.Client, source *Source, next func() Desired, silent func(string)) {
	t.Helper()
	const many = 30
	for i := range many {
		mustWork(t, "create an export", operator.Create(t.Context(), exportFor("training-0", "share"+strconv.Itoa(i))))
	}
	changes, heard := 0, Desired{}
	for len(heard.Exports) < many {
		heard = next()
		changes++
	}
	if changes > many/2 {
		t.Errorf("%d new exports were heard as %d changes", many, changes)
	}
	sight := ExportObservation{Generation: 1, Serves: true, IDs: []int32{1, 2}}
	report := func() {
		t.Helper()
		mustWork(t, "report", source.ReportExports(t.Context(), func(e *internalv1.ShareExport) internalv1.ShareExportStatus {
			return ExportStatusFrom(e.Status, sight, metav1.Unix(1, 0))
		}))
	}
	report()
	silent("the manager's own statuses")
	stored := func(share string) *internalv1.ShareExport {
		t.Helper()
		found := exportFor("training-0", share)
		mustWork(t, "get", operator.Get(t.Context(), client.ObjectKeyFromObject(found), found))
		return found
	}
	first := stored("share7")
	if !dataservertest.Serves(first) || !slices.Equal(first.Status.ExportIDs, []int32{1, 2}) {
		t.Errorf("status %+v", first.Status)
	}
	report()
	if again := stored("share7"); again.ResourceVersion != first.ResourceVersion {
		t.Error("the same status was written again")
	}
	mustWork(t, "delete", operator.Delete(t.Context(), first))
	heard = next()
	if at := slices.IndexFunc(heard.Exports, func(e *internalv1.ShareExport) bool { return ShareOf(e) == "share7" }); at < 0 ||
		heard.Exports[at].DeletionTimestamp == nil {
		t.Fatalf("the deletion was not heard: %+v", heard)
	}
	gone := stored("share7")
	gone.Finalizers = nil
	mustWork(t, "the finalizer goes", operator.Update(t.Context(), gone))
	for len(heard.Exports) == many {
		heard = next()
	}
}

func exportFor(server, share string) *internalv1.ShareExport {
	export := dataservertest.NewExport(dataservertest.ShareSpec(share))
	return &internalv1.ShareExport{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.ShareExport(share, server), Namespace: "default", Finalizers: []string{v1alpha1.ExportFinalizer},
			Labels: map[string]string{v1alpha1.DataServerLabel: server},
		},
		Spec: export.Spec,
	}
}

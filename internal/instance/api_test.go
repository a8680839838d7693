package instance

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// TestTheRecordInTheAPI shows, on a real API server, that the instance manager hears of its own record alone, that its
// status is accepted, and that it neither writes twice nor hears its own echo.
func TestTheRecordInTheAPI(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("needs KUBEBUILDER_ASSETS: a directory with etcd and kube-apiserver")
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join("..", "..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
	}
	t.Cleanup(func() { _ = environment.Stop() }) // Also what a failed start left.
	config, err := environment.Start()
	mustWork(t, "starting the API server", err)
	scheme := runtime.NewScheme()
	mustWork(t, "scheme", internalv1.AddToScheme(scheme))
	operator, err := client.New(config, client.Options{Scheme: scheme})
	mustWork(t, "client", err)

	source, err := newAPIRecord(config, "default", "training-0")
	mustWork(t, "source", err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.run(ctx) }()
	defer func() {
		cancel()
		mustWork(t, "the watch", <-ended)
	}()

	seen := observation{nodeName: "node1", podIP: "10.0.0.1", generation: 1, reason: internalv1.ReasonStarting, message: "ganesha is starting"}
	report := func() {
		t.Helper()
		mustWork(t, "report", source.report(t.Context(), func(earlier internalv1.DataServerStatus) internalv1.DataServerStatus {
			return statusFrom(earlier, seen, metav1.Now())
		}))
	}
	next := func() *internalv1.DataServer {
		t.Helper()
		select {
		case record := <-source.records:
			return record
		case <-time.After(patience):
			t.Fatal("heard nothing")
			return nil
		}
	}
	silent := func(what string) {
		t.Helper()
		select {
		case record := <-source.records:
			t.Fatalf("%s was heard: %+v", what, record)
		case <-time.After(500 * time.Millisecond):
		}
	}
	report() // Before the first record is seen there is nothing to write to.

	other := sampleRecord(1)
	other.Name, other.Generation = "training-1", 0
	mustWork(t, "create another server's record", operator.Create(t.Context(), other))
	silent("another server's record")
	record := sampleRecord(2)
	record.Generation = 0
	mustWork(t, "create the record", operator.Create(t.Context(), record))
	if heard := next(); heard.Name != "training-0" || heard.Generation != 1 || heard.Spec.Volumes != 2 {
		t.Fatalf("heard %+v", heard)
	}

	report()
	silent("the manager's own write")
	stored := func() *internalv1.DataServer {
		t.Helper()
		var found internalv1.DataServer
		mustWork(t, "get", operator.Get(t.Context(), client.ObjectKeyFromObject(record), &found))
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

	first.Spec.Exports = []internalv1.ShareExport{share("alpha")}
	mustWork(t, "update", operator.Update(t.Context(), first))
	if heard := next(); heard.Generation != 2 || len(heard.Spec.Exports) != 1 {
		t.Fatalf("heard %+v", heard)
	}
	seen.generation, seen.loaded, seen.ready, seen.reason, seen.message = 2, true, true, v1alpha1.ReasonReady, "all is served"
	seen.exports = []internalv1.ServedExport{{ShareName: "alpha", ExportIDs: []int32{1, 2}}}
	seen.removed, seen.usage = []string{"gone"}, []volumeUsage{{total: 6400, used: 150}, {total: 6400, used: 0}}
	report()
	whole := stored()
	if *whole.Status.ObservedGeneration != 2 || len(whole.Status.Exports) != 1 || len(whole.Status.Volumes) != 2 || len(whole.Status.Removed) != 1 {
		t.Errorf("status %+v", whole.Status)
	}
	seen.removed = nil
	report()
	if less := stored(); len(less.Status.Removed) != 0 || !equality.Semantic.DeepEqual(less.Status.Exports, whole.Status.Exports) {
		t.Errorf("status %+v", less.Status)
	}

	// Somebody else's status is put right.
	foreign := stored()
	foreign.Status.Exports = nil
	mustWork(t, "a foreign write", operator.Status().Update(t.Context(), foreign))
	next()
	report()
	if healed := stored(); !equality.Semantic.DeepEqual(healed.Status.Exports, whole.Status.Exports) {
		t.Errorf("status %+v", healed.Status)
	}
}

package objectmetrics

import (
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/metrics"
	"github.com/howdah/howdah/test/builders"
)

var update = flag.Bool("update", false, "rewrite the golden file")

var epoch = time.Unix(1_700_000_000, 0)

func condition(kind string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Any", LastTransitionTime: metav1.NewTime(epoch)}
}

// world is one of each kind, with all that a status can have.
func world() []client.Object {
	server := builders.FileServer("storage", "training").Build()
	server.Generation = 4
	server.Spec.Failover.Fencing = v1alpha1.FailoverFencingStorage
	server.Status = v1alpha1.FileServerStatus{
		Conditions:         []metav1.Condition{condition("Ready", metav1.ConditionFalse), condition("Stalled", metav1.ConditionTrue)},
		ObservedGeneration: ptr.To(int64(3)), Replicas: ptr.To(int32(2)), ReadyReplicas: ptr.To(int32(1)),
		Capacity: v1alpha1.FileServerCapacity{TotalBytes: ptr.To(int64(2000)), UsedBytes: ptr.To(int64(500)), ProvisionedBytes: ptr.To(int64(3000))},
		Moves:    v1alpha1.DirectoryMoves{Pending: ptr.To(int32(2)), Done: ptr.To(int64(40))},
		Servers: []v1alpha1.FileServerServerStatus{
			{
				Name: "training-0", Directories: ptr.To(int32(7)),
				LastFailover: v1alpha1.ServerFailover{
					Count: 3, Completed: 2, DurationSeconds: ptr.To(int32(19)), NodeName: "node-a", Evidence: v1alpha1.FailoverEvidenceStorageFenced,
				},
			},
			{Name: "training-1", FailoverRefusal: v1alpha1.FailoverRefusal{Reason: "TooManyNodesUnhealthy"}},
		},
	}
	own := builders.FileShare("storage", "own", "training").Build()
	own.Status.Directories = v1alpha1.ShareDirectories{
		Count: ptr.To(int32(7)), Ready: ptr.To(int32(6)), PerServer: []v1alpha1.ServerDirectories{{Name: "training-0", Count: ptr.To(int32(7))}},
	}
	own.Status.Quota = v1alpha1.ShareQuotaStatus{Size: ptr.To(resource.MustParse("100Gi")), Used: ptr.To(resource.MustParse("37Gi"))}
	own.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionUnknown)}
	foreign := builders.FileShare("team-a", "own", "training").OnNamespace("storage").Deleting(epoch).Build()
	foreign.Finalizers = []string{v1alpha1.FileShareFinalizer}
	job := &v1alpha1.MLPerfStorageJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "run"},
		Spec: v1alpha1.MLPerfStorageJobSpec{
			FileShareRef: v1alpha1.FileShareReference{Name: "own"}, Workload: v1alpha1.WorkloadUnet3d,
			Accelerator: v1alpha1.Accelerator{Type: v1alpha1.AcceleratorH100, Count: 4},
		},
		Status: v1alpha1.MLPerfStorageJobStatus{
			StartTime: ptr.To(metav1.NewTime(epoch)), CompletionTime: ptr.To(metav1.NewTime(epoch.Add(time.Minute))),
			Result: v1alpha1.BenchmarkResult{
				Verdict: v1alpha1.VerdictPassed, AUPercent: "93.41", SamplesPerSecond: "73.18", BytesPerSecond: ptr.To(int64(104_300_000)),
				PerServer: []v1alpha1.ServerResult{{Name: "training-0", BytesRead: ptr.To(int64(5000))}},
			},
		},
	}
	return append(append([]client.Object{server, own, foreign, job}, snapshots()...), parts()...)
}

// snapshots are some of one share, in every state, and the schedule of two of them.
func snapshots() []client.Object {
	of := func(name string, at time.Duration, conditions ...metav1.Condition) *v1alpha1.FileShareSnapshot {
		s := &v1alpha1.FileShareSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name},
			Spec:       v1alpha1.FileShareSnapshotSpec{FileShareRef: v1alpha1.FileShareReference{Name: "own"}},
			Status:     v1alpha1.FileShareSnapshotStatus{Conditions: conditions},
		}
		if at > 0 {
			s.Status.ReadyTime = ptr.To(metav1.NewTime(epoch.Add(at)))
		}
		return s
	}
	ready, not := condition("Ready", metav1.ConditionTrue), condition("Ready", metav1.ConditionFalse)
	removing := of("removing", 3*time.Hour, not)
	removing.DeletionTimestamp, removing.Finalizers = ptr.To(metav1.NewTime(epoch)), []string{v1alpha1.SnapshotFinalizer}
	schedule := &v1alpha1.FileShareSnapshotSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "nightly"},
		Status:     v1alpha1.FileShareSnapshotScheduleStatus{Conditions: []metav1.Condition{ready}},
	}
	return []client.Object{
		of("first", time.Hour, ready), of("second", 2*time.Hour, ready), of("new", 0), removing, schedule,
		of("lost", 4*time.Hour, not, condition("Stalled", metav1.ConditionTrue)),
	}
}

func parts() []client.Object {
	begun := &v1alpha1.MLPerfStorageJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "begun"}}
	lost := &internalv1.DataServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "training-1"},
		Spec:       internalv1.DataServerSpec{FileServerRef: internalv1.FileServerReference{Name: "training"}},
		Status: internalv1.DataServerStatus{
			NodeName: "node-b", Conditions: []metav1.Condition{condition("Ready", metav1.ConditionTrue)},
			Unreachable: internalv1.Unreachable{SinceTime: ptr.To(metav1.NewTime(epoch)), SeenBy: "training-namespace-x"},
			Moves: []internalv1.MoveReport{
				{ID: "a", State: internalv1.MoveStateOrphaned}, {ID: "b", State: internalv1.MoveStateFrozen}, {ID: "c", State: internalv1.MoveStateOrphaned},
			},
		},
	}
	waiting := builders.ShareExport("storage", "training", "own", "training-1")
	waiting.Status.Conditions = nil
	return []client.Object{begun, lost, builders.ShareExport("storage", "training", "own", "training-0"), waiting}
}

func reader(t *testing.T, calls interceptor.Funcs, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), internalv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(calls).Build()
}

func elected() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// gather is what Prometheus gets, and whether its conventions are kept.
func gather(t *testing.T, collector *Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	var text strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

func TestWhatObjectsSay(t *testing.T) {
	const golden = "testdata/objects.prom"
	got := gather(t, &Collector{Reader: reader(t, interceptor.Funcs{}, world()...), Elected: elected()})
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got; go test -update accepts):\n%s", diff)
	}
	// A metric that no object of this world has would be tested by nothing.
	for _, metric := range metrics.All() {
		if metric.Process == metrics.Operator && !strings.Contains(got, "# TYPE "+metric.Name+" ") {
			t.Errorf("no object has %s", metric.Name)
		}
	}
}

func TestWhatIsGoneFromTheAPIIsGoneFromTheMetrics(t *testing.T) {
	objects := world()
	all := reader(t, interceptor.Funcs{}, objects...).(client.Client)
	collector := &Collector{Reader: all, Elected: elected()}
	gather(t, collector)
	for _, object := range objects {
		object.SetFinalizers(nil)
		if err := errors.Join(client.IgnoreNotFound(all.Update(t.Context(), object)), client.IgnoreNotFound(all.Delete(t.Context(), object))); err != nil {
			t.Fatal(err)
		}
	}
	const nothing = "howdah_objects_collected 1\n"
	if got := gather(t, collector); !strings.HasSuffix(got, nothing) || strings.Count(got, "# TYPE") != 1 {
		t.Errorf("there are no objects, and metrics of some:\n%s", got)
	}
}

func TestWhoIsNotElectedTellsNothing(t *testing.T) {
	collector := &Collector{Reader: reader(t, interceptor.Funcs{}, world()...), Elected: make(chan struct{})}
	if n := testutil.CollectAndCount(collector); n != 0 {
		t.Errorf("%d samples", n)
	}
}

func TestObjectsThatCantBeReadAreReportedAsMissing(t *testing.T) {
	broken := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("the cache is not filled")
	}}
	got := gather(t, &Collector{Reader: reader(t, broken), Elected: elected()})
	if !strings.HasSuffix(got, "howdah_objects_collected 0\n") || strings.Count(got, "# TYPE") != 1 {
		t.Errorf("got\n%s", got)
	}
}

// Two samples with the same labels would make the whole scrape fail.
func TestNoSampleIsThereTwice(t *testing.T) {
	twice := world()[0].(*v1alpha1.FileServer)
	twice.Status.Conditions = append(twice.Status.Conditions, twice.Status.Conditions...)
	twice.Status.Servers = append(twice.Status.Servers, twice.Status.Servers...)
	seen := map[string]bool{}
	for _, sample := range Samples(&Objects{FileServers: []v1alpha1.FileServer{*twice, *twice}}) {
		key := sample.Metric.Name + strings.Join(sample.Labels, "\x00")
		if seen[key] {
			t.Errorf("%s %v is there twice", sample.Metric.Name, sample.Labels)
		}
		seen[key] = true
	}
}

package objectmetrics

import (
	"cmp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/metrics"
	"github.com/howdah/howdah/internal/naming"
)

// Objects has the objects of one moment, without ShareDirectories: there can be 100,000, and the shares' statuses count
// them.
type Objects struct {
	FileServers []v1alpha1.FileServer
	FileShares  []v1alpha1.FileShare
	Snapshots   []v1alpha1.FileShareSnapshot
	Schedules   []v1alpha1.FileShareSnapshotSchedule
	Jobs        []v1alpha1.MLPerfStorageJob
	DataServers []internalv1.DataServer
	Exports     []internalv1.ShareExport
}

// Sample is a value of a metric.
type Sample struct {
	Metric *metrics.Metric
	Value  float64
	Labels []string
}

// samples collects samples, each set of labels once: a duplicate would fail the whole scrape.
type samples struct {
	list []Sample
	seen map[string]bool
}

func (s *samples) add(metric *metrics.Metric, value float64, labels ...string) {
	key := metric.Name + "\x00" + strings.Join(labels, "\x00")
	if s.seen[key] {
		return
	}
	s.seen[key] = true
	s.list = append(s.list, Sample{metric, value, labels})
}

// Samples returns the metrics of the objects.
func Samples(objects *Objects) []Sample {
	s := &samples{seen: map[string]bool{}}
	for i := range objects.FileServers {
		s.fileServer(&objects.FileServers[i])
	}
	exports := countExports(objects.Exports)
	for i := range objects.FileShares {
		s.fileShare(&objects.FileShares[i], exports)
	}
	s.snapshots(objects.Snapshots)
	for i := range objects.Schedules {
		o := &objects.Schedules[i]
		s.object("FileShareSnapshotSchedule", o, o.Status.Conditions, o.Status.ObservedGeneration)
	}
	for i := range objects.Jobs {
		s.job(&objects.Jobs[i])
	}
	for i := range objects.DataServers {
		s.dataServer(&objects.DataServers[i])
	}
	return s.list
}

var statuses = map[metav1.ConditionStatus]string{
	metav1.ConditionTrue: "true", metav1.ConditionFalse: "false", metav1.ConditionUnknown: "unknown",
}

// object adds the metrics that all kinds have. Of a condition's three statuses only "true" always has a series; the
// others have one while they apply. Three series for each condition of 4,096 shares would be more than all other
// metrics of the operator.
func (s *samples) object(kind string, o client.Object, conditions []metav1.Condition, observed *int64) {
	namespace, name := o.GetNamespace(), o.GetName()
	for _, condition := range conditions {
		s.add(metrics.ObjectCondition, truth(condition.Status == metav1.ConditionTrue), kind, namespace, name, condition.Type, statuses[metav1.ConditionTrue])
		if condition.Status != metav1.ConditionTrue {
			s.add(metrics.ObjectCondition, 1, kind, namespace, name, condition.Type, statuses[condition.Status])
		}
		if condition.Type == v1alpha1.ConditionReady || condition.Type == v1alpha1.JobSucceeded {
			s.add(metrics.ObjectTransition, seconds(&condition.LastTransitionTime), kind, namespace, name, condition.Type)
		}
	}
	s.add(metrics.ObjectGeneration, float64(o.GetGeneration()), kind, namespace, name)
	s.add(metrics.ObjectObserved, float64(ptr.Deref(observed, 0)), kind, namespace, name)
	if deletion := o.GetDeletionTimestamp(); deletion != nil {
		s.add(metrics.ObjectDeletion, seconds(deletion), kind, namespace, name)
	}
}

func (s *samples) fileServer(o *v1alpha1.FileServer) {
	s.object("FileServer", o, o.Status.Conditions, o.Status.ObservedGeneration)
	optional(s, metrics.FileServerWanted, o.Status.Replicas, o.Namespace, o.Name)
	optional(s, metrics.FileServerReady, o.Status.ReadyReplicas, o.Namespace, o.Name)
	optional(s, metrics.FileServerCapacity, o.Status.Capacity.TotalBytes, o.Namespace, o.Name)
	optional(s, metrics.FileServerUsed, o.Status.Capacity.UsedBytes, o.Namespace, o.Name)
	optional(s, metrics.FileServerProvisioned, o.Status.Capacity.ProvisionedBytes, o.Namespace, o.Name)
	optional(s, metrics.DirectoriesMoving, o.Status.Moves.Pending, o.Namespace, o.Name)
	optional(s, metrics.DirectoriesMoved, o.Status.Moves.Done, o.Namespace, o.Name)
	for _, server := range o.Status.Servers {
		optional(s, metrics.FileServerDirectories, server.Directories, o.Namespace, o.Name, server.Name)
		s.failover(o, &server)
	}
}

func (s *samples) failover(o *v1alpha1.FileServer, server *v1alpha1.FileServerServerStatus) {
	last := &server.LastFailover
	if f := o.Spec.Failover.Fencing; f == v1alpha1.FailoverFencingStorage || f == v1alpha1.FailoverFencingPower || last.Count > 0 {
		s.add(metrics.Failovers, float64(last.Count), o.Namespace, o.Name, server.Name, "begun")
		s.add(metrics.Failovers, float64(last.Completed), o.Namespace, o.Name, server.Name, "completed")
	}
	optional(s, metrics.LastFailover, last.DurationSeconds, o.Namespace, o.Name, server.Name)
	if last.Evidence != "" {
		s.add(metrics.LastFailoverInfo, 1, o.Namespace, o.Name, server.Name, last.NodeName, string(last.Evidence))
	}
	if reason := server.FailoverRefusal.Reason; reason != "" {
		s.add(metrics.FailoverRefused, 1, o.Namespace, o.Name, server.Name, reason)
	}
}

func (s *samples) dataServer(o *internalv1.DataServer) {
	s.object("DataServer", o, o.Status.Conditions, o.Status.ObservedGeneration)
	fileServer := o.Spec.FileServerRef.Name
	if o.Status.NodeName != "" {
		s.add(metrics.DataServerInfo, 1, o.Namespace, fileServer, o.Name, o.Status.NodeName)
	}
	ends := int64(0)
	if o.Status.LastEnd != nil {
		ends = ptr.Deref(o.Status.LastEnd.Count, 0)
	}
	s.add(metrics.DataServerEnds, float64(ends), o.Namespace, fileServer, o.Name)
	s.add(metrics.DirectoriesFrozen, float64(countFrozen(o.Status.Moves)), o.Namespace, fileServer, o.Name)
	s.add(metrics.DataServerUnreachable, truth(o.Status.Unreachable.SeenBy != ""), o.Namespace, fileServer, o.Name)
}

// countFrozen counts the directories that stay frozen (reason DirectoriesFrozen of the FileServer, which has them only while all data servers serve).
func countFrozen(moves []internalv1.MoveReport) (count int) {
	for i := range moves {
		if moves[i].State == internalv1.MoveStateOrphaned {
			count++
		}
	}
	return count
}

// The states of a share's exports.
const (
	exportServing  = "serving"
	exportPending  = "pending"
	exportRemoving = "removing"
)

// shareKey is a share's name in metrics.
type shareKey struct{ namespace, name string }

func compareShares(a, b shareKey) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

func countExports(exports []internalv1.ShareExport) map[shareKey]map[string]int {
	counts := map[shareKey]map[string]int{}
	for i := range exports {
		export := &exports[i]
		namespace, name := naming.ShareOfKey(export.Namespace, export.Spec.FileShareRef.Name)
		key := shareKey{namespace, name}
		if counts[key] == nil {
			counts[key] = map[string]int{}
		}
		counts[key][stateOf(export)]++
	}
	return counts
}

func stateOf(export *internalv1.ShareExport) string {
	if export.DeletionTimestamp != nil {
		return exportRemoving
	}
	for _, condition := range export.Status.Conditions {
		if condition.Type == internalv1.ExportServing && condition.Status == metav1.ConditionTrue {
			return exportServing
		}
	}
	return exportPending
}

func (s *samples) fileShare(o *v1alpha1.FileShare, exports map[shareKey]map[string]int) {
	s.object("FileShare", o, o.Status.Conditions, o.Status.ObservedGeneration)
	s.add(metrics.FileShareInfo, 1, o.Namespace, o.Name, naming.ServerNamespace(o), o.Spec.FileServerRef.Name)
	for _, server := range o.Status.Directories.PerServer {
		optional(s, metrics.FileShareDirectories, server.Count, o.Namespace, o.Name, server.Name)
	}
	optional(s, metrics.FileShareReadyDirectories, o.Status.Directories.Ready, o.Namespace, o.Name)
	s.add(metrics.FileShareDirectoriesLimit, float64(o.Spec.MaxDirectories), o.Namespace, o.Name)
	quantity(s, metrics.FileShareQuota, o.Status.Quota.Size, o.Namespace, o.Name)
	quantity(s, metrics.FileShareUsed, o.Status.Quota.Used, o.Namespace, o.Name)
	for _, state := range []string{exportServing, exportPending, exportRemoving} {
		s.add(metrics.FileShareExports, float64(exports[shareKey{o.Namespace, o.Name}][state]), o.Namespace, o.Name, state)
	}
}

func (s *samples) job(o *v1alpha1.MLPerfStorageJob) {
	s.object("MLPerfStorageJob", o, o.Status.Conditions, o.Status.ObservedGeneration)
	s.add(metrics.JobInfo, 1, o.Namespace, o.Name, o.Spec.FileShareRef.Name, string(o.Spec.Workload), string(o.Spec.Accelerator.Type))
	s.add(metrics.JobAccelerators, float64(o.Spec.Accelerator.Count), o.Namespace, o.Name)
	if o.Status.StartTime != nil {
		s.add(metrics.JobStarted, seconds(o.Status.StartTime), o.Namespace, o.Name)
	}
	if o.Status.CompletionTime != nil {
		s.add(metrics.JobCompleted, seconds(o.Status.CompletionTime), o.Namespace, o.Name)
	}
	result := &o.Status.Result
	if au, err := strconv.ParseFloat(result.AUPercent, 64); err == nil {
		s.add(metrics.JobUtilization, au/100, o.Namespace, o.Name)
	}
	if rate, err := strconv.ParseFloat(result.SamplesPerSecond, 64); err == nil {
		s.add(metrics.JobSamples, rate, o.Namespace, o.Name)
	}
	optional(s, metrics.JobThroughput, result.BytesPerSecond, o.Namespace, o.Name)
	for _, server := range result.PerServer {
		optional(s, metrics.JobServerRead, server.BytesRead, o.Namespace, o.Name, server.Name)
	}
	if result.Verdict == "" {
		return
	}
	for _, verdict := range []v1alpha1.Verdict{v1alpha1.VerdictPassed, v1alpha1.VerdictFailed, v1alpha1.VerdictInvalid} {
		s.add(metrics.JobVerdict, truth(result.Verdict == verdict), o.Namespace, o.Name, string(verdict))
	}
}

// optional adds a value if it is known.
func optional[N int32 | int64](s *samples, metric *metrics.Metric, value *N, labels ...string) {
	if value != nil {
		s.add(metric, float64(*value), labels...)
	}
}

// quantity adds a size if it is known.
func quantity(s *samples, metric *metrics.Metric, size *resource.Quantity, labels ...string) {
	if size != nil {
		s.add(metric, float64(size.Value()), labels...)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func seconds(at *metav1.Time) float64 { return float64(at.Unix()) }

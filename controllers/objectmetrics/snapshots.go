package objectmetrics

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/metrics"
)

// The states of a share's snapshots.
const (
	snapshotReady    = "ready"
	snapshotPending  = "pending"
	snapshotStalled  = "stalled"
	snapshotRemoving = "removing"
)

// snapshots counts the snapshots of each share. A series for each snapshot would be a hundred times the number of
// shares.
func (s *samples) snapshots(all []v1alpha1.FileShareSnapshot) {
	states := []string{snapshotReady, snapshotPending, snapshotStalled, snapshotRemoving}
	counts, newest := map[shareKey]map[string]int{}, map[shareKey]*metav1.Time{}
	for i := range all {
		key, state := shareKey{all[i].Namespace, all[i].Spec.FileShareRef.Name}, stateOfSnapshot(&all[i])
		if counts[key] == nil {
			counts[key] = map[string]int{}
		}
		counts[key][state]++
		if at := all[i].Status.ReadyTime; state == snapshotReady && (newest[key] == nil || newest[key].Before(at)) {
			newest[key] = at
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(counts), compareShares) {
		for _, state := range states {
			s.add(metrics.FileShareSnapshots, float64(counts[key][state]), key.namespace, key.name, state)
		}
		if newest[key] != nil {
			s.add(metrics.FileShareNewestSnapshot, seconds(newest[key]), key.namespace, key.name)
		}
	}
}

func stateOfSnapshot(o *v1alpha1.FileShareSnapshot) string {
	is := func(conditionType string) bool {
		return slices.ContainsFunc(o.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == conditionType && c.Status == metav1.ConditionTrue
		})
	}
	switch {
	case o.DeletionTimestamp != nil:
		return snapshotRemoving
	case is(v1alpha1.ConditionStalled):
		return snapshotStalled
	case is(v1alpha1.ConditionReady) && o.Status.ReadyTime != nil:
		return snapshotReady
	}
	return snapshotPending
}

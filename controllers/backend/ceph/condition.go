package ceph

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
)

// Condition repeats what data servers say of it. Where a steward gives them what they need, its words come first: what they lack is
// its fault, or its work that is not done; and before them what Rook lacks, which the steward needs.
func (s *Storage) Condition(replicas int32, _ backendapi.Decision) metav1.Condition {
	const conditionType = v1alpha1.FileServerStorageAvailable
	ceph := s.FileServer.Spec.Storage.Ceph
	fileSystem := cmp.Or(ceph.External.FileSystem, ceph.Rook.FileSystem)
	rook, steward := s.rookFault(), s.stewardFault()
	refusing, words := s.Refusing(replicas)
	var silent []string
	for ordinal := range replicas {
		name := naming.DataServer(s.FileServer.Name, ordinal)
		if s.DataServers[name].Status.ObservedGeneration == nil && !slices.Contains(refusing, name) {
			silent = append(silent, name)
		}
	}
	switch {
	case rook != nil && len(refusing)+len(silent) > 0:
		return *rook
	case steward != nil && len(refusing)+len(silent) > 0:
		return *steward
	case len(refusing) > 0:
		return conditions.False(conditionType, v1alpha1.ReasonCephUnusable, fmt.Sprintf("%d of %d data servers can't use Ceph file system %s (%s): %s",
			len(refusing), replicas, fileSystem, conditions.List(refusing, maxNamed), words))
	case len(silent) > 0:
		return conditions.False(conditionType, v1alpha1.ReasonProgressing, fmt.Sprintf("%d of %d data servers have not used Ceph file system %s yet: %s",
			len(silent), replicas, fileSystem, conditions.List(silent, maxNamed)))
	}
	used := fmt.Sprintf("%d of %d data servers use Ceph file system %s", replicas, replicas, fileSystem)
	health := s.health(replicas)
	if health != nil && health.reason == v1alpha1.ReasonStorageFailing {
		return health.condition(fileSystem, used)
	}
	if rook != nil && rook.Reason != v1alpha1.ReasonProgressing {
		return conditions.True(conditionType, v1alpha1.ReasonRookNotReady, used+"; "+rook.Message)
	}
	if steward != nil && steward.Reason != v1alpha1.ReasonProgressing {
		return conditions.True(conditionType, v1alpha1.ReasonStewardFailing, used+"; new shares wait, and nothing is shut out when a data server restarts: "+steward.Message)
	}
	if health != nil {
		return health.condition(fileSystem, used)
	}
	return conditions.True(conditionType, v1alpha1.ReasonReady, used)
}

// stewardFault is what keeps the steward from its work, nil if nothing does or if there is none.
func (s *Storage) stewardFault() *metav1.Condition {
	const conditionType = v1alpha1.FileServerStorageAvailable
	var fault metav1.Condition
	switch {
	case !(Backend{}).HasSteward(s.FileServer):
		return nil
	case s.StewardRefusal != "":
		fault = conditions.False(conditionType, v1alpha1.ReasonPodsRefused, "the steward's pod is refused: "+s.StewardRefusal)
	case s.Steward == nil || conditions.Reason(s.Steward.Status.Conditions, v1alpha1.ConditionReady) == "":
		fault = conditions.False(conditionType, v1alpha1.ReasonProgressing, fmt.Sprintf(
			"waiting for the steward, which gives data servers their users in Ceph, to start: kubectl describe deployment %s", naming.Steward(s.FileServer.Name)))
	case conditions.IsTrue(s.Steward.Status.Conditions, v1alpha1.ConditionReady):
		return nil
	default:
		fault = conditions.False(conditionType, v1alpha1.ReasonCephUnusable, "the steward can't work: "+conditions.Message(s.Steward.Status.Conditions, v1alpha1.ConditionReady))
	}
	return &fault
}

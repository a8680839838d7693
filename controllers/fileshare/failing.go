package fileshare

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
)

// failingAllowance is how long the storage of a FileServer may fail before its shares report it. Otherwise each
// replacement of a metadata server would cause two status writes and two events for each of 4,096 shares. The
// FileServer's status reports it at once.
const failingAllowance = 10 * time.Second

// storageFailing returns the FileServer's condition about failing storage; nil if the storage does not fail.
func storageFailing(fileServer *v1alpha1.FileServer) *metav1.Condition {
	reported := meta.FindStatusCondition(fileServer.Status.Conditions, v1alpha1.FileServerStorageAvailable)
	if reported == nil || reported.Status != metav1.ConditionFalse || reported.Reason != v1alpha1.ReasonStorageFailing {
		return nil
	}
	return reported
}

// failsFor returns the share's message about failing storage, "" if there is none, and the time until there will be
// one.
func failsFor(o *observed) (words string, allowed time.Duration) {
	reported := storageFailing(o.fileServer)
	if reported == nil {
		return "", 0
	}
	if away := o.now.Sub(reported.LastTransitionTime.Time); away >= 0 && away < failingAllowance {
		return "", failingAllowance - away
	}
	return fmt.Sprintf("clients of the share wait or get errors, as the storage of FileServer %s reports: %s", o.fileServer.Name, reported.Message), 0
}

package fileserver

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
)

// isReleased tells whether a FileServer that is being deleted may go: no share
// uses it. Until then it goes on as before, so that nothing that clients have mounted stops.
func isReleased(o *observed) bool {
	return o.fileServer.DeletionTimestamp != nil && len(o.shares) == 0
}

// inUseCondition is nil unless shares keep a FileServer from being deleted.
func inUseCondition(o *observed) *metav1.Condition {
	if o.fileServer.DeletionTimestamp == nil || len(o.shares) == 0 {
		return nil
	}
	names := make([]string, 0, len(o.shares))
	for i := range o.shares {
		name := o.shares[i].Key
		if namespace, share := naming.ShareOfKey("", name); namespace != "" {
			name = namespace + "/" + share
		}
		names = append(names, name)
	}
	c := conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonInUse,
		fmt.Sprintf("deletion waits for the FileShares that use it: %s; nothing is stopped until they are deleted",
			conditions.List(names, maxPaths)))
	return &c
}

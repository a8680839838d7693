package fileserver

import (
	"fmt"
	"slices"

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
	var unwatched []string
	for i := range o.shares {
		name := o.shares[i].Key
		if namespace, share := naming.ShareOfKey("", name); namespace != "" {
			name = namespace + "/" + share
			if !o.watched.Include(namespace) && !slices.Contains(unwatched, namespace) {
				unwatched = append(unwatched, namespace)
			}
		}
		names = append(names, name)
	}
	text := fmt.Sprintf("deletion waits for the FileShares that use it: %s; nothing is stopped until they are deleted", conditions.List(names, maxPaths))
	if len(unwatched) > 0 {
		text += fmt.Sprintf("; the operator does not watch the Kubernetes namespaces %s (the chart's watchNamespaces), so it can't finish the deletion of FileShares there: "+
			"add the namespaces, and delete the FileShares", conditions.List(unwatched, maxPaths))
	}
	c := conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonInUse, text)
	return &c
}

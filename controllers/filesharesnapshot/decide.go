package filesharesnapshot

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
)

// decision has what a pass changes and reports.
type decision struct {
	// create is the ShareSnapshot to make; nil if none.
	create *internalv1.ShareSnapshot
	ready  metav1.Condition
}

// decide decides everything. It neither reads nor writes. If there is a ShareSnapshot, only that counts: the share may
// be deleted, made again or wait, and the snapshot does not change.
func decide(o *observed) decision {
	snapshot, share := o.snapshot, o.share
	say := func(reason, format string, arguments ...any) decision {
		return decision{ready: conditions.False(v1alpha1.ConditionReady, reason, fmt.Sprintf(format, arguments...))}
	}
	switch {
	case o.earlier:
		return say(v1alpha1.ReasonDataOfDeletedNamespace, "there is a snapshot of this name that an earlier namespace %s left, which was deleted; it is not this namespace's. Whoever runs the "+
			"FileServer can hand it over, by spec.dataHandovers: [{namespace: %s, namespaceUID: %s}]; or delete this object, and make one of another name",
			snapshot.Namespace, snapshot.Namespace, o.namespaceUID)
	case o.stored != nil && o.stored.DeletionTimestamp == nil:
		return decision{ready: repeat(o.stored)}
	case o.stored == nil && o.unwatched != "":
		return say(v1alpha1.ReasonNamespaceNotWatched, "%s", describeUnwatched(o))
	case o.stored != nil || snapshot.Status.ReadyTime != nil:
		return say(v1alpha1.ReasonSnapshotLost, "the snapshot was made, and its ShareSnapshot, by which the storage has it, was deleted; nothing is made in its place, because it "+
			"would not be of that moment: delete this object, and make one of another name for a new snapshot")
	case share == nil:
		return say(v1alpha1.ReasonFileShareNotFound, "spec.fileShareRef: there is no FileShare %q in namespace %q; create it, or delete this snapshot and make one that names another",
			snapshot.Spec.FileShareRef.Name, snapshot.Namespace)
	case share.DeletionTimestamp != nil:
		return say(v1alpha1.ReasonWaitingForShare, "FileShare %s is being deleted; no snapshot is made of it any more", share.Name)
	case conditions.IsStalled(share.Status.Conditions) || o.fileServer == nil:
		return say(v1alpha1.ReasonWaitingForShare, "FileShare %s is not ready: %s", share.Name, whyNot(share))
	}
	if refusal := backend.Of(o.fileServer).SnapshotRefusal(o.fileServer); refusal != "" {
		return say(v1alpha1.ReasonSnapshotsUnsupported, "%s", refusal)
	}
	if share.Status.Mount.Address == "" {
		return say(v1alpha1.ReasonWaitingForShare, "FileShare %s is not ready: %s", share.Name, whyNot(share))
	}
	d := say(v1alpha1.ReasonProgressing, "the steward of FileServer %s is asked to make the snapshot", o.fileServer.Name)
	d.create = desired.ShareSnapshot(snapshot, o.namespaceUID, share, o.fileServer)
	return d
}

// describeUnwatched says that the snapshot is, or would be, where the operator has no rights.
func describeUnwatched(o *observed) string {
	return fmt.Sprintf("this operator does not watch namespace %q, where FileServer %q of FileShare %s is, so snapshots there are neither made nor removed; "+
		"ask the administrator of Howdah to add it to the chart's watchNamespaces", o.unwatched, o.share.Spec.FileServerRef.Name, o.share.Name)
}

// repeat copies the condition of the ShareSnapshot to the FileShareSnapshot.
func repeat(stored *internalv1.ShareSnapshot) metav1.Condition {
	reported := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case reported == nil:
		return conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonProgressing,
			fmt.Sprintf("the steward of FileServer %s has not made the snapshot yet", stored.Spec.FileServerRef.Name))
	case reported.Status == metav1.ConditionTrue:
		return conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, fmt.Sprintf("below each directory of the share as %s", stored.Status.Path))
	}
	return conditions.False(v1alpha1.ConditionReady, reported.Reason, reported.Message)
}

func whyNot(share *v1alpha1.FileShare) string {
	if message := conditions.Message(share.Status.Conditions, v1alpha1.ConditionReady); message != "" {
		return message
	}
	return "nothing is known of it yet"
}

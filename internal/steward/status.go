package steward

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/printable"
)

// maxMessage is the maximum length of a condition's message, and maxFault of a FenceAnswer's fault, in bytes.
const (
	maxMessage = 32768
	maxFault   = 1024
)

// sight is what is known about a share's subvolume and user at the end of a pass.
type sight struct {
	// reason is "" if the subvolume exists and its user's key is in the Secret; otherwise reason and words say why not.
	reason, words string
	// user is the share's Ceph user, info what Ceph reports about the subvolume; nil if Ceph was not asked.
	user string
	info *ceph.SubvolumeInfo
	// begin: the clone of the source snapshot is about to be made.
	begin bool
	// removed: the user, and the subvolume if it was to be deleted, are removed.
	removed bool
	// kept: the subvolume was not removed.
	kept bool
}

// storageStatus returns the status of a ShareStorage. What this pass did not find out keeps its earlier value.
func storageStatus(storage *internalv1.ShareStorage, seen sight, now metav1.Time) internalv1.ShareStorageStatus {
	status, generation := *storage.Status.DeepCopy(), storage.Generation
	set := func(kind string, value metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: truncate(message, maxMessage), ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	if seen.info != nil {
		status.UsedBytes, status.QuotaBytes = &seen.info.UsedBytes, &seen.info.QuotaBytes
		if seen.info.Path != "" {
			status.Path, status.User = seen.info.Path, seen.user
		}
	}
	if seen.begin {
		status.CloneBeginTime = &now
	}
	switch {
	case storage.DeletionTimestamp != nil && seen.removed:
		words := "the share's user is gone, and its subvolume stays"
		if storage.Spec.DataPolicy == internalv1.DataDelete && !seen.kept {
			words = "the share's user is gone, and its subvolume is in Ceph's trash"
		}
		set(v1alpha1.ConditionReady, metav1.ConditionFalse, internalv1.StorageRemoved, words)
		set(internalv1.StorageRemoved, metav1.ConditionTrue, internalv1.StorageRemoved, words)
		status.ObservedGeneration = &generation
	case storage.DeletionTimestamp != nil:
		set(internalv1.StorageRemoved, metav1.ConditionFalse, internalv1.ReasonRemovalFailing, seen.words)
	case seen.reason != "":
		set(v1alpha1.ConditionReady, metav1.ConditionFalse, seen.reason, seen.words)
	default:
		words := "the share has its subvolume and its user"
		if seen.words != "" {
			words += "; " + seen.words
		}
		set(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, words)
		status.ObservedGeneration = &generation
	}
	return status
}

// isEnded reports whether the removal is finished and the status says so.
func isEnded(storage *internalv1.ShareStorage) bool {
	return meta.IsStatusConditionTrue(storage.Status.Conditions, internalv1.StorageRemoved) &&
		storage.Status.ObservedGeneration != nil && *storage.Status.ObservedGeneration == storage.Generation
}

// stewardStatus returns the status of a Steward. reason is "" if nothing is wrong.
func stewardStatus(steward *internalv1.Steward, reason, words, revision string, now metav1.Time) internalv1.StewardStatus {
	status, generation := *steward.Status.DeepCopy(), steward.Generation
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: truncate(words, maxMessage),
		ObservedGeneration: generation, LastTransitionTime: now,
	}
	if reason == "" {
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonReady
		status.ObservedGeneration = &generation
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	if revision != "" {
		status.SecretRevision = revision
	}
	return status
}

// truncate removes control characters from a text and limits it to limit bytes.
func truncate(text string, limit int) string {
	text = printable.Text(text)
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-3], "") + "..."
}

package fileshare

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// A share in another Kubernetes namespace than its FileServer is served when it is attached: the FileServer allows it,
// and there is a ShareAttachment in the FileServer's namespace. If the FileServer no longer allows it, its exports and
// its ShareAttachment are deleted; its ShareDirectories and its data stay (docs/design/2026-11-22-tenants.md).

// attachmentPlan has the changes of a share's ShareAttachment.
type attachmentPlan struct {
	// retain has the ShareDirectories of an earlier namespace, which are marked before its ShareAttachment goes.
	retain []directoryChange
	create *internalv1.ShareAttachment
	// before and after are those of a change.
	before, after *internalv1.ShareAttachment
	// remove is deleted. release is being deleted, and its finalizer is removed.
	remove, release *internalv1.ShareAttachment
}

// isForbidden reports whether the FileServer exists and does not allow the share. Shares of a FileServer that does not
// exist wait for it, and lose nothing.
func isForbidden(o *observed) bool { return o.fileServer != nil && o.refused }

// isAttached reports whether the share has a ShareAttachment that is not being deleted.
func isAttached(o *observed) bool { return isOfShare(o) && o.attachment.DeletionTimestamp == nil }

// isOfShare reports whether there is a ShareAttachment of this share, and not of an earlier one with its name.
func isOfShare(o *observed) bool {
	return o.attachment != nil && o.attachment.Spec.FileShareUID == string(o.share.UID) &&
		o.attachment.Spec.FileServerRef.Name == o.share.Spec.FileServerRef.Name
}

func planAttachment(o *observed, found inventory) attachmentPlan {
	if o.fileServer == nil || !naming.IsForeign(o.share) {
		return attachmentPlan{}
	}
	wanted, present := desired.ShareAttachment(o.share), o.attachment
	wanted.Spec.NamespaceUID = o.namespaceUID
	wanted.Spec.InventoryGeneration, wanted.Spec.Inventory = found.generation, internalv1.InventoryPending
	if found.complete {
		wanted.Spec.Inventory = internalv1.InventoryComplete
	}
	if present != nil && o.grant.AccessNetworks != nil {
		wanted.Spec.Access = present.Spec.Access
	}
	switch {
	case present == nil && !o.refused && o.fileServer.DeletionTimestamp == nil && takenBy(o) == nil && o.grant.Refused == nil && findEarlierNamespace(o) == nil:
		return attachmentPlan{create: wanted}
	case present == nil:
		return attachmentPlan{}
	case present.DeletionTimestamp != nil && (!o.refused || len(o.exports) == len(awayServers(o))):
		return attachmentPlan{retain: retainEarlier(o), release: present}
	case present.DeletionTimestamp != nil:
		return attachmentPlan{} // until the data servers that are there have dropped its exports
	case o.refused || !isOfShare(o):
		return attachmentPlan{retain: retainEarlier(o), remove: present}
	case !equality.Semantic.DeepEqual(present.Spec, wanted.Spec):
		after := present.DeepCopy()
		after.Spec = wanted.Spec
		return attachmentPlan{before: present, after: after}
	}
	return attachmentPlan{}
}

// asSeen is the share as the FileServer's parts see it. A share of another namespace must be attached.
func asSeen(o *observed) fleet.Share {
	if naming.IsForeign(o.share) {
		return fleet.ShareOfAttachment(o.attachment)
	}
	return fleet.ShareOf(o.share)
}

// planWithdrawal ends the exports of a share that is no longer allowed. The data stays. If the share is allowed again
// it gets its old Export_Ids, which are stored on the volumes, so clients' file handles are valid again.
func planWithdrawal(o *observed) exportPlan {
	var plan exportPlan
	for _, export := range o.exports {
		if export.DeletionTimestamp == nil {
			plan.remove = append(plan.remove, export)
		}
	}
	return plan
}

// describeNotAllowed returns the same message whether or not the FileServer exists: it must not reveal what is in
// another namespace.
func describeNotAllowed(o *observed) string {
	text := fmt.Sprintf("FileServer %q in namespace %q does not exist, or does not allow shares of namespace %q; ask its administrator to add this namespace to its spec.allowedNamespaces",
		o.share.Spec.FileServerRef.Name, o.namespace(), o.share.Namespace)
	if len(o.directories) > 0 || len(o.exports) > 0 || o.attachment != nil {
		text += "; until then nothing of the share is served, and its data stays on the volumes"
	}
	return text
}

// changes are the writes of a plan, in stages.
func (p attachmentPlan) changes() [][]apply.Change {
	stages := [][]apply.Change{retentions(p.retain)}
	switch {
	case p.create != nil:
		return append(stages, []apply.Change{{Create: p.create}})
	case p.after != nil:
		return append(stages, []apply.Change{{Before: p.before, After: p.after, Race: apply.MustExistUnchanged}})
	case p.remove != nil:
		return append(stages, []apply.Change{{Delete: p.remove}})
	case p.release != nil:
		return append(stages, []apply.Change{{Release: p.release, Finalizer: v1alpha1.AttachmentFinalizer}})
	}
	return stages
}

// planDetachment hides a share that is being deleted from clients. Its ShareAttachment is held until the end, because it keeps the FileServer.
func planDetachment(o *observed) attachmentPlan {
	if o.attachment == nil || o.attachment.DeletionTimestamp != nil {
		return attachmentPlan{}
	}
	return attachmentPlan{remove: o.attachment}
}

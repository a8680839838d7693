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

// A share of another Kubernetes namespace than its FileServer's is served once it is attached: the FileServer allows it, and a ShareAttachment in
// the FileServer's namespace says so. Where that is taken back, its exports and its ShareAttachment go, and its ShareDirectories and
// its data stay (docs/design/2026-11-22-tenants.md).

// attachmentPlan is what is to happen to the ShareAttachment of a share.
type attachmentPlan struct {
	create *internalv1.ShareAttachment
	// before and after are one that is to be changed.
	before, after *internalv1.ShareAttachment
	// remove is to be deleted, release is one that is being deleted and need not be kept any longer.
	remove, release *internalv1.ShareAttachment
}

// isForbidden: the share is not allowed, and its FileServer says so. One that does not exist says nothing: its own shares
// wait for it as well, and lose nothing meanwhile.
func isForbidden(o *observed) bool { return o.fileServer != nil && o.refused }

// isAttached: the share's ShareAttachment stands.
func isAttached(o *observed) bool { return isOfShare(o) && o.attachment.DeletionTimestamp == nil }

// isOfShare: there is a ShareAttachment, and no earlier share of this name left it.
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
		return attachmentPlan{release: present}
	case present.DeletionTimestamp != nil:
		return attachmentPlan{} // until the data servers that are there have dropped its exports
	case o.refused || !isOfShare(o):
		return attachmentPlan{remove: present}
	case !equality.Semantic.DeepEqual(present.Spec, wanted.Spec):
		after := present.DeepCopy()
		after.Spec = wanted.Spec
		return attachmentPlan{before: present, after: after}
	}
	return attachmentPlan{}
}

// asSeen is the share as the parts of its FileServer see it. One of another namespace must be attached.
func asSeen(o *observed) fleet.Share {
	if naming.IsForeign(o.share) {
		return fleet.ShareOfAttachment(o.attachment)
	}
	return fleet.ShareOf(o.share)
}

// planWithdrawal ends the exports of a share that is not allowed any more. They keep their data. Allowed again, the share gets its old
// Export_Ids, which the volumes remember, and with them clients' file handles.
func planWithdrawal(o *observed) exportPlan {
	var plan exportPlan
	for _, export := range o.exports {
		if export.DeletionTimestamp == nil {
			plan.remove = append(plan.remove, export)
		}
	}
	return plan
}

// describeNotAllowed is the same for a FileServer that does not exist: what is in another namespace is learned there.
func describeNotAllowed(o *observed) string {
	text := fmt.Sprintf("FileServer %q in namespace %q does not exist, or does not allow shares of namespace %q; ask whoever runs it to add this namespace to its spec.allowedNamespaces",
		o.share.Spec.FileServerRef.Name, o.namespace(), o.share.Namespace)
	if len(o.directories) > 0 || len(o.exports) > 0 || o.attachment != nil {
		text += "; until then nothing of the share is served, and its data stays on the volumes"
	}
	return text
}

// changes are the writes of a plan.
func (p attachmentPlan) changes() []apply.Change {
	switch {
	case p.create != nil:
		return []apply.Change{{Create: p.create}}
	case p.after != nil:
		return []apply.Change{{Before: p.before, After: p.after, Race: apply.MustExistUnchanged}}
	case p.remove != nil:
		return []apply.Change{{Delete: p.remove}}
	case p.release != nil:
		return []apply.Change{{Release: p.release, Finalizer: v1alpha1.AttachmentFinalizer}}
	}
	return nil
}

// planDetachment hides a share that is being deleted from clients. Its ShareAttachment is held until the end, because it keeps the FileServer.
func planDetachment(o *observed) attachmentPlan {
	if o.attachment == nil || o.attachment.DeletionTimestamp != nil {
		return attachmentPlan{}
	}
	return attachmentPlan{remove: o.attachment}
}

package provisioner

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/limits"
	"github.com/howdah/howdah/internal/naming"
)

// observed has everything about one claim. Objects belong to caches and must not be changed.
type observed struct {
	now time.Time
	// claim is nil if there is no claim with that UID.
	claim *corev1.PersistentVolumeClaim
	// class is the claim's StorageClass; nil if it does not exist.
	class *storagev1.StorageClass
	// volume is nil if there is none.
	volume *corev1.PersistentVolume
	// share is the claim's share, where the volume or else the class says; nil if there is none. For a claim that
	// becomes a directory it is the share with that directory.
	share *v1alpha1.FileShare
	// For claims that become directories: directories has the share's directories by path, allDirectories those of its
	// FileServer, and dataServers its data servers.
	directories    map[string]*internalv1.ShareDirectory
	allDirectories []internalv1.ShareDirectory
	dataServers    []internalv1.DataServer
	// siblings is what the FileServer's shares use of its limits, if a share is made; nil: nothing.
	siblings *limits.Taken
	// leftOver is the directory of a claim that was deleted before it had a volume.
	leftOver *internalv1.ShareDirectory
	// fileServer is the class's FileServer; nil if it does not exist or is not watched.
	fileServer *v1alpha1.FileServer
	// unwatched: the operator does not watch the Kubernetes namespace of the FileServer and the share.
	unwatched bool
	// namespaceLabels are those of the claim's Kubernetes namespace.
	namespaceLabels map[string]string
}

// decision is what a pass does, at most one thing, and reports, at most one thing.
type decision struct {
	createShare  *v1alpha1.FileShare
	createVolume *corev1.PersistentVolume
	// createDirectories has a directory and the missing ones above it, in order.
	createDirectories []*internalv1.ShareDirectory
	// removeDirectory: the directory has no claim any more, and is removed if it is empty.
	removeDirectory bool
	// quota is the share's new quota. It is set before volume and claim show it.
	quota *resource.Quantity
	// grow is the new size of volume and claim.
	grow *resource.Quantity
	// policy is the share's new reclaim policy; "" if it does not change.
	policy v1alpha1.ReclaimPolicy
	// deleteShare: the share has no claim any more.
	deleteShare bool
	// dropVolume: the volume is deleted.
	dropVolume bool

	// refusal is the message of the claim's event: what is wrong and who can correct it. failed is the event's reason
	// if it is not the usual one.
	refusal, failed string
	// success is the message of the claim's event when everything is done.
	success string
}

// doubt is what must be read past the caches before a decision may delete something or change a quota, because caches
// can be stale.
type doubt int

const (
	noDoubt doubt = iota
	// aboutVolume: whether the volume's policy is still Delete.
	aboutVolume
	// aboutNoVolume: whether there is really no volume and no claim.
	aboutNoVolume
	// aboutNoShare: whether there is really no share.
	aboutNoShare
	// aboutQuota: what the claim asks for now, and what its share has.
	aboutQuota
)

// doubtOf returns the doubt about a decision. After it is read, the pass decides again.
func doubtOf(o *observed, d decision) doubt {
	switch {
	case (d.deleteShare || d.policy == v1alpha1.ReclaimDelete) && o.volume != nil:
		return aboutVolume
	case (d.deleteShare || d.removeDirectory) && o.volume == nil:
		return aboutNoVolume
	case d.dropVolume && o.share == nil:
		return aboutNoShare
	case d.quota != nil:
		return aboutQuota
	}
	return noDoubt
}

// decide decides everything. It neither reads, writes nor records events.
func decide(o *observed) decision {
	switch {
	case o.volume != nil && o.unwatched:
		return decision{} // Another operator's.
	case o.volume != nil && isDirectory(o.volume):
		return decideGrowth(o) // It stays, whatever happens to the volume.
	case o.volume != nil && isOver(o.volume):
		return decideEnd(o)
	case o.volume != nil:
		return decideBound(o)
	case o.claim == nil:
		return decideOrphan(o)
	case o.claim.DeletionTimestamp != nil || o.claim.Spec.VolumeName != "" || !isOurs(o.claim):
		return decision{} // Its parts are removed when the claim is deleted.
	}
	return decideNew(o)
}

// decideNew makes a share for a claim and, when the share can be mounted, the volume.
func decideNew(o *observed) decision {
	if o.class == nil || o.class.Provisioner != v1alpha1.Provisioner || waitsForPod(o.claim, o.class) {
		return decision{} // Kubernetes reports it at the claim.
	}
	p, problems := parametersOf(o.class)
	if len(problems) > 0 {
		return decision{refusal: fmt.Sprintf("StorageClass %s: %s; parameters can't be changed: delete the class and make it again", o.class.Name, strings.Join(problems, "; "))}
	}
	if problems = checkClaim(o.claim); len(problems) > 0 {
		return decision{refusal: strings.Join(problems, "; ") + "; make the claim again"}
	}
	if refusal := checkFileServer(o, p); refusal != "" {
		return decision{refusal: refusal}
	}
	if p.fileShare != "" {
		if p.sizeEnforced {
			return decision{refusal: fmt.Sprintf("StorageClass %s has parameter size: Required, and nothing keeps a directory of a share to a size; use a class with size: BestEffort, or without fileShare", o.class.Name)}
		}
		return decideDirectory(o, p)
	}
	enforced, _ := backend.Of(o.fileServer).EnforcesSizes(o.fileServer)
	if p.sizeEnforced && !enforced {
		return decision{refusal: fmt.Sprintf("StorageClass %s has parameter size: Required, and the storage of FileServer %s does not enforce sizes; use a class with size: BestEffort", o.class.Name, p.fileServer)}
	}
	if tooLarge := refuseSize(o.claim.Spec.Resources.Requests[corev1.ResourceStorage]); enforced && tooLarge != "" {
		return decision{refusal: tooLarge + " in a new claim"}
	}
	if o.share == nil && !backend.Of(o.fileServer).MakesShares(o.fileServer) {
		return decision{refusal: fmt.Sprintf("the storage of FileServer %s has no place for a new share until its administrator makes one (storage.ceph.external.sharesSecretRef); "+
			"use a StorageClass with parameter fileShare, whose claims are directories of a share that there is", p.fileServer)}
	}
	if o.share == nil {
		share := shareFor(o.claim, p, enforced)
		if !sharePath.MatchString(share.Spec.Path) {
			return decision{refusal: fmt.Sprintf("StorageClass %s: parameter path makes %s of this claim, and a share's path is /NAME or /NAME/NAME with at most %d characters in each; "+
				"use a class with another path, such as %s", o.class.Name, share.Spec.Path, maxElement, defaultPath)}
		}
		if refusal := findLimit(o); refusal != "" {
			return decision{refusal: refusal}
		}
		return decision{createShare: share}
	}
	return decideShared(o, p, enforced)
}

// decideShared waits until the share can be mounted.
func decideShared(o *observed, p parameters, enforced bool) decision {
	switch ref := o.share.Spec.ClaimRef; {
	case ref.Namespace != o.claim.Namespace || ref.Name != o.claim.Name:
		return decision{refusal: fmt.Sprintf("FileShare %s in namespace %s has the name that this claim needs and does not belong to it; ask its owner to delete it", o.share.Name, o.share.Namespace)}
	case o.share.Spec.FileServerRef.Name != p.fileServer:
		return decision{refusal: fmt.Sprintf("the claim's share was begun on FileServer %s, and StorageClass %s names %s now; make the claim again", o.share.Spec.FileServerRef.Name, o.class.Name, p.fileServer)}
	case o.share.DeletionTimestamp != nil:
		return decision{} // A user deleted it. It is made again when it is gone.
	case conditions.IsStalled(o.share.Status.Conditions):
		return decision{refusal: describeStalled(o)}
	case !conditions.IsTrue(o.share.Status.Conditions, v1alpha1.ConditionReady), o.share.Status.Mount.Address == "",
		// mount.nfs doubles its pauses, so a pod that mounts before a namespace server listens loses seconds.
		!conditions.IsTrue(o.fileServer.Status.Conditions, v1alpha1.FileServerNamespaceServersAvailable):
		return decision{}
	}
	if o.share.Spec.ReclaimPolicy != v1alpha1.ReclaimRetain {
		return decision{policy: v1alpha1.ReclaimRetain} // From now on there may be data.
	}
	size := o.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	d := decision{
		createVolume: volumeFor(o.claim, o.class, p, o.share, enforced),
		success:      fmt.Sprintf("%s of FileServer %s is the claim's", o.share.Spec.Path, p.fileServer),
	}
	if enforced {
		d.success += fmt.Sprintf(`; at %s writes end with "Disk quota exceeded"`, size.String())
	} else {
		d.success += fmt.Sprintf("; nothing keeps pods to %s: they can fill what the FileServer's storage has", size.String())
	}
	return d
}

// checkFileServer returns why the FileServer can't serve the claim. It does not reveal what is in another namespace: a
// missing FileServer and one that does not allow the claim's namespace give the same message.
func checkFileServer(o *observed, p parameters) string {
	if o.unwatched {
		return fmt.Sprintf("this operator does not watch namespace %q, where FileServer %q is to be; ask the administrator of Howdah to add it to the chart's watchNamespaces", p.fileServerNamespace, p.fileServer)
	}
	if o.claim.Namespace == p.fileServerNamespace {
		switch {
		case o.fileServer == nil:
			return fmt.Sprintf("there is no FileServer %q in namespace %q, which StorageClass %s names; create it", p.fileServer, p.fileServerNamespace, o.class.Name)
		case o.fileServer.DeletionTimestamp != nil:
			return fmt.Sprintf("FileServer %s is being deleted; use a StorageClass with another", p.fileServer)
		}
		return ""
	}
	if o.fileServer == nil || o.fileServer.DeletionTimestamp != nil || !desired.AllowsNamespace(o.fileServer, o.claim.Namespace, o.namespaceLabels) {
		return fmt.Sprintf("there is no FileServer %q in namespace %q that allows claims of namespace %q; ask its administrator to allow them by its spec.allowedNamespaces", p.fileServer, p.fileServerNamespace, o.claim.Namespace)
	}
	return ""
}

// describeStalled repeats the share's message in its own namespace. Other namespaces learn only that there is a
// problem.
func describeStalled(o *observed) string {
	reason, message := conditions.Reason(o.share.Status.Conditions, v1alpha1.ConditionStalled), conditions.Message(o.share.Status.Conditions, v1alpha1.ConditionStalled)
	if o.claim.Namespace == o.share.Namespace || reason == v1alpha1.ReasonLimitReached {
		return fmt.Sprintf("FileShare %s says %s: %s", o.share.Name, reason, message)
	}
	return fmt.Sprintf("FileShare %s says %s; ask the administrator of FileServer %s: kubectl describe fileshare -n %s %s", o.share.Name, reason, o.share.Spec.FileServerRef.Name, o.share.Namespace, o.share.Name)
}

// describeRefused reports that the API server refuses an object (a quota, an admission policy), with the reason for
// those who may know it.
func describeRefused(o *observed, d decision, err error) string {
	if o.claim != nil && d.quota != nil && o.share.Namespace != o.claim.Namespace {
		return fmt.Sprintf("a larger quota for the claim is refused in namespace %s, where FileServer %s is; ask its administrator: the operator's log has the reason, and tries again",
			o.share.Namespace, o.share.Spec.FileServerRef.Name)
	}
	if o.claim != nil && d.createShare != nil && d.createShare.Namespace != o.claim.Namespace {
		return fmt.Sprintf("a FileShare for the claim is refused in namespace %s, where FileServer %s is; ask its administrator: the operator's log has the reason, and tries again",
			d.createShare.Namespace, d.createShare.Spec.FileServerRef.Name)
	}
	return err.Error() + "; it is tried again"
}

// decideBound decides about a volume that is bound.
func decideBound(o *observed) decision {
	if o.claim == nil || o.claim.Spec.VolumeName != o.volume.Name || o.claim.Status.Phase != corev1.ClaimBound {
		return decision{}
	}
	if o.share == nil {
		return decideLost(o)
	}
	if o.share.DeletionTimestamp == nil && o.share.Spec.ReclaimPolicy != v1alpha1.ReclaimRetain {
		return decision{policy: v1alpha1.ReclaimRetain} // An end that was begun, before the volume got another claim.
	}
	return decideGrowth(o)
}

// decideGrowth grows a bound volume to its claim's request. Kubernetes has no controller that grows in-tree NFS
// volumes. If the share has a quota, that is raised first, and the shown size follows the storage.
func decideGrowth(o *observed) decision {
	if o.claim == nil || o.claim.Spec.VolumeName != o.volume.Name || o.claim.Status.Phase != corev1.ClaimBound {
		return decision{}
	}
	wanted, shown, claimed := sizeFor(o), o.volume.Spec.Capacity[corev1.ResourceStorage], o.claim.Status.Capacity[corev1.ResourceStorage]
	if wanted.Cmp(shown) <= 0 && wanted.Cmp(claimed) <= 0 {
		return decision{}
	}
	if isDirectory(o.volume) || !isEnforced(o.volume) {
		return decision{
			grow:    &wanted,
			success: fmt.Sprintf("claim and volume show %s now; nothing else changes, because nothing keeps pods to a size", wanted.String()),
		}
	}
	if tooLarge := refuseSize(wanted); tooLarge != "" {
		return decision{failed: ReasonResizeFailed, refusal: tooLarge}
	}
	refused := quotaRefusal(o.share)
	if quota := o.share.Spec.Quota.Size; quota == nil || quota.Cmp(wanted) < 0 || refused != "" && quota.Cmp(wanted) > 0 {
		return decision{quota: &wanted}
	}
	if refused != "" {
		return decision{failed: ReasonResizeFailed, refusal: fmt.Sprintf("the claim stays as large as it was: FileShare %s says %s; ask the administrator of FileServer %s, or lower the claim's request",
			o.share.Name, refused, o.share.Spec.FileServerRef.Name)}
	}
	if enforced := o.share.Status.Quota.Size; enforced == nil || enforced.Cmp(wanted) < 0 {
		return decision{} // An event of the share causes the next pass.
	}
	return decision{grow: &wanted, success: fmt.Sprintf(`the share has a quota of %s now, which claim and volume show`, wanted.String())}
}

// sizeFor is the size that a claim is to have: its request or, if that is larger, the size of an expansion that has
// begun. Kubernetes lets users lower a request that is not met yet, as long as it is above what they have, and a
// ResourceQuota counts the allocated size until then. A refused expansion ends with that.
func sizeFor(o *observed) resource.Quantity {
	wanted, allocated := o.claim.Spec.Resources.Requests[corev1.ResourceStorage], o.claim.Status.AllocatedResources[corev1.ResourceStorage]
	if allocated.Cmp(wanted) <= 0 || isDirectory(o.volume) || !isEnforced(o.volume) {
		return wanted
	}
	if quota := o.share.Spec.Quota.Size; quota == nil || quota.Cmp(allocated) < 0 || quotaRefusal(o.share) != "" {
		return wanted
	}
	return allocated
}

// quotaRefusal is the reason for which the share's present quota is refused; "" if it is not, as far as is known.
func quotaRefusal(share *v1alpha1.FileShare) string {
	found := meta.FindStatusCondition(share.Status.Conditions, v1alpha1.FileShareQuotaEnforced)
	if found == nil || found.ObservedGeneration != share.Generation || found.Status != metav1.ConditionFalse || !v1alpha1.NeedsUser(found.Reason) {
		return ""
	}
	return found.Reason
}

// decideLost makes a deleted share of a bound volume again. Its data was kept, and is found by its name.
func decideLost(o *observed) decision {
	namespace, name, _ := shareOf(o.volume)
	if o.class != nil && o.volume.Spec.NFS != nil {
		if p, problems := parametersOf(o.class); len(problems) == 0 && p.fileServerNamespace == namespace && finds(p, o.volume) {
			return decision{
				createShare: shareAgain(o.claim, p, o.volume),
				success:     fmt.Sprintf("FileShare %s of namespace %s, which the claim's volume is, was deleted; it is made again, with its data", name, namespace),
			}
		}
	}
	layout := o.volume.Annotations[v1alpha1.ProvisionedLayoutAnnotation]
	if layout != "" {
		layout = fmt.Sprintf(" and layout (%s)", layout)
	}
	return decision{refusal: fmt.Sprintf("FileShare %s of namespace %s, which the claim's volume is, was deleted, and the claim's StorageClass is not what it was, by which it could be made again: "+
		"the administrator of the FileServer makes a FileShare of that name with the path%s of the volume, and finds the data", name, namespace, layout)}
}

// isOver reports whether no claim has or can get the volume: Kubernetes does not bind a volume that is being deleted.
func isOver(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeReleased || volume.DeletionTimestamp != nil && volume.Status.Phase != corev1.VolumeBound
}

// decideEnd deletes a released volume and its share by its reclaim policy. The share goes first, because only the
// volume knows it.
func decideEnd(o *observed) decision {
	switch {
	case o.volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		if o.share != nil && o.share.DeletionTimestamp == nil && o.share.Spec.ReclaimPolicy != v1alpha1.ReclaimRetain {
			return decision{policy: v1alpha1.ReclaimRetain} // The volume's policy was changed back before the deletion.
		}
		// The volume waits for an administrator, as in Kubernetes. If they delete it, the share stays, with policy
		// Retain.
		return decision{dropVolume: o.volume.DeletionTimestamp != nil}
	case o.share == nil:
		return decision{dropVolume: true}
	case o.share.DeletionTimestamp != nil:
		return decision{} // Its deletion causes the next pass.
	case o.share.Spec.ReclaimPolicy != v1alpha1.ReclaimDelete:
		return decision{policy: v1alpha1.ReclaimDelete}
	}
	return decision{deleteShare: true}
}

// decideOrphan deletes a share whose claim was deleted before it had a volume. A share that had a volume has policy
// Retain and stays.
func decideOrphan(o *observed) decision {
	if o.leftOver != nil && o.leftOver.Spec.Removal == "" && o.leftOver.State() == internalv1.DirectoryReady {
		return decision{removeDirectory: true}
	}
	return decision{deleteShare: o.share != nil && isLeftOver(o.share)}
}

// isLeftOver reports whether a share goes if its claim is gone and there is no volume.
func isLeftOver(share *v1alpha1.FileShare) bool {
	return share.DeletionTimestamp == nil && isMade(share) && share.Spec.ReclaimPolicy == v1alpha1.ReclaimDelete
}

// isMade reports whether this controller made the share, and not a user who set a claimRef.
func isMade(share *v1alpha1.FileShare) bool {
	return naming.IsProvisioned(share) && share.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy
}

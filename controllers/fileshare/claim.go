package fileshare

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/naming"
)

// claimPlan is what is to happen to the ready-made volume and claim.
type claimPlan struct {
	// waiting tells why there is no claim for now.
	waiting *finding
	// objects are to be applied, in order.
	objects []apply.Object
	// release is the volume without its reference to a claim that was deleted; nil if it has none.
	release *corev1.PersistentVolume
}

// planClaim decides about the ready-made volume and claim. The volume shows the quota that is enforced, and without one what the FileServer has.
func planClaim(o *observed, quota v1alpha1.ShareQuotaStatus) claimPlan {
	if naming.IsProvisioned(o.share) {
		return claimPlan{} // It has a volume and a claim already, or will: controllers/provisioner.
	}
	address := o.fileServer.Status.Address
	if address == "" {
		return claimPlan{waiting: &finding{
			v1alpha1.ReasonFileServerNotReady,
			fmt.Sprintf("waiting for FileServer %s to have the address of its namespace servers", o.fileServer.Name),
		}}
	}
	if o.claim != nil && o.claim.DeletionTimestamp != nil {
		return claimPlan{waiting: &finding{
			v1alpha1.ReasonProgressing,
			fmt.Sprintf("PersistentVolumeClaim %s is being deleted; waiting for the pods that use it to end, then it is made again", o.claim.Name),
		}}
	}
	if o.volume != nil && o.volume.DeletionTimestamp != nil {
		return claimPlan{waiting: &finding{
			v1alpha1.ReasonProgressing,
			fmt.Sprintf("PersistentVolume %s is being deleted; waiting for its claim to go, then it is made again", o.volume.Name),
		}}
	}
	// The address of a PersistentVolume can't be changed.
	if o.volume != nil && o.volume.Spec.NFS != nil && o.volume.Spec.NFS.Server != address && isOurs(o) {
		return claimPlan{waiting: &finding{
			v1alpha1.ReasonProgressing,
			fmt.Sprintf("PersistentVolume %s has the address %s, and the namespace servers are at %s now; end the pods that use claim %s, and delete claim and volume: they are made again",
				o.volume.Name, o.volume.Spec.NFS.Server, address, o.share.Name),
		}}
	}
	in := desired.ShareInput{Share: o.share, Address: address}
	if total := o.fileServer.Status.Capacity.TotalBytes; total != nil {
		in.CapacityBytes = *total
	}
	if quota.Size != nil {
		in.CapacityBytes = quota.Size.Value()
	}
	plan := planBinding(o, apply.Owned(desired.ShareClaim(in)), apply.Unowned(desired.ShareVolume(in)))
	if refersToDeletedClaim(o) {
		plan.release = o.volume.DeepCopy()
		plan.release.Spec.ClaimRef.UID, plan.release.Spec.ClaimRef.ResourceVersion = "", ""
	}
	return plan
}

// planBinding puts the volume and the claim in the order in which pods start soonest.
//
// The first claim waits for a namespace server: a pod that mounts before anyone listens loses
// seconds to mount.nfs, which doubles its pauses. And it waits for Kubernetes to know the volume:
// a claim whose volume its controller has not seen is looked at again only with the next resync, 15 s later
// (kube-controller-manager's --pvclaimbinder-sync-period).
func planBinding(o *observed, claim, volume apply.Object) claimPlan {
	switch {
	case o.claim != nil:
		// The claim goes first: if its name is taken there must be no volume that waits for it.
		return claimPlan{objects: []apply.Object{claim, volume}}
	case !conditions.IsTrue(o.fileServer.Status.Conditions, v1alpha1.FileServerNamespaceServersAvailable):
		return claimPlan{waiting: &finding{
			v1alpha1.ReasonFileServerNotReady,
			fmt.Sprintf("waiting for a namespace server of FileServer %s to be ready before pods may mount", o.fileServer.Name),
		}}
	case o.volume == nil || o.volume.Status.Phase != corev1.VolumeAvailable:
		return claimPlan{objects: []apply.Object{volume}, waiting: &finding{
			v1alpha1.ReasonProgressing,
			fmt.Sprintf("waiting for Kubernetes to call PersistentVolume %s Available", naming.ShareVolume(o.share.Namespace, o.share.Name)),
		}}
	}
	return claimPlan{objects: []apply.Object{claim, volume}}
}

// refersToDeletedClaim: the volume was bound to a claim that was deleted, or deleted and made again
// since. Kubernetes binds it to a new one only when the old one's UID is off, which must wait until
// Kubernetes, too, knows that the old one is gone and calls the volume Released.
func refersToDeletedClaim(o *observed) bool {
	if o.volume == nil || o.volume.Spec.ClaimRef == nil || o.volume.Spec.ClaimRef.UID == "" || !isOurs(o) {
		return false
	}
	if o.claim == nil {
		return o.volume.Status.Phase == corev1.VolumeReleased
	}
	return o.volume.Spec.ClaimRef.UID != o.claim.UID
}

// isOurs: the volume was made for this share.
func isOurs(o *observed) bool {
	return o.volume.Annotations[v1alpha1.OwnerAnnotation] == naming.Owner("FileShare", o.share.Namespace, o.share.Name)
}

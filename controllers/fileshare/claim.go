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

// claimPlan has the changes of the ready-made volume and claim.
type claimPlan struct {
	// waiting is why there is no claim yet.
	waiting *finding
	// objects are applied in order.
	objects []apply.Object
	// release is the volume without its reference to a claim that was deleted; nil if it has none.
	release *corev1.PersistentVolume
	// remove is a volume that no claim uses, and whose address is an earlier one; nil if there is none.
	remove *corev1.PersistentVolume
}

// planClaim decides about the ready-made volume and claim. The volume's capacity is the enforced quota, or without one
// the FileServer's capacity.
func planClaim(o *observed, quota v1alpha1.ShareQuotaStatus) claimPlan {
	address := o.fileServer.Status.Address
	if naming.IsProvisioned(o.share) { // It has a volume and a claim already, or will: controllers/provisioner.
		return claimPlan{waiting: earlierAddress(o)}
	}
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
		if o.claim == nil && o.volume.Status.Phase != corev1.VolumeBound {
			return claimPlan{remove: o.volume, waiting: &finding{
				v1alpha1.ReasonProgressing,
				fmt.Sprintf("PersistentVolume %s has the address %s, and the namespace servers are at %s now; no claim uses it, so it is made again", o.volume.Name, o.volume.Spec.NFS.Server, address),
			}}
		}
		return claimPlan{waiting: &finding{
			v1alpha1.ReasonProgressing,
			fmt.Sprintf("PersistentVolume %s has the address %s, and the namespace servers are at %s now; end the pods that use claim %s, and delete claim and volume: they are made again",
				o.volume.Name, o.volume.Spec.NFS.Server, address, o.share.Name),
		}}
	}
	in := desired.ShareInput{Share: o.share, Address: address, ReservedPorts: o.reservedPorts}
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

// earlierAddress is what is wrong with the volume of a claim of a StorageClass whose address is an earlier one; nil if nothing is. It can't be made again:
// what becomes of the data goes by it.
func earlierAddress(o *observed) *finding {
	volume, address, service := o.provisioned, o.fileServer.Status.Address, naming.NamespaceService(o.fileServer.Name)
	if address == "" || volume == nil || volume.Spec.NFS == nil || volume.Spec.NFS.Server == address {
		return nil
	}
	return &finding{v1alpha1.ReasonProgressing, fmt.Sprintf(
		"PersistentVolume %s has the address %s, and the namespace servers are at %s now, so pods can't mount it; free the first address if another Service has it, and delete Service %s/%s: it is made again with that address",
		volume.Name, volume.Spec.NFS.Server, address, o.fileServer.Namespace, service)}
}

// planBinding orders volume and claim so that pods start as soon as possible.
//
// The first claim waits until a namespace server listens: mount.nfs doubles its pauses, so a pod that mounts earlier
// loses seconds. It also waits until Kubernetes has processed the volume: otherwise its controller processes the claim
// only at its next resync, 15 s later (kube-controller-manager's --pvclaimbinder-sync-period).
func planBinding(o *observed, claim, volume apply.Object) claimPlan {
	switch {
	case o.claim != nil:
		// Apply the claim first: if its name is taken, no volume may wait for it.
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

// refersToDeletedClaim reports whether the volume was bound to a claim that was deleted, and perhaps made again.
// Kubernetes binds the volume to the new claim only after the old UID is removed. That must wait until Kubernetes has
// noticed the deletion (phase Released).
func refersToDeletedClaim(o *observed) bool {
	if o.volume == nil || o.volume.Spec.ClaimRef == nil || o.volume.Spec.ClaimRef.UID == "" || !isOurs(o) {
		return false
	}
	if o.claim == nil {
		return o.volume.Status.Phase == corev1.VolumeReleased
	}
	return o.volume.Spec.ClaimRef.UID != o.claim.UID
}

// isOurs reports whether the volume was made for this share.
func isOurs(o *observed) bool {
	return o.volume.Annotations[v1alpha1.OwnerAnnotation] == naming.Owner("FileShare", o.share.Namespace, o.share.Name)
}

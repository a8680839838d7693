package fileshare

import (
	"fmt"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/desired"
)

// claimPlan is what is to happen to the ready-made volume and claim.
type claimPlan struct {
	// waiting tells why they are left alone for now.
	waiting *finding
	// objects are to be applied, in order.
	objects []apply.Object
}

// planClaim decides about the ready-made volume and claim.
func planClaim(o *observed) claimPlan {
	address := o.fileServer.Status.Address
	if address == "" {
		return claimPlan{waiting: &finding{v1alpha1.ReasonFileServerNotReady,
			fmt.Sprintf("waiting for FileServer %s to have the address of its front door", o.fileServer.Name)}}
	}
	if o.claim != nil && o.claim.DeletionTimestamp != nil {
		return claimPlan{waiting: &finding{v1alpha1.ReasonProgressing,
			fmt.Sprintf("PersistentVolumeClaim %s is being deleted; waiting for the pods that use it to end, then it is made again", o.claim.Name)}}
	}
	if o.volume != nil && o.volume.DeletionTimestamp != nil {
		return claimPlan{waiting: &finding{v1alpha1.ReasonProgressing,
			fmt.Sprintf("PersistentVolume %s is being deleted; waiting for its claim to go, then it is made again", o.volume.Name)}}
	}
	// Kubernetes lets nobody change where a volume is.
	if o.volume != nil && o.volume.Spec.NFS != nil && o.volume.Spec.NFS.Server != address && isOurs(o) {
		return claimPlan{waiting: &finding{v1alpha1.ReasonProgressing,
			fmt.Sprintf("PersistentVolume %s has the address %s and the front door is at %s now; end the pods that use claim %s and delete claim and volume, then they are made again",
				o.volume.Name, o.volume.Spec.NFS.Server, address, o.share.Name)}}
	}
	in := desired.ShareInput{Share: o.share, Address: address}
	if total := o.fileServer.Status.Capacity.TotalBytes; total != nil {
		in.CapacityBytes = *total
	}
	if o.volume != nil {
		in.PresentReference = o.volume.Spec.ClaimRef
	}
	if o.claim != nil {
		in.ClaimUID = o.claim.UID
	}
	// The claim goes first: if its name is taken there must be no volume that waits for it.
	return claimPlan{objects: []apply.Object{apply.Owned(desired.ShareClaim(in)), apply.Unowned(desired.ShareVolume(in))}}
}

// isOurs: the volume was made for this share.
func isOurs(o *observed) bool {
	return o.volume.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy
}

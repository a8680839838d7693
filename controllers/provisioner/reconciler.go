package provisioner

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/watched"
)

// FieldManager is the name of the controller in events.
const FieldManager = "howdah-provisioner"

// Reasons of events, as Kubernetes' own provisioners have them.
const (
	ReasonFailed    = "ProvisioningFailed"
	ReasonSucceeded = "ProvisioningSucceeded"
	ReasonResized   = "VolumeResizeSuccessful"
	// ReasonResizeFailed is the kubelet's and the resizer's.
	ReasonResizeFailed = "VolumeResizeFailed"
	// ReasonShareLost is Howdah's own.
	ReasonShareLost = "FileShareLost"
)

// Reconciler makes and deletes the shares and volumes of claims. All named fields are required.
type Reconciler struct {
	// Client reads through the manager's cache and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Claims reads all claims; SetupWithManager makes it.
	Claims client.Reader
	// Clock is for the state of data servers.
	Clock clock.PassiveClock
	// Events records what the claim's owner should know.
	Events events.EventRecorder
	// WatchNamespaces are the Kubernetes namespaces that the operator watches; none means all.
	WatchNamespaces watched.Namespaces

	notified notified
	assumed  assumed
}

// The rights to create and delete FileShares, and to write a claim's size, are in a separate role
// (config/components/provisioning). An operator without provisioning does not have them.

// Reconcile is one pass over a claim: it makes the claim's volume, or deletes the volume and its share.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o, err := r.observe(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := decide(o)
	if about := doubtOf(o, d); about != noDoubt {
		if err := r.readLive(ctx, o, request.Name, about); err != nil {
			return ctrl.Result{}, err
		}
		d = decide(o)
	}
	err = r.execute(ctx, o, d)
	if apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, nil // The cache is stale; an earlier pass recorded the event.
	}
	if apply.Reason(err) == v1alpha1.ReasonApplyFailed {
		refused := decision{refusal: describeRefused(o, d, err)}
		if d.quota != nil || d.grow != nil {
			refused.failed = ReasonResizeFailed
		}
		d = refused
	} else if err != nil {
		return apply.Outcome(err)
	}
	r.tell(request.Name, o, d)
	return apply.Outcome(err)
}

// execute does the one thing that a decision has. A deleted object is no error. Each write causes another pass.
func (r *Reconciler) execute(ctx context.Context, o *observed, d decision) error {
	switch {
	case d.createShare != nil:
		if err := r.Client.Create(ctx, d.createShare); err != nil {
			return fmt.Errorf("making FileShare %s in namespace %s: %w", d.createShare.Name, d.createShare.Namespace, err)
		}
	case len(d.createDirectories) > 0:
		for _, directory := range d.createDirectories {
			// Another claim may have made the directories above it.
			r.assumed.add(directory.DeepCopy(), o.now)
			if err := r.Client.Create(ctx, directory); err != nil && !apierrors.IsAlreadyExists(err) {
				r.assumed.drop(directory)
				return fmt.Errorf("the ShareDirectory of %q: %w", directory.Spec.Path, err)
			}
		}
	case d.removeDirectory:
		after := o.leftOver.DeepCopy()
		after.Spec.Removal = internalv1.RemovalWhenEmpty
		return r.patch(ctx, o.leftOver, after)
	case d.createVolume != nil:
		if err := r.Client.Create(ctx, d.createVolume); err != nil {
			return fmt.Errorf("making PersistentVolume %s: %w", d.createVolume.Name, err)
		}
	case d.quota != nil:
		if err := r.allocate(ctx, o.claim, *d.quota); err != nil {
			return err
		}
		after := o.share.DeepCopy()
		after.Spec.Quota.Size = d.quota
		return r.patch(ctx, o.share, after)
	case d.grow != nil:
		return r.grow(ctx, o, d)
	case d.policy != "":
		after := o.share.DeepCopy()
		after.Spec.ReclaimPolicy = d.policy
		return r.patch(ctx, o.share, after)
	case d.deleteShare:
		uid, version := o.share.UID, o.share.ResourceVersion
		return client.IgnoreNotFound(r.Client.Delete(ctx, o.share.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version}))
	case d.dropVolume:
		return r.dropVolume(ctx, o.volume)
	}
	return nil
}

// allocate writes into the claim the size that its share is about to get, as Kubernetes' resizer does: a ResourceQuota
// counts the larger one of request and allocation, so that a user can't lower the request and have the quota all the
// same. API servers before Kubernetes 1.32 may drop it, and don't let requests be lowered.
func (r *Reconciler) allocate(ctx context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity) error {
	if allocated, has := claim.Status.AllocatedResources[corev1.ResourceStorage]; has && allocated.Cmp(size) == 0 {
		return nil
	}
	after := claim.DeepCopy()
	after.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: size}
	if err := r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the allocated size of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// grow writes a size into the volume and then into the claim.
func (r *Reconciler) grow(ctx context.Context, o *observed, d decision) error {
	volume := o.volume.DeepCopy()
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: *d.grow}
	if err := r.patch(ctx, o.volume, volume); err != nil {
		return err
	}
	claim := o.claim.DeepCopy()
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: *d.grow}
	// As Kubernetes' resizer does: a ResourceQuota counts the larger one of request and allocation.
	claim.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: *d.grow}
	if err := r.Client.Status().Patch(ctx, claim, client.MergeFromWithOptions(o.claim, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the size of claim %s/%s: %w", o.claim.Namespace, o.claim.Name, err)
	}
	return nil
}

// dropVolume deletes a volume and removes its finalizer.
func (r *Reconciler) dropVolume(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.DeletionTimestamp == nil {
		uid := volume.UID
		if err := r.Client.Delete(ctx, volume.DeepCopy(), client.Preconditions{UID: &uid}); err != nil {
			return client.IgnoreNotFound(err)
		}
		return nil // Its finalizer keeps it; the deletion causes another pass.
	}
	_, err := apply.RemoveFinalizer(ctx, r.Client, volume.DeepCopy(), v1alpha1.VolumeFinalizer)
	return err
}

// patch writes the differences, unless the object has changed since it was read.
func (r *Reconciler) patch(ctx context.Context, before, after client.Object) error {
	err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("writing %T %s: %w", before, before.GetName(), err)
	}
	return nil
}

// tell records events for the claim's owner.
func (r *Reconciler) tell(name string, o *observed, d decision) {
	if o.claim == nil {
		r.notified.forget(name)
		return
	}
	switch {
	case d.refusal != "":
		if r.notified.isNews(name, d.refusal) {
			reason := cmp.Or(d.failed, ReasonFailed)
			if d.failed == "" && o.volume != nil {
				reason = ReasonShareLost
			}
			r.Events.Eventf(o.claim, nil, corev1.EventTypeWarning, reason, "Provision", "%s", d.refusal)
		}
		return
	case d.success != "" && d.createVolume != nil:
		r.Events.Eventf(o.claim, nil, corev1.EventTypeNormal, ReasonSucceeded, "Provision", "%s", d.success)
	case d.success != "" && d.createShare != nil:
		r.Events.Eventf(o.claim, nil, corev1.EventTypeWarning, ReasonShareLost, "Restore", "%s", d.success)
	case d.success != "":
		r.Events.Eventf(o.claim, nil, corev1.EventTypeNormal, ReasonResized, "Resize", "%s", d.success)
	}
	r.notified.forget(name)
}

// notified has the last refusal in the events of each claim: many passes find it again, and one event is enough.
type notified struct {
	sync.Mutex
	last map[string]string
}

func (t *notified) isNews(name, text string) bool {
	t.Lock()
	defer t.Unlock()
	if t.last[name] == text {
		return false
	}
	if t.last == nil {
		t.last = map[string]string{}
	}
	t.last[name] = text
	return true
}

func (t *notified) forget(name string) {
	t.Lock()
	defer t.Unlock()
	delete(t.last, name)
}

package fileshare

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/lookup"
	"github.com/howdah/howdah/internal/naming"
)

// A share that is deleted with its data deletes its claim first. Kubernetes keeps a claim until no pod uses it. Only
// then is the data removed, because pods may still write.

const (
	// retryPods is how often the message is updated at first, and retryPodsAtMost after a while. Each time lists the pods of
	// the namespace, and a tenant can have hundreds of such shares. The deletion of the claim causes the next pass at once.
	retryPods, retryPodsAtMost = 15 * time.Second, 10 * time.Minute
	// podsPerList is the page size of a list request.
	podsPerList = 250
)

// waitForPods deletes the ready-made claim of a share whose data is removed, and returns what the removal waits for; ""
// if nothing.
func (r *Reconciler) waitForPods(ctx context.Context, o *observed) (string, error) {
	if o.fileServer == nil || !removesData(o) || naming.IsProvisioned(o.share) {
		return "", nil // The volume of a StorageClass is released before its share is deleted.
	}
	key := types.NamespacedName{Namespace: o.share.Namespace, Name: naming.ShareClaim(o.share.Name)}
	claim := &corev1.PersistentVolumeClaim{}
	found, err := lookup.Object(ctx, r.Live, key, claim)
	if err != nil || !found || !isReadyMade(claim, o.share) {
		return "", err
	}
	if claim.DeletionTimestamp == nil {
		if _, err := apply.Execute(ctx, r.Client, []apply.Change{{Delete: claim}}); err != nil {
			return "", err
		}
		if found, err = lookup.Object(ctx, r.Live, key, claim); err != nil || !found {
			return "", err
		}
	}
	pods, err := r.podsOf(ctx, key)
	if err != nil {
		return "", err
	}
	if len(pods) == 0 {
		return fmt.Sprintf("waiting for Kubernetes to let PersistentVolumeClaim %s go, before data is removed", key.Name), nil
	}
	return fmt.Sprintf("reclaimPolicy is Delete, and no data is removed before the pods that use PersistentVolumeClaim %s have ended: %s; delete them, or set reclaimPolicy to %s, which keeps the data",
		key.Name, conditions.List(pods, maxNamed), v1alpha1.ReclaimRetain), nil
}

// retryPodsIn is when to update the message.
func retryPodsIn(o *observed) time.Duration {
	waited := o.now.Sub(o.share.DeletionTimestamp.Time)
	return min(max(waited/4, retryPods), retryPodsAtMost)
}

// isReadyMade reports whether the claim was made for the share, or for an earlier one of its name: pods keep the claim of
// that, and write where the share has its data now.
func isReadyMade(claim *corev1.PersistentVolumeClaim, share *v1alpha1.FileShare) bool {
	owner := metav1.GetControllerOf(claim)
	return owner != nil && owner.Kind == "FileShare" && owner.APIVersion == v1alpha1.GroupVersion.String() && owner.Name == share.Name
}

// podsOf returns the names of the running pods that use a claim, sorted. They are read past the cache, which has no
// such pods.
func (r *Reconciler) podsOf(ctx context.Context, claim types.NamespacedName) ([]string, error) {
	var names []string
	var pods corev1.PodList
	for {
		if err := r.Live.List(ctx, &pods, client.InNamespace(claim.Namespace), client.Limit(podsPerList), client.Continue(pods.Continue)); err != nil {
			return nil, fmt.Errorf("listing the pods of namespace %s, to find those that use claim %s: %w", claim.Namespace, claim.Name, err)
		}
		for i := range pods.Items {
			if uses(&pods.Items[i], claim.Name) {
				names = append(names, pods.Items[i].Name)
			}
		}
		if pods.Continue == "" {
			slices.Sort(names)
			return names, nil
		}
	}
}

// uses reports whether the pod uses the claim. A pod without a node does not count: Kubernetes does not keep the claim
// for it.
func uses(pod *corev1.Pod, claim string) bool {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

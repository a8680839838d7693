package fileserver

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
)

// ensureStewardSecret makes the Secret that the steward writes, once, and again when the steward misses it: the operator can't look.
func (k *keys) ensureStewardSecret(ctx context.Context, c client.Client, o *observed, name string) error {
	key := client.ObjectKey{Namespace: o.fileServer.Namespace, Name: name}
	missed := o.steward != nil && conditions.Reason(o.steward.Status.Conditions, v1alpha1.ConditionReady) == internalv1.ReasonSecretMissing
	if _, made := k.made.Load(key); made && !missed {
		return nil
	}
	if err := c.Create(ctx, desired.StewardSecret(o.fileServer, name), client.FieldOwner(FieldManager)); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("making Secret %s: %w", name, err)
	}
	k.made.Store(key, nil)
	return nil
}

// stewardStays tells whether the steward goes on with its image although data servers are to have another one: as long as none of them serves
// with that. With an image that is bad there would be no fences and no new shares. One that can't work is not kept.
func (o *observed) stewardStays(image string) bool {
	if o.steward == nil || o.stewardImage == "" || o.stewardImage == image {
		return false
	}
	ready := meta.FindStatusCondition(o.steward.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue && !isWithin(o.now.Sub(ready.LastTransitionTime.Time), startLimit) {
		return false
	}
	for name, pod := range o.pods {
		if imageOf(&pod.Spec) == image && o.servesFrom(name, &pod) {
			return false
		}
	}
	return true
}

// bringSecret writes on the pods of data servers which contents of the steward's Secret they are to have: a kubelet that sees its pod changed
// looks at what it mounts at once, and else within a minute or two.
func (r *Reconciler) bringSecret(ctx context.Context, o *observed) error {
	if o.steward == nil || o.steward.Status.SecretRevision == "" {
		return nil
	}
	var faults []error
	for name := range o.pods {
		pod := o.pods[name]
		if pod.DeletionTimestamp != nil || pod.Annotations[v1alpha1.StorageSecretAnnotation] == o.steward.Status.SecretRevision {
			continue
		}
		after := pod.DeepCopy()
		if after.Annotations == nil {
			after.Annotations = map[string]string{}
		}
		after.Annotations[v1alpha1.StorageSecretAnnotation] = o.steward.Status.SecretRevision
		if err := r.Patch(ctx, after, client.MergeFrom(&pod)); client.IgnoreNotFound(err) != nil {
			faults = append(faults, fmt.Errorf("having the kubelet of pod %s bring its Secret: %w", name, err))
		}
	}
	return errors.Join(faults...)
}

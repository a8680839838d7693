package main

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/util/workqueue"
)

const (
	annSelectedNode  = "volume.kubernetes.io/selected-node"
	annProvisioner   = "volume.kubernetes.io/storage-provisioner"
	annProvisionedBy = "pv.kubernetes.io/provisioned-by"
)

type provisioner struct {
	client  kubernetes.Interface
	node    string
	disks   disks
	claims  listers.PersistentVolumeClaimLister
	volumes listers.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	queue   workqueue.TypedRateLimitingInterface[item]
}

func (p *provisioner) reconcile(ctx context.Context, key item) error {
	if key.namespace == "" {
		return p.reconcileVolume(ctx, key.name)
	}
	claim, err := p.claims.PersistentVolumeClaims(key.namespace).Get(key.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if claim.Annotations[annProvisioner] != provisionerName || claim.Annotations[annSelectedNode] != p.node ||
		claim.DeletionTimestamp != nil {
		return nil
	}
	if claim.Spec.VolumeName == "" {
		return p.provision(ctx, claim)
	}
	return p.resize(ctx, claim)
}

func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		return fmt.Errorf("block volumes are not supported")
	}
	name := "pvc-" + string(claim.UID)
	if _, err := p.volumes.Get(name); err == nil {
		return nil // Made already; binding it is the controller manager's part.
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return err
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if err := p.disks.ensure(name, size.Value()); err != nil {
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, p.volumeFor(claim, name, *class.ReclaimPolicy), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		log.Printf("made %s for %s/%s", name, claim.Namespace, claim.Name)
	}
	return err
}

func (p *provisioner) volumeFor(claim *corev1.PersistentVolumeClaim, name string, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annProvisionedBy: provisionerName}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeReclaimPolicy: policy,
			StorageClassName:              *claim.Spec.StorageClassName,
			VolumeMode:                    claim.Spec.VolumeMode,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: p.disks.path(name)}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{p.node},
				}},
			}}}},
		},
	}
}

// resize grows a volume to what its claim asks for, under the pods that use it.
func (p *provisioner) resize(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if have, ok := claim.Status.Capacity[corev1.ResourceStorage]; !ok || have.Cmp(want) >= 0 {
		return nil
	}
	volume, err := p.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if size := volume.Spec.Capacity[corev1.ResourceStorage]; size.Cmp(want) < 0 {
		if err := p.disks.grow(volume.Name, want.Value()); err != nil {
			return err
		}
		volume.Spec.Capacity[corev1.ResourceStorage] = want
		if _, err := p.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	claim = claim.DeepCopy()
	claim.Status.Capacity[corev1.ResourceStorage] = want
	claim.Status.Conditions = nil
	_, err = p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

// reconcileVolume removes a volume of this node whose claim has gone.
func (p *provisioner) reconcileVolume(ctx context.Context, name string) error {
	volume, err := p.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !p.mine(volume) || volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	if err := p.disks.remove(name); err != nil {
		return err
	}
	err = p.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{})
	if err == nil {
		log.Printf("removed %s", name)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (p *provisioner) mine(volume *corev1.PersistentVolume) bool {
	if volume.Annotations[annProvisionedBy] != provisionerName || volume.Spec.Local == nil || volume.Spec.NodeAffinity == nil {
		return false
	}
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, want := range term.MatchExpressions {
			if want.Key == corev1.LabelHostname && len(want.Values) == 1 && want.Values[0] == p.node {
				return true
			}
		}
	}
	return false
}

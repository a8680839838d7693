package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	annProvisioner   = "volume.kubernetes.io/storage-provisioner"
	annProvisionedBy = "pv.kubernetes.io/provisioned-by"
	// look is how often claims and volumes are looked at: a lab has a few.
	look = 500 * time.Millisecond
)

// provision makes volumes for claims of the storage class, and removes those whose claims have gone.
func provision(ctx context.Context, s *storage) error {
	dir := os.Getenv("PKI_DIR")
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: os.Getenv("API_SERVER"),
		TLSClientConfig: rest.TLSClientConfig{
			CAFile: filepath.Join(dir, "ca.crt"), CertFile: filepath.Join(dir, "volumes.crt"), KeyFile: filepath.Join(dir, "volumes.key"),
		},
		QPS: 50, Burst: 100,
	})
	if err != nil {
		return err
	}
	last := ""
	for {
		if err := pass(ctx, client, s); err != nil && err.Error() != last {
			last = err.Error()
			log.Print(last)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(look):
		}
	}
}

func pass(ctx context.Context, client kubernetes.Interface, s *storage) error {
	claims, err := client.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Annotations[annProvisioner] != driverName || claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil {
			continue
		}
		if err := provisionOne(ctx, client, s, claim); err != nil {
			return fmt.Errorf("%s/%s: %w", claim.Namespace, claim.Name, err)
		}
	}
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		if volume.Annotations[annProvisionedBy] != driverName || volume.Status.Phase != corev1.VolumeReleased ||
			volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || volume.DeletionTimestamp != nil {
			continue
		}
		if err := s.remove(volume.Name); err != nil {
			return err
		}
		if err := client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		log.Printf("removed %s", volume.Name)
	}
	return nil
}

func provisionOne(ctx context.Context, client kubernetes.Interface, s *storage, claim *corev1.PersistentVolumeClaim) error {
	name := "pvc-" + string(claim.UID)
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if err := s.create(name, size.Value()); err != nil {
		return err
	}
	class, err := client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	_, err = client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annProvisionedBy: driverName}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: corev1.ResourceList{corev1.ResourceStorage: size},
			PersistentVolumeReclaimPolicy: policy, StorageClassName: *claim.Spec.StorageClassName, VolumeMode: claim.Spec.VolumeMode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: name, FSType: "ext4"}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}, metav1.CreateOptions{})
	if err == nil {
		log.Printf("made %s for %s/%s", name, claim.Namespace, claim.Name)
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

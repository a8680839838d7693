package desired

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// benchmarkMountOptions are those of the share, with the job's number of connections.
func benchmarkMountOptions(mount v1alpha1.ShareMount, nconnect int) []string {
	options := slices.Clone(mount.Options)
	for i, option := range options {
		if strings.HasPrefix(option, "nconnect=") {
			options[i] = fmt.Sprintf("nconnect=%d", nconnect)
		}
	}
	return options
}

// BenchmarkVolume is the mount of a job. The share's own volume would do for
// nconnect=16 only: mount options belong to the PersistentVolume. It has no owner (the kind has no
// namespace); the job's finalizer removes it.
func BenchmarkVolume(job *v1alpha1.MLPerfStorageJob, mount v1alpha1.ShareMount, nconnect int) *corev1ac.PersistentVolumeApplyConfiguration {
	return corev1ac.PersistentVolume(naming.BenchmarkVolume(job.Namespace, job.Name)).
		WithLabels(labels(naming.SelectBenchmark(job.Name))).
		WithSpec(corev1ac.PersistentVolumeSpec().
			WithCapacity(corev1.ResourceList{corev1.ResourceStorage: claimRequest}).
			WithAccessModes(corev1.ReadWriteMany).
			WithPersistentVolumeReclaimPolicy(corev1.PersistentVolumeReclaimRetain).
			WithStorageClassName("").
			WithVolumeMode(corev1.PersistentVolumeFilesystem).
			WithMountOptions(benchmarkMountOptions(mount, nconnect)...).
			WithNFS(corev1ac.NFSVolumeSource().WithServer(mount.Address).WithPath(mount.Path)).
			// Without it any other claim could take the volume.
			WithClaimRef(corev1ac.ObjectReference().WithAPIVersion("v1").WithKind("PersistentVolumeClaim").
				WithNamespace(job.Namespace).WithName(naming.Benchmark(job.Name))))
}

// BenchmarkClaim is the claim that binds to the job's volume.
func BenchmarkClaim(job *v1alpha1.MLPerfStorageJob) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	return corev1ac.PersistentVolumeClaim(naming.Benchmark(job.Name), job.Namespace).
		WithLabels(labels(naming.SelectBenchmark(job.Name))).
		WithSpec(corev1ac.PersistentVolumeClaimSpec().
			WithAccessModes(corev1.ReadWriteMany).
			WithResources(corev1ac.VolumeResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceStorage: claimRequest})).
			// Empty, not unset: unset would let the cluster's default class provision a volume.
			WithStorageClassName("").
			WithVolumeMode(corev1.PersistentVolumeFilesystem).
			WithVolumeName(naming.BenchmarkVolume(job.Namespace, job.Name)))
}

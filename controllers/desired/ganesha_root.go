package desired

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/howdah/howdah/internal/serverpod"
)

// ganeshaRootVolume is the name of the volume that has serverpod.GaneshaRoot. It only has directories, on which others are mounted.
const (
	ganeshaRootVolume = "ganesha-root"
	ganeshaRootSize   = "1Mi"
)

// withGaneshaRoot mounts what ganesha's root directory has beside volumes. It is in memory, and not the image's, because the file system of
// the image is the node's disk with some snapshotters of container runtimes. What ganesha only reads it can't write.
func withGaneshaRoot(pod *corev1ac.PodSpecApplyConfiguration, container *corev1ac.ContainerApplyConfiguration) {
	pod.WithVolumes(corev1ac.Volume().WithName(ganeshaRootVolume).WithEmptyDir(corev1ac.EmptyDirVolumeSource().
		WithMedium(corev1.StorageMediumMemory).WithSizeLimit(resource.MustParse(ganeshaRootSize))))
	run, state := writableName(slices.Index(serverpod.WritableDirs, serverpod.RunDir)), writableName(slices.Index(serverpod.WritableDirs, serverpod.StateDir))
	inside := func(volume, at string) *corev1ac.VolumeMountApplyConfiguration {
		return corev1ac.VolumeMount().WithName(volume).WithMountPath(path.Join(serverpod.GaneshaRoot, at))
	}
	container.WithArgs("--"+serverpod.FlagGaneshaRoot+"="+serverpod.GaneshaRoot).WithVolumeMounts(
		inside(ganeshaRootVolume, "/"), inside(run, serverpod.RunDir).WithReadOnly(true), inside(run, serverpod.EtcDir).WithReadOnly(true),
		inside(state, serverpod.StateDir), inside(state, serverpod.TempDir))
}

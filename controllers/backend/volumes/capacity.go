package volumes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// Capacity sums up the volumes: what their file systems have, and what their claims promise. The two differ where claims share a file system, and
// where a class does not keep a volume to its size.
func (s *Storage) Capacity(servers []string) v1alpha1.FileServerCapacity {
	var reported []*internalv1.DataServer
	var provisioned int64
	claims := s.Claims()
	for _, name := range slices.Sorted(slices.Values(servers)) {
		server := s.DataServers[name]
		reported = append(reported, &server)
		for _, claim := range claims[name] {
			size := s.All[claim].Status.Capacity[corev1.ResourceStorage]
			provisioned += size.Value()
		}
	}
	sum := fleet.Sum(reported...)
	if !sum.Known {
		return v1alpha1.FileServerCapacity{}
	}
	capacity := v1alpha1.FileServerCapacity{TotalBytes: &sum.TotalBytes, UsedBytes: &sum.UsedBytes, FreeBytes: &sum.FreeBytes}
	if provisioned > 0 {
		capacity.ProvisionedBytes = &provisioned
	}
	return capacity
}

// VolumeSize is the least that a claim asks for or has: what it asks for may not have come, and storage may give more than it was asked for. It is
// nil without claims. The size in the specification can go back to it: claims are only ever raised, so that takes nothing from a volume.
func (s *Storage) VolumeSize() (least *resource.Quantity) {
	for _, name := range slices.Sorted(maps.Keys(s.All)) {
		claim := s.All[name]
		if claim.DeletionTimestamp != nil {
			continue
		}
		size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		if has, known := claim.Status.Capacity[corev1.ResourceStorage]; known && has.Cmp(size) < 0 {
			size = has
		}
		if least == nil || size.Cmp(*least) < 0 {
			least = ptr.To(size.DeepCopy())
		}
	}
	return least
}

// filled is a volume with the words about it.
type filled struct {
	rank  int
	words string
}

// filling is the condition if volumes are nearly full, or full. The fullest are named first.
func (s *Storage) filling(replicas int32, bound string) *metav1.Condition {
	var found []filled
	for ordinal := range replicas {
		server := s.DataServers[naming.DataServer(s.FileServer.Name, ordinal)]
		for i := range server.Status.Volumes {
			if volume := &server.Status.Volumes[i]; volume.Fill != "" && volume.Index != nil {
				claim := naming.VolumeClaim(s.FileServer.Name, ordinal, *volume.Index)
				found = append(found, filled{volume.Fill.Rank(), fmt.Sprintf("claim %s of %s is %s", claim, server.Name, fleet.DescribeFill(volume))})
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b filled) int { return cmp.Compare(b.rank, a.rank) })
	words := make([]string, 0, len(found))
	for _, volume := range found {
		words = append(words, volume.words)
	}
	reason, effect := v1alpha1.ReasonVolumesNearlyFull, ""
	if found[0].rank == v1alpha1.FillFull.Rank() {
		reason, effect = v1alpha1.ReasonVolumesFull, `; writes to full volumes end with "No space left on device", all else goes on`
	}
	c := conditions.True(v1alpha1.FileServerStorageAvailable, reason, fmt.Sprintf("%s; %s%s: %s", bound, conditions.List(words, maxNamed), effect, s.Remedy()))
	return &c
}

// Remedy is what can be done about volumes that fill up.
func (s *Storage) Remedy() string {
	if _, class, ok := existingTemplate(s.StatefulSet); ok && !s.canExpand(class) {
		return fmt.Sprintf("remove files; StorageClass %q does not expand volumes, so more room takes more data servers (spec.replicas), for new directories, or another FileServer", class)
	}
	return "raise spec.storage.volumes.size, or remove files"
}

func (s *Storage) canExpand(class string) bool {
	at := slices.IndexFunc(s.Classes, func(c storagev1.StorageClass) bool { return c.Name == class })
	return at >= 0 && ptr.Deref(s.Classes[at].AllowVolumeExpansion, false)
}

// growthOf is how far the expansion of a claim is, as its status has it, and whether it fails. Kubernetes tries again by itself.
func growthOf(claim *corev1.PersistentVolumeClaim) (progress string, fails bool) {
	for _, c := range claim.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
			return ", which fails: " + strings.TrimSpace(cmp.Or(c.Message, c.Reason)), true
		}
	}
	switch claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return ", which the storage can't do: kubectl describe pvc has the reason", true
	case corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress:
		return fileSystemPending, false
	}
	for _, c := range claim.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Type == corev1.PersistentVolumeClaimFileSystemResizePending {
			return fileSystemPending, false
		}
	}
	return "", false
}

// fileSystemPending: the volume has grown, and the kubelet of the data server's node enlarges the file system.
const fileSystemPending = " (its file system is to be enlarged on the node of its data server)"

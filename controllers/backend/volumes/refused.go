package volumes

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
)

// maxSharedNamed bounds how many volumes on shared file systems a message describes: they are mostly alike.
const maxSharedNamed = 2

// refused is the condition if data servers refuse volumes.
func (s *Storage) refused(replicas int32) *metav1.Condition {
	servers, words := s.Refusing(replicas)
	if len(servers) == 0 {
		return nil
	}
	c := conditions.False(v1alpha1.FileServerStorageAvailable, v1alpha1.ReasonVolumeRefused, fmt.Sprintf("%d of %d data servers refuse a volume (%s): %s",
		len(servers), replicas, conditions.List(servers, maxNamed), words))
	return &c
}

// sharedFileSystems describes the volumes that are not file systems of their own and are used all the same, by claim.
func (s *Storage) sharedFileSystems(replicas int32) (described []string) {
	if s.FileServer.Spec.Storage.Volumes.SharedFileSystemPolicy != v1alpha1.SharedFileSystemAllow {
		return nil // About to be refused.
	}
	for ordinal := range replicas {
		server := s.DataServers[naming.DataServer(s.FileServer.Name, ordinal)]
		for _, volume := range server.Status.Volumes {
			if volume.Index != nil && volume.SharedFileSystem != "" {
				described = append(described, naming.VolumeClaim(s.FileServer.Name, ordinal, *volume.Index)+" "+volume.SharedFileSystem)
			}
		}
	}
	return described
}

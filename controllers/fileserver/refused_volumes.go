package fileserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
)

// maxSharedNamed bounds how many volumes on shared file systems a message describes: they are mostly alike.
const maxSharedNamed = 2

// refusal is what a data server says of volumes that it refuses, "" if it refuses none.
func refusal(server *internalv1.DataServer) string {
	ready := meta.FindStatusCondition(server.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Reason != v1alpha1.ReasonVolumeRefused {
		return ""
	}
	return ready.Message
}

// refusedVolumes is the condition if data servers refuse volumes. The first one's words stand for all: what is wrong with node-local
// volumes is wrong with each of them.
func refusedVolumes(o *observed, d decision) *metav1.Condition {
	var servers []string
	first := ""
	for ordinal := range d.input.Replicas {
		name := naming.DataServer(o.fileServer.Name, ordinal)
		server := o.dataServers[name]
		if said := refusal(&server); said != "" {
			servers = append(servers, name)
			if first == "" {
				first = said
			}
		}
	}
	if len(servers) == 0 {
		return nil
	}
	c := conditions.False(v1alpha1.FileServerStorageAvailable, v1alpha1.ReasonVolumeRefused, fmt.Sprintf("%d of %d data servers refuse a volume (%s): %s",
		len(servers), d.input.Replicas, conditions.List(servers, maxPaths), first))
	return &c
}

// sharedVolumes describes the volumes that are not file systems of their own and are used all the same, by claim.
func (o *observed) sharedVolumes(d decision) (described []string) {
	if o.fileServer.Spec.Storage.Volumes.SharedFileSystemPolicy != v1alpha1.SharedFileSystemAllow {
		return nil // About to be refused.
	}
	for ordinal := range d.input.Replicas {
		server := o.dataServers[naming.DataServer(o.fileServer.Name, ordinal)]
		for _, volume := range server.Status.Volumes {
			if volume.Index != nil && volume.SharedFileSystem != "" {
				described = append(described, naming.VolumeClaim(o.fileServer.Name, ordinal, *volume.Index)+" "+volume.SharedFileSystem)
			}
		}
	}
	return described
}

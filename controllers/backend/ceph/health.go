package ceph

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
)

// healthReport is what data servers report about the health of the Ceph cluster.
type healthReport struct {
	reason  string
	words   string
	servers []string
}

// health returns the worst report of the data servers about the cluster; nil if there is none or the cluster is healthy.
// Reports of data servers that are not available are old and do not count. Ceph reports the same to all servers; if the
// reports differ, a server can't reach Ceph or has received the change first.
func (s *Storage) health(replicas int32) *healthReport {
	var all []*healthReport
	live := 0
	for ordinal := range replicas {
		server := s.DataServers[naming.DataServer(s.FileServer.Name, ordinal)]
		reported := meta.FindStatusCondition(server.Status.Conditions, internalv1.StorageHealthy)
		if reported == nil || server.Status.Unreachable.SeenBy != "" || !conditions.IsTrue(server.Status.Conditions, v1alpha1.ConditionReady) {
			continue
		}
		live++
		if reported.Reason == v1alpha1.ReasonReady {
			continue
		}
		at := slices.IndexFunc(all, func(t *healthReport) bool { return t.reason == reported.Reason && t.words == reported.Message })
		if at < 0 {
			at, all = len(all), append(all, &healthReport{reason: reported.Reason, words: reported.Message})
		}
		all[at].servers = append(all[at].servers, server.Name)
	}
	if len(all) == 0 {
		return nil
	}
	worst := slices.MinFunc(all, func(a, b *healthReport) int {
		if (a.reason == v1alpha1.ReasonStorageFailing) != (b.reason == v1alpha1.ReasonStorageFailing) {
			if a.reason == v1alpha1.ReasonStorageFailing {
				return -1
			}
			return 1
		}
		if len(a.servers) != len(b.servers) {
			return len(b.servers) - len(a.servers)
		}
		return strings.Compare(a.words, b.words)
	})
	if len(worst.servers) == live {
		worst.servers = nil
	}
	return worst
}

// condition returns the condition StorageAvailable for the report.
func (t *healthReport) condition(fileSystem, used string) metav1.Condition {
	by := ""
	if len(t.servers) > 0 {
		by = " to " + conditions.List(t.servers, maxNamed)
	}
	if t.reason == v1alpha1.ReasonStorageFailing {
		return conditions.False(v1alpha1.FileServerStorageAvailable, t.reason, fmt.Sprintf("Ceph file system %s is failing%s: %s", fileSystem, by, t.words))
	}
	return conditions.True(v1alpha1.FileServerStorageAvailable, v1alpha1.ReasonStorageDegraded, fmt.Sprintf("%s; Ceph reports%s: %s", used, by, t.words))
}

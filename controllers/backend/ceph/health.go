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

// heard is what data servers say of the Ceph cluster's health.
type heard struct {
	reason  string
	words   string
	servers []string
}

// health is the worst that data servers say of the cluster, nil if they say nothing, or that it is well. Of one that is away the last
// word is old, and does not count. Ceph says the same to all; where they differ one of them can't reach it, or has heard it first.
func (s *Storage) health(replicas int32) *heard {
	var all []*heard
	live := 0
	for ordinal := range replicas {
		server := s.DataServers[naming.DataServer(s.FileServer.Name, ordinal)]
		said := meta.FindStatusCondition(server.Status.Conditions, internalv1.StorageHealthy)
		if said == nil || server.Status.Unreachable.SeenBy != "" || !conditions.IsTrue(server.Status.Conditions, v1alpha1.ConditionReady) {
			continue
		}
		live++
		if said.Reason == v1alpha1.ReasonReady {
			continue
		}
		at := slices.IndexFunc(all, func(t *heard) bool { return t.reason == said.Reason && t.words == said.Message })
		if at < 0 {
			at, all = len(all), append(all, &heard{reason: said.Reason, words: said.Message})
		}
		all[at].servers = append(all[at].servers, server.Name)
	}
	if len(all) == 0 {
		return nil
	}
	worst := slices.MinFunc(all, func(a, b *heard) int {
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

// condition says it.
func (t *heard) condition(fileSystem, used string) metav1.Condition {
	by := ""
	if len(t.servers) > 0 {
		by = " to " + conditions.List(t.servers, maxNamed)
	}
	if t.reason == v1alpha1.ReasonStorageFailing {
		return conditions.False(v1alpha1.FileServerStorageAvailable, t.reason, fmt.Sprintf("Ceph file system %s is failing%s: %s", fileSystem, by, t.words))
	}
	return conditions.True(v1alpha1.FileServerStorageAvailable, v1alpha1.ReasonStorageDegraded, fmt.Sprintf("%s; Ceph says%s: %s", used, by, t.words))
}

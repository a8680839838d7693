package failover

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// Steps of a failover, in their order.
const (
	detected = "reported silent"
	asked    = "fence requested"
	fenced   = "fenced"
	deleted  = "pod deleted"
	led      = "its Service leads elsewhere"
	bound    = "next pod has a node"
	started  = "its process starts"
	ready    = "it is ready"
	serving  = "it serves"
	graceEnd = "grace has ended"
)

// steps is when each step of a failover was seen first.
type steps struct {
	server string
	old    types.UID

	mu   sync.Mutex
	at   map[string]time.Time
	next types.UID
}

// watchSteps watches the failover of a data server whose pod is old.
func (w *world) watchSteps(ctx context.Context, server string, old types.UID) *steps {
	s := &steps{server: server, old: old, at: map[string]time.Time{}}
	for _, list := range []client.ObjectList{&internalv1.DataServerList{}, &internalv1.StewardList{}, &corev1.PodList{}, &discoveryv1.EndpointSliceList{}} {
		go func() {
			for ctx.Err() == nil {
				events, err := w.api.Watch(ctx, list, client.InNamespace(kubeNamespace))
				if err != nil {
					pause(ctx)
					continue
				}
				for event := range events.ResultChan() {
					s.see(event)
				}
			}
		}()
	}
	return s
}

func (s *steps) reach(step string, is bool) {
	if _, known := s.at[step]; is && !known {
		s.at[step] = time.Now()
	}
}

func (s *steps) see(event watch.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch object := event.Object.(type) {
	case *internalv1.Steward:
		s.reach(asked, slices.ContainsFunc(object.Spec.Fences, func(f internalv1.PodFence) bool { return f.PodUID == string(s.old) }))
		s.reach(fenced, slices.ContainsFunc(object.Status.Fences, func(f internalv1.PodFenceAnswer) bool { return f.PodUID == string(s.old) && f.Time != nil }))
	case *discoveryv1.EndpointSlice:
		// That of Kubernetes: the operator's is for when no pod is ready.
		isOf := object.Labels[discoveryv1.LabelServiceName] == s.server && object.Labels[discoveryv1.LabelManagedBy] != v1alpha1.EndpointSlicesManagedBy
		leads := slices.ContainsFunc(object.Endpoints, func(e discoveryv1.Endpoint) bool { return e.TargetRef != nil && e.TargetRef.UID == s.old })
		s.reach(led, isOf && !leads)
	case *corev1.Pod:
		if object.Name != s.server {
			return
		}
		if object.UID == s.old {
			s.reach(deleted, event.Type == watch.Deleted)
			return
		}
		s.next = object.UID
		s.reach(bound, object.Spec.NodeName != "")
		s.reach(ready, slices.ContainsFunc(object.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }))
	case *internalv1.DataServer:
		if object.Name != s.server {
			return
		}
		s.reach(detected, object.Status.Unreachable.SinceTime != nil)
		if s.next != "" && object.Status.PodUID == string(s.next) {
			s.reach(serving, meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.ConditionReady))
			_, serves := s.at[serving]
			s.reach(graceEnd, serves && meta.IsStatusConditionTrue(object.Status.Conditions, internalv1.GraceEnded))
		}
	}
}

// when is when a step was reached; in the far future if it is not.
func (s *steps) when(step string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, is := s.at[step]; is {
		return at
	}
	return time.Now().Add(time.Hour)
}

// times are all steps that were reached, with the seconds since a moment.
func (s *steps) times(since time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.SortedFunc(maps.Keys(s.at), func(a, b string) int { return s.at[a].Compare(s.at[b]) })
	for i, name := range names {
		names[i] = name + " " + seconds(s.at[name].Sub(since))
	}
	return strings.Join(names, ", ")
}

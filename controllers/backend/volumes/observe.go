package volumes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/internal/naming"
)

// Observe reads the StorageClasses, the claims, and of data servers that do not answer the volumes.
func (Backend) Observe(ctx context.Context, from backendapi.Readers, observation backendapi.Observation) (backendapi.Storage, error) {
	s := &Storage{Observation: observation}
	var classes storagev1.StorageClassList
	if err := from.Cached.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading StorageClasses: %w", err)
	}
	// The list's items are the list's own, so they may be sorted where they are.
	slices.SortFunc(classes.Items, func(a, b storagev1.StorageClass) int { return strings.Compare(a.Name, b.Name) })
	s.Classes = classes.Items
	var claims corev1.PersistentVolumeClaimList
	name := observation.FileServer.Name
	if err := from.Cached.List(ctx, &claims, client.InNamespace(observation.FileServer.Namespace), index.OfFileServer(name),
		client.MatchingLabels(naming.SelectDataServers(name))); err != nil {
		return nil, fmt.Errorf("reading PersistentVolumeClaims: %w", err)
	}
	s.All = make(map[string]corev1.PersistentVolumeClaim, len(claims.Items))
	for i := range claims.Items {
		s.All[claims.Items[i].Name] = claims.Items[i]
	}
	if err := s.readUnmarked(ctx, from.Live); err != nil {
		return nil, fmt.Errorf("reading PersistentVolumeClaims: %w", err)
	}
	if err := s.readPinned(ctx, from.Live); err != nil {
		return nil, fmt.Errorf("reading PersistentVolumes: %w", err)
	}
	if err := s.readAttached(ctx, from.Live); err != nil {
		return nil, err
	}
	return s, nil
}

// readUnmarked finds claims that the cache does not have although their pods were made: a StatefulSet takes a claim of the right name as it is.
func (s *Storage) readUnmarked(ctx context.Context, live client.Reader) error {
	s.Unmarked = map[string]bool{}
	if s.StatefulSet == nil {
		return nil
	}
	for ordinal := range s.StatefulSet.Status.Replicas {
		for volume := range perServer(s.FileServer) {
			key := types.NamespacedName{Namespace: s.FileServer.Namespace, Name: naming.VolumeClaim(s.FileServer.Name, ordinal, volume)}
			if _, ok := s.All[key.Name]; ok {
				continue
			}
			var claim corev1.PersistentVolumeClaim
			switch err := live.Get(ctx, key, &claim); {
			case apierrors.IsNotFound(err):
			case err != nil:
				return err
			default:
				// It may have been made a moment ago, so that the cache has it soon.
				s.Unmarked[key.Name] = !s.isMarked(&claim)
			}
		}
	}
	return nil
}

// isMarked tells whether the cache finds a claim, and the applier may change it.
func (s *Storage) isMarked(claim *corev1.PersistentVolumeClaim) bool {
	for label, value := range s.marks() {
		if claim.Labels[label] != value {
			return false
		}
	}
	return claim.Annotations[v1alpha1.OwnerAnnotation] == s.owner()
}

// readPinned finds out which data servers, of those that do not answer or are on closed nodes, have a volume that only one node can use.
// Volumes of claims are not in the cache, and this is rare.
func (s *Storage) readPinned(ctx context.Context, live client.Reader) error {
	s.Pinned = map[string]bool{}
	for name := range s.DataServers {
		dataServer := s.DataServers[name]
		ordinal, ok := naming.DataServerOrdinal(s.FileServer.Name, name)
		if !ok || dataServer.Status.Unreachable.SeenBy == "" && !s.ClosedNodes[dataServer.Status.NodeName] {
			continue
		}
		for volume := range dataServer.Spec.Volumes {
			claim, ok := s.All[naming.VolumeClaim(s.FileServer.Name, ordinal, volume)]
			if !ok || claim.Spec.VolumeName == "" {
				continue
			}
			var pv corev1.PersistentVolume
			if err := live.Get(ctx, types.NamespacedName{Name: claim.Spec.VolumeName}, &pv); err != nil {
				if apierrors.IsNotFound(err) {
					continue
				}
				return err
			}
			s.Pinned[name] = s.Pinned[name] || isPinned(&pv) || s.noOtherNode(&pv, dataServer.Status.NodeName)
		}
	}
	return nil
}

// noOtherNode tells whether no node that exists but one can use a volume: drivers of local disks have keys of their own in node affinities.
func (s *Storage) noOtherNode(pv *corev1.PersistentVolume, name string) bool {
	return pv.Spec.NodeAffinity != nil && len(s.Nodes) > 0 && name != "" &&
		!slices.ContainsFunc(s.Nodes, func(node corev1.Node) bool { return node.Name != name && canUse(&node, pv) })
}

// isPinned tells whether a volume can be used on one node only, as far as its node affinity says.
func isPinned(pv *corev1.PersistentVolume) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return false
	}
	terms := pv.Spec.NodeAffinity.Required.NodeSelectorTerms
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(slices.Concat(term.MatchExpressions, term.MatchFields), func(r corev1.NodeSelectorRequirement) bool {
			named := r.Key == corev1.LabelHostname || r.Key == "metadata.name"
			return named && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1
		})
	})
}

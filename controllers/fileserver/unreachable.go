package fileserver

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// readPinned finds out which data servers, of those that do not answer, have a volume that only one node can use. Volumes
// of claims are not in the cache, and this is rare.
func (o *observed) readPinned(ctx context.Context, live client.Reader) error {
	o.pinned = map[string]bool{}
	for name := range o.dataServers {
		dataServer := o.dataServers[name]
		ordinal, ok := naming.DataServerOrdinal(o.fileServer.Name, name)
		if !ok || dataServer.Status.Unreachable.SeenBy == "" {
			continue
		}
		for volume := range dataServer.Spec.Volumes {
			claim, ok := o.claims[naming.VolumeClaim(o.fileServer.Name, ordinal, volume)]
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
			o.pinned[name] = o.pinned[name] || isPinned(&pv)
		}
	}
	return nil
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

// unreachableWaits says since when a data server does not answer, where it ran, and what it waits for.
func unreachableWaits(unreachable internalv1.Unreachable, nodeName string, nodes []corev1.Node, pinned bool) string {
	text := "does not answer since " + unreachable.SinceTime.UTC().Format(time.RFC3339)
	if nodeName == "" {
		return text
	}
	at := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == nodeName })
	switch {
	case at >= 0 && nodeReady(&nodes[at]):
		return fmt.Sprintf("%s; node %s, where it runs, is Ready so far: it waits for ganesha there, or for that node's network", text, nodeName)
	case pinned:
		return fmt.Sprintf("%s; node %s is %s, and its volumes are on that node: it waits for node %s to come back", text, nodeName, nodeState(at), nodeName)
	}
	return fmt.Sprintf("%s; node %s is %s: it waits for that node, or, once the machine is known to be off, for you to let it start elsewhere: "+
		"kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", text, nodeName, nodeState(at), nodeName)
}

func (o *observed) isNodeReady(name string) bool {
	return slices.ContainsFunc(o.nodes, func(n corev1.Node) bool { return n.Name == name && nodeReady(&n) })
}

func nodeState(at int) string {
	if at < 0 {
		return "gone"
	}
	return "not ready"
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

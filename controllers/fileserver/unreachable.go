package fileserver

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// unreachableWaits says since when a data server does not answer, where it ran, and what it waits for.
func unreachableWaits(unreachable internalv1.Unreachable, nodeName string, nodes []corev1.Node, pinned, failsOver bool) string {
	text := "does not answer since " + unreachable.SinceTime.UTC().Format(time.RFC3339)
	if nodeName == "" {
		return text
	}
	at := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == nodeName })
	switch {
	case at >= 0 && nodeReady(&nodes[at]) && pinned:
		return fmt.Sprintf("%s; node %s, which has its volumes, is Ready so far: it waits for ganesha there, or for that node to come back", text, nodeName)
	case at >= 0 && nodeReady(&nodes[at]):
		return fmt.Sprintf("%s; node %s, where it runs, is Ready so far: it waits for ganesha there, or for that node's network", text, nodeName)
	case failsOver:
		return fmt.Sprintf("%s; node %s is %s", text, nodeName, nodeState(at))
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

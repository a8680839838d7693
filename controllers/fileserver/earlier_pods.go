package fileserver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/controllers/desired"
)

// Pods have the labels of their FileServer's name, and one that was deleted may have left some: Kubernetes removes them after what they belong to, and on
// a lost node only when that is back. Whose they are is not known from their owners: a ReplicaSet or StatefulSet that is gone may have been this
// FileServer's, deleted by a user. But they mount certificates that are named by the UID of the FileServer for which they were made.
//
// Pods of a StatefulSet that this FileServer has taken over, after a restore from a backup for example, have such names, too, until they are replaced. They
// are this one's, and are replaced one after the other, as after any change of their template. Namespace servers of a Deployment that was taken over are
// left out for the moments until the next ones run: data servers with this FileServer's certificates do nothing for them. A steward's pod mounts no
// certificates. It is only looked at to move it off a lost node, and that is right for any.

// isEarlier tells whether a pod of a server is one that an earlier FileServer of the name has left.
func (o *observed) isEarlier(pod *corev1.Pod) bool {
	isTakenOver := o.statefulSet != nil && metav1.IsControlledBy(pod, o.statefulSet)
	return !isTakenOver && desired.IsOfAnother(pod, o.fileServer)
}

// ofThis leaves out the pods of an earlier FileServer.
func (o *observed) ofThis(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return o.isEarlier(&pod) })
}

// takePods are the pods of data servers by name, and the nodes of those that are in the way of one.
func (o *observed) takePods(pods []corev1.Pod) {
	o.pods = byName(o.ofThis(pods), func(p *corev1.Pod) string { return p.Name })
	o.inTheWay = map[string]string{}
	for i := range pods {
		if pod := &pods[i]; o.isEarlier(pod) {
			o.inTheWay[pod.Name] = pod.Spec.NodeName
		}
	}
}

// earlierWaits says that a data server has no pod because an earlier FileServer's has its name; "" if none has.
func (o *observed) earlierWaits(name string) string {
	node, is := o.inTheWay[name]
	const text = "its pod is made when the one of an earlier FileServer of this name is gone"
	switch {
	case !is:
		return ""
	case !slices.ContainsFunc(o.nodes, func(n corev1.Node) bool { return n.Name == node && !nodeReady(&n) }):
		return text // Of a node that is gone Kubernetes removes it.
	}
	return fmt.Sprintf("%[1]s; node %[2]s, where that is, is not ready: it waits for that node, or, once the machine is known to be off, for you to let it go: "+
		"kubectl taint node %[2]s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", text, node)
}

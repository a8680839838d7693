package fleet

import corev1 "k8s.io/api/core/v1"

// PortOf is the number of a container port by its name, or otherwise if the pod has none of that name. A data server on its
// node's network has other ports than one with a network of its own, and during a rollout there are both.
func PortOf(pod *corev1.Pod, name string, otherwise int32) int32 {
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == name {
				return port.ContainerPort
			}
		}
	}
	return otherwise
}

package fleet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestThePortOfAPodIsFoundByItsName(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "sidecar"}, {Name: "server", Ports: []corev1.ContainerPort{{Name: "nfs", ContainerPort: 20490}, {Name: "manager", ContainerPort: 20493}}},
	}}}
	if got := PortOf(pod, "manager", 9588); got != 20493 {
		t.Error(got)
	}
	if got := PortOf(&corev1.Pod{}, "manager", 9588); got != 9588 {
		t.Error(got)
	}
}

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClientLabel marks client pods; the scheduler puts them on different nodes.
const ClientLabel = "howdah.io/test-client"

// ClientPod describes a pod that mounts claims.
type ClientPod struct {
	Name string
	// Claims maps mount paths to claims.
	Claims map[string]string
	// NodeSelector restricts the nodes; nil means any that has no other client pod.
	NodeSelector map[string]string
	// Beside: the pod may share its node with client pods that want theirs for themselves. It does not have ClientLabel.
	Beside bool
	// Command is what the pod runs, once: it is not restarted. By default it sleeps.
	Command []string
}

// RunClient creates a client pod and does not wait for it.
func (c *Cluster) RunClient(ctx context.Context, want ClientPod) error {
	grace, token := int64(1), false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: want.Name, Namespace: c.Namespace, Labels: map[string]string{ClientLabel: "true"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &token,
			NodeSelector:                  want.NodeSelector,
			Containers: []corev1.Container{{
				Name:            "client",
				Image:           c.ClientImage,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Command:         []string{"sleep", "infinity"},
			}},
		},
	}
	if want.NodeSelector == nil {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels},
				TopologyKey:   corev1.LabelHostname,
			}},
		}}
	}
	if want.Beside {
		pod.Labels = nil
	}
	if want.Command != nil {
		pod.Spec.Containers[0].Command = want.Command
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	for path, claim := range want.Claims {
		name := fmt.Sprintf("volume-%d", len(pod.Spec.Volumes))
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
	}
	return c.Create(ctx, pod)
}

// WaitPodReady waits until a pod is Ready; its error has the pod's state.
func (c *Cluster) WaitPodReady(ctx context.Context, name string) error {
	return WaitFor(ctx, "pod "+name, func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := c.Get(ctx, name, pod); err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("phase %s: %s", pod.Status.Phase, waitingFor(pod))
	})
}

func waitingFor(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil {
			return waiting.Reason + ": " + waiting.Message
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Status == corev1.ConditionFalse && condition.Message != "" {
			return condition.Message
		}
	}
	return "no reason given"
}

// NFSClaim makes a PersistentVolume of an NFS address and path and a claim bound to it, both called name.
// Tests use it for mounts that no share has a ready-made claim for: the whole tree, or one data server.
// PersistentVolumes have no namespace; the caller removes it with DeleteNFSClaim.
func (c *Cluster) NFSClaim(ctx context.Context, name, address, path string, options ...string) error {
	capacity := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes, noClass := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, ""
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: c.volumeName(name)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      capacity,
			AccessModes:                   modes,
			MountOptions:                  options,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: c.Namespace, Name: name},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: address, Path: path}},
		},
	}
	if err := c.Create(ctx, volume); err != nil {
		return err
	}
	return c.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      modes,
			StorageClassName: &noClass,
			VolumeName:       volume.Name,
			Resources:        corev1.VolumeResourceRequirements{Requests: capacity},
		},
	})
}

// DeleteNFSClaim removes the PersistentVolume that NFSClaim made.
func (c *Cluster) DeleteNFSClaim(ctx context.Context, name string) error {
	return c.Delete(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: c.volumeName(name)}})
}

func (c *Cluster) volumeName(claim string) string { return c.Namespace + "-" + claim }

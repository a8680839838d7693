package fileserver

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/rollout"
)

// images are the pods that have nodes pull the image of data servers, and when the Deployment of each was made, by its name.
type images struct {
	pods []corev1.Pod
	made map[string]time.Time
}

func (o *observed) readImages(ctx context.Context, c client.Reader, in client.InNamespace) error {
	selector := client.MatchingLabels(naming.SelectImages(o.fileServer.Name))
	var pods corev1.PodList
	if err := c.List(ctx, &pods, in, index.OfFileServer(o.fileServer.Name), selector); err != nil {
		return err
	}
	var deployments appsv1.DeploymentList
	if err := c.List(ctx, &deployments, in, index.OfFileServer(o.fileServer.Name), selector); err != nil {
		return err
	}
	o.images = images{pods: pods.Items, made: map[string]time.Time{}}
	for _, deployment := range withoutLeftovers(deployments.Items, o.fileServer) {
		o.images.made[deployment.Name] = deployment.CreationTimestamp.Time
	}
	return nil
}

// withImage adds to what is known of a data server how far its node is with the image of its next pod.
func (o *observed) withImage(s rollout.Server, pod *corev1.Pod) rollout.Server {
	image, node := imageOf(&o.statefulSet.Spec.Template.Spec), pod.Spec.NodeName
	if !s.Outdated || imageOf(&pod.Spec) == image || node == "" {
		return s
	}
	s.NewImage = true
	s.Pull, s.Pulling = o.images.pull(naming.Image(o.fileServer.Name, node, image), node, image, o.now)
	return s
}

// pull is how far a node is with an image for whose sake a Deployment is made. A pod that no node takes, or that its kubelet refuses or evicts, is no
// reason to wait: it only spares the data server's clients the pull.
func (i images) pull(deployment, node, image string, now time.Time) (rollout.Pull, string) {
	waits := fmt.Sprintf("node %s pulls image %s before the pod is stopped", node, image)
	refused := false
	for j := range i.pods {
		pod := &i.pods[j]
		if pod.DeletionTimestamp != nil || pod.Spec.NodeName != node || imageOf(&pod.Spec) != image {
			continue
		}
		for k := range pod.Status.ContainerStatuses {
			status := &pod.Status.ContainerStatuses[k]
			waiting := status.State.Waiting
			switch {
			case status.ImageID != "" || status.State.Running != nil || status.State.Terminated != nil || status.LastTerminationState.Terminated != nil:
				return rollout.Pulled, ""
			case waiting == nil:
			case slices.Contains(unpullable, waiting.Reason):
				return rollout.CannotPull, podWaits(pod)
			case slices.Contains(hopeless, waiting.Reason):
				return rollout.Pulled, "" // It can't run, which the data server's pod shows better.
			}
		}
		if pod.Status.Phase == corev1.PodFailed { // It stays, beside those that its ReplicaSet makes instead.
			refused = true
			continue
		}
		return rollout.NotPulled, waits
	}
	if refused {
		return rollout.Pulled, ""
	}
	if made, is := i.made[deployment]; is && now.Sub(made) > placeLimit {
		return rollout.Pulled, ""
	}
	return rollout.NotPulled, waits
}

// nodeToPull is the node that must pull the image of the data servers; "" if none must.
func (o *observed) nodeToPull(plan rollout.Plan) string {
	if pod := o.podOf(plan.Pull); pod != nil {
		return pod.Spec.NodeName
	}
	return ""
}

package fileserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/networkfence"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/fleet"
)

// taintShutdown is set by the node lifecycle controller of cloud providers (k8s.io/cloud-provider/api, TaintNodeShutdown): the cloud
// says that the machine is stopped. It is taken away when the node is Ready again, and not before.
const taintShutdown = "node.cloudprovider.kubernetes.io/shutdown"

// failsOverByPower reports whether a data server may start elsewhere once its machine is known to be off.
func failsOverByPower(fs *v1alpha1.FileServer) bool {
	return fs.Spec.Failover.Fencing == v1alpha1.FailoverFencingPower
}

// failoverNode is what a Node itself says.
func failoverNode(node *corev1.Node) failover.Node {
	seen := failover.Node{
		Ready: nodeReady(node), BootID: node.Status.NodeInfo.BootID, UID: string(node.UID), Silent: nodeSilent(node), Off: saysOff(node),
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP || address.Type == corev1.NodeExternalIP {
			seen.Addresses = append(seen.Addresses, address.Address)
		}
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			seen.Reported = c.LastHeartbeatTime.Time
			if seen.Ready {
				seen.ReadySince = c.LastTransitionTime.Time
			}
		}
	}
	return seen
}

// nodeSilent reports whether Kubernetes has heard nothing of a node's kubelet for the grace period.
func nodeSilent(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}

// saysOff is who says that the machine of a node is off. Where both do, Kubernetes does most of the work.
func saysOff(node *corev1.Node) failover.Evidence {
	has := func(key string) bool {
		return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	}
	switch {
	case has(corev1.TaintNodeOutOfService):
		return failover.OutOfServiceTaint
	case has(taintShutdown):
		return failover.ShutdownTaint
	}
	return ""
}

// servedBoot is on which boot of which node a data server served last, while no taint was there which says that it is off. Taints have no
// time, and one may be there from an earlier boot: then it says nothing about this one.
func (o *observed) servedBoot(name string) v1alpha1.ServedBoot {
	before := o.reported(name).ServedBoot
	pod := o.podOf(name)
	if !failsOverByPower(o.fileServer) || pod == nil || pod.DeletionTimestamp != nil || o.stateOf(name) != fleet.Serving {
		return before
	}
	at := slices.IndexFunc(o.nodes, func(n corev1.Node) bool { return n.Name == pod.Spec.NodeName })
	if at < 0 {
		return before
	}
	node := &o.nodes[at]
	if !nodeReady(node) || saysOff(node) != "" || node.UID == "" || node.Status.NodeInfo.BootID == "" {
		return before
	}
	return v1alpha1.ServedBoot{PodUID: string(pod.UID), NodeUID: string(node.UID), BootID: node.Status.NodeInfo.BootID}
}

// reported is what the status has of a data server.
func (o *observed) reported(name string) v1alpha1.FileServerServerStatus {
	for i := range o.fileServer.Status.Servers {
		if o.fileServer.Status.Servers[i].Name == name {
			return o.fileServer.Status.Servers[i]
		}
	}
	return v1alpha1.FileServerServerStatus{}
}

// isUnderWay reports whether a failover by power is neither done nor given up.
func isUnderWay(record *v1alpha1.ServerFailover) bool {
	switch record.Evidence {
	case v1alpha1.FailoverEvidenceOutOfServiceTaint, v1alpha1.FailoverEvidenceShutdownTaint, v1alpha1.FailoverEvidenceNetworkFence:
		return record.ServingTime == nil && record.StoppedTime == nil
	}
	return false
}

// fencesByPower are the failovers that are under way, as the status has them: nothing is done that is not written there first.
func fencesByPower(fs *v1alpha1.FileServer) (fences []failover.Fence) {
	for i := range fs.Status.Servers {
		server := &fs.Status.Servers[i]
		record := &server.LastFailover
		if !isUnderWay(record) || server.ServedBoot.PodUID != record.PodUID {
			continue
		}
		fences = append(fences, failover.Fence{
			Server: server.Name, PodUID: record.PodUID, Node: record.NodeName, NodeUID: server.ServedBoot.NodeUID, BootID: server.ServedBoot.BootID,
			Since: timeOf(record.SinceTime), Requested: timeOf(record.DetectedTime), Fenced: timeOf(record.FencedTime), Deleted: timeOf(record.PodDeletedTime),
			Message: record.Message, Evidence: failover.Evidence(record.Evidence),
		})
	}
	return fences
}

// lostServers are the data servers whose volumes must be known: of those that do not answer, and of those that are started elsewhere.
func (o *observed) lostServers() map[string]bool {
	lost := map[string]bool{}
	if !failsOverByPower(o.fileServer) || !o.mayFailOver {
		return lost // Nor may it read VolumeAttachments.
	}
	for name := range o.dataServers {
		record := o.lastFailover(name)
		if o.dataServers[name].Status.Unreachable.SeenBy != "" || isUnderWay(&record) {
			lost[name] = true
		}
	}
	return lost
}

// readNetworkFences reads what csi-addons knows of fences. It reads past the cache, and nothing while all data servers answer.
func (o *observed) readNetworkFences(ctx context.Context, live client.Reader) (err error) {
	if len(o.lostServers()) > 0 {
		o.networkFences, err = networkfence.Read(ctx, live)
	}
	return err
}

// failOverByPower deletes pods on machines that are off, and the attachments of their volumes. What the cache says of a machine may be
// old, so each Node is read again right before: the machine may just have been switched on. So are the fences.
func (r *Reconciler) failOverByPower(ctx context.Context, o *observed, plan failover.Plan) error {
	var faults []error
	log := ctrl.LoggerFrom(ctx)
	for _, pod := range plan.Delete {
		isOff, err := r.isStillOff(ctx, o, plan, pod.Name)
		if err == nil && isOff {
			log.Info("deleting the pod of a lost data server, whose machine is off or refused by the storage", "pod", pod.Name, "uid", pod.UID, "node", pod.Node)
			err = r.deletePod(ctx, o, pod, client.GracePeriodSeconds(0))
		}
		faults = append(faults, err)
	}
	for _, attachment := range plan.Detach {
		isOff, err := r.isStillOff(ctx, o, plan, o.serverAttached(plan, attachment))
		if err == nil && isOff {
			log.Info("deleting a VolumeAttachment to a machine that is off or refused by the storage", "volumeAttachment", attachment.Name, "uid", attachment.UID, "node", attachment.Node)
			err = r.deleteAttachment(ctx, attachment)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// serverAttached is the data server of an attachment that is to be deleted.
func (o *observed) serverAttached(plan failover.Plan, attachment failover.Attachment) string {
	for i := range plan.Fences {
		for _, volume := range o.storage.Volumes(plan.Fences[i].Server) {
			if slices.ContainsFunc(volume.Attachments, func(a failover.Attachment) bool { return a.UID == attachment.UID }) {
				return plan.Fences[i].Server
			}
		}
	}
	return ""
}

// isStillOff asks the API server. A machine that is back is no error: the change of its Node brings the next pass.
func (r *Reconciler) isStillOff(ctx context.Context, o *observed, plan failover.Plan, server string) (bool, error) {
	fence := newestFence(server, plan.Fences)
	if fence == nil {
		return false, nil
	}
	var object corev1.Node
	err := r.Live.Get(ctx, client.ObjectKey{Name: fence.Node}, &object)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("node %s: %w", fence.Node, err)
	}
	exists, node := err == nil, failoverNode(&object)
	if exists && node.Off == "" {
		fences, err := networkfence.Read(ctx, r.Live)
		if err != nil {
			return false, err
		}
		node = fences.Judge(fence.Node, node, o.storage.Volumes(server))
	}
	isOff, refusal := failover.IsOff(*fence, node, exists)
	if !isOff {
		ctrl.LoggerFrom(ctx).Info("the failover stops: the machine is not known to be off or refused any more", "node", fence.Node, "why", refusal.Message)
	}
	return isOff, nil
}

// deleteAttachment deletes one VolumeAttachment as it was read, and no later one of its name.
func (r *Reconciler) deleteAttachment(ctx context.Context, attachment failover.Attachment) error {
	uid, version := types.UID(attachment.UID), attachment.Version
	object := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachment.Name}}
	err := r.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting VolumeAttachment %s to lost node %s: %w", attachment.Name, attachment.Node, err)
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

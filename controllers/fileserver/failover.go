package fileserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// asksForFailover reports whether the specification asks for failover to other nodes.
func asksForFailover(fs *v1alpha1.FileServer) bool {
	return fs.Spec.Failover.Fencing == v1alpha1.FailoverFencingStorage || failsOverByPower(fs)
}

// failoverInput is what the decision about lost nodes needs. Requests and answers are in the Steward, the history is in the status.
func (o *observed) failoverInput() failover.Input {
	fs := o.fileServer
	in := failover.Input{
		Now:     o.now,
		Allowed: o.mayFailOver && asksForFailover(fs) && !conditions.IsPaused(fs),
		ByPower: failsOverByPower(fs),
		Nodes:   map[string]failover.Node{},
		Leader:  o.leader.reports(),
	}
	for i := range o.nodes {
		node := &o.nodes[i]
		seen := failoverNode(node)
		seen.Renewed, seen.Closed = o.renewed[node.Name], o.closedNodes[node.Name]
		seen.KeptOff, seen.Acknowledged = o.isKeptOff(node.Name)
		if ahead := o.clocksAhead[node.Name]; ahead.Abs() > exact {
			for _, written := range []*time.Time{&seen.ReadySince, &seen.Acknowledged} {
				if !written.IsZero() {
					*written = written.Add(-ahead) // The kubelet has written it by its own clock.
				}
			}
		}
		in.Nodes[node.Name] = seen
	}
	for name := range o.dataServers {
		in.Servers = append(in.Servers, o.failoverServer(name))
	}
	slices.SortFunc(in.Servers, func(a, b failover.Server) int { return cmp.Compare(a.Name, b.Name) })
	if in.ByPower {
		in.Fences, in.Storage = fencesByPower(fs), o.networkFences
	}
	for i := range o.namespacePods {
		in.NamespaceServers = append(in.NamespaceServers, failoverPod(&o.namespacePods[i]))
	}
	if in.ByPower {
		return in
	}
	in.Allowed = in.Allowed && o.steward != nil
	for i := range o.stewardPods {
		if pod := failoverPod(&o.stewardPods[i]); in.Steward.UID == "" || !pod.Ending {
			in.Steward = pod
		}
	}
	if o.steward != nil {
		in.Fences = fencesOf(o.steward)
	}
	for i := range in.Fences {
		if last := o.lastFailover(in.Fences[i].Server); last.PodUID == in.Fences[i].PodUID {
			in.Fences[i].Deleted = timeOf(last.PodDeletedTime)
		}
	}
	return in
}

// isKeptOff tells whether a pod keeps others off a node, and when the kubelet there took note of it: nothing but a kubelet sets its startTime.
func (o *observed) isKeptOff(node string) (is bool, acknowledged time.Time) {
	for i := range o.lostNodePods {
		if pod := &o.lostNodePods[i]; pod.Spec.NodeName == node && metav1.IsControlledBy(pod, o.fileServer) {
			return true, timeOf(pod.Status.StartTime)
		}
	}
	return false, time.Time{}
}

func (o *observed) failoverServer(name string) failover.Server {
	dataServer, last := o.dataServers[name], o.lastFailover(name)
	server := failover.Server{
		Name: name, Started: dataServer.Status.ObservedGeneration != nil, Serving: o.stateOf(name) == fleet.Serving, Count: last.Count,
	}
	if pod := o.podOf(name); pod != nil {
		server.Pod = failoverPod(pod)
	}
	if unreachable := dataServer.Status.Unreachable; unreachable.SeenBy != "" && unreachable.SinceTime != nil {
		server.Since, server.Reporter = o.leader.corrected(unreachable), unreachable.SeenBy
	}
	if ready := meta.FindStatusCondition(dataServer.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		server.Reported = ready.LastTransitionTime.Time
	}
	if last.FencedTime != nil { // A request that was withdrawn has cost nothing.
		server.Last = timeOf(last.DetectedTime)
	}
	if failsOverByPower(o.fileServer) {
		boot := o.servedBoot(name)
		server.Boot = failover.Boot{PodUID: boot.PodUID, NodeUID: boot.NodeUID, BootID: boot.BootID}
		server.Pinned, server.Volumes = o.storage.IsPinned(name), o.storage.Volumes(name)
	}
	return server
}

func failoverPod(pod *corev1.Pod) failover.Pod {
	return failover.Pod{Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName, Ready: podReady(pod), Ending: pod.DeletionTimestamp != nil}
}

// lastFailover is the last failover of a data server that the status has.
func (o *observed) lastFailover(server string) v1alpha1.ServerFailover {
	return o.reported(server).LastFailover
}

// fencesOf joins requests with the steward's answers.
func fencesOf(steward *internalv1.Steward) []failover.Fence {
	fences := make([]failover.Fence, 0, len(steward.Spec.Fences))
	for i := range steward.Spec.Fences {
		request := &steward.Spec.Fences[i]
		fence := failover.Fence{
			Server: request.DataServerName, PodUID: request.PodUID, Node: request.NodeName, BootID: request.BootID, Message: request.Message,
		}
		if request.SinceTime != nil {
			fence.Since = request.SinceTime.Time
		}
		if request.RequestTime != nil {
			fence.Requested = request.RequestTime.Time
		}
		for j := range steward.Status.Fences {
			if answer := &steward.Status.Fences[j]; answer.PodUID == request.PodUID && answer.RequestTime.Equal(request.RequestTime) {
				fence.Fault, fence.Clients = answer.Fault, len(answer.Addresses)
				if answer.Time != nil {
					fence.Fenced = answer.Time.Time
				}
			}
		}
		fences = append(fences, fence)
	}
	return fences
}

// fencesInAPI are the requests as the Steward has them.
func fencesInAPI(fences []failover.Fence) []internalv1.PodFence {
	requests := make([]internalv1.PodFence, 0, len(fences))
	for i := range fences {
		fence := &fences[i]
		requests = append(requests, internalv1.PodFence{
			PodUID: fence.PodUID, DataServerName: fence.Server, NodeName: fence.Node, BootID: fence.BootID,
			SinceTime: &metav1.Time{Time: fence.Since}, RequestTime: &metav1.Time{Time: fence.Requested}, Message: fence.Message,
		})
	}
	slices.SortFunc(requests, func(a, b internalv1.PodFence) int { return cmp.Compare(a.PodUID, b.PodUID) })
	return requests
}

// carryOutFailover also finishes what a pause has interrupted: a data server that is fenced can't serve any more, and one whose fence is only
// requested is not to be fenced now.
func (r *Reconciler) carryOutFailover(ctx context.Context, o *observed, plan failover.Plan) error {
	if !conditions.IsPaused(o.fileServer) {
		return r.failOver(ctx, o, plan)
	}
	if o.steward == nil || len(o.steward.Spec.Fences)+len(o.lostNodePods) == 0 {
		return nil
	}
	withdrawn := o.steward.DeepCopy()
	withdrawn.Spec.Fences = slices.DeleteFunc(withdrawn.Spec.Fences, func(asked internalv1.PodFence) bool {
		return !slices.ContainsFunc(plan.Fences, func(stays failover.Fence) bool { return stays.PodUID == asked.PodUID })
	})
	if len(withdrawn.Spec.Fences) < len(o.steward.Spec.Fences) {
		patch := client.MergeFromWithOptions(o.steward, client.MergeFromWithOptimisticLock{})
		if err := r.Patch(ctx, withdrawn, patch, client.FieldOwner(FieldManager)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("withdrawing requests to fence lost data servers: %w", err)
		}
	}
	return r.failOver(ctx, o, plan)
}

// failOver keeps pods off lost nodes, and deletes what is lost there. The requests to fence are applied with the Steward.
func (r *Reconciler) failOver(ctx context.Context, o *observed, plan failover.Plan) error {
	if err := r.keepOffLostNodes(ctx, o, plan.KeepOff); err != nil {
		return err // Or the next pod may be placed on the lost node.
	}
	if failsOverByPower(o.fileServer) {
		return r.failOverByPower(ctx, o, plan)
	}
	var faults []error
	log := ctrl.LoggerFrom(ctx)
	for _, pod := range plan.Evict {
		log.Info("deleting a pod on a lost node, so that another one starts elsewhere", "pod", pod.Name, "node", pod.Node)
		faults = append(faults, r.deletePod(ctx, o, pod))
	}
	for _, pod := range plan.Delete {
		log.Info("deleting the pod of a lost data server, whose clients the storage refuses", "pod", pod.Name, "uid", pod.UID, "node", pod.Node)
		faults = append(faults, r.deletePod(ctx, o, pod, client.GracePeriodSeconds(0)))
	}
	return errors.Join(faults...)
}

// deletePod deletes one pod, and no later one of its name.
func (r *Reconciler) deletePod(ctx context.Context, o *observed, pod failover.Pod, options ...client.DeleteOption) error {
	uid := types.UID(pod.UID)
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.fileServer.Namespace, Name: pod.Name}}
	err := r.Delete(ctx, object, append(options, client.Preconditions{UID: &uid})...)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting pod %s on lost node %s: %w", pod.Name, pod.Node, err)
}

// keepOffLostNodes makes the pods that keep others off lost nodes, and removes those of nodes that are back.
func (r *Reconciler) keepOffLostNodes(ctx context.Context, o *observed, nodes []string) error {
	wanted := map[string]bool{}
	for _, node := range nodes {
		name := naming.LostNode(o.fileServer.Name, node)
		wanted[name] = true
		exists := slices.ContainsFunc(o.lostNodePods, func(p corev1.Pod) bool { return p.Name == name })
		isNode := slices.ContainsFunc(o.nodes, func(n corev1.Node) bool { return n.Name == node })
		if exists || !isNode {
			continue
		}
		err := client.IgnoreAlreadyExists(r.Create(ctx, desired.LostNodePod(o.fileServer, r.Images, node), client.FieldOwner(FieldManager)))
		switch {
		case err == nil:
		case o.closedNodes[node]:
			// A quota of pods must not keep a data server that is fenced from another node, once Kubernetes keeps pods off as well.
			ctrl.LoggerFrom(ctx).Info("can't keep pods off a lost node, which takes none anyway", "node", node, "err", err.Error())
		default:
			return fmt.Errorf("keeping pods off lost node %s: %w", node, err)
		}
	}
	for i := range o.lostNodePods {
		pod := &o.lostNodePods[i]
		if wanted[pod.Name] || !metav1.IsControlledBy(pod, o.fileServer) {
			continue
		}
		if err := r.deletePod(ctx, o, failoverPod(pod), client.GracePeriodSeconds(0)); err != nil {
			return err
		}
	}
	return nil
}

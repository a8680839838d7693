package failover

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// settle is the time between the deletion of a pod and that of its volumes' attachments: two seconds, and one because times in the API have no
	// fractions. A kubelet that booted just before has heard of the deletion by then. It starts no pod that is deleted, and mounts no volume whose
	// attachment is.
	settle = 3 * time.Second
	// look is how often volumes and Leases, which are not watched, are looked at while a data server does not answer.
	look = 5 * time.Second
	// detachLimit is how long a driver may take to detach before it is reported.
	detachLimit = time.Minute
)

// IsOff returns whether the machine of a lost data server is still known to be off, or refused by the storage, and if not, why. It is
// asked again, of the API server itself, right before anything is deleted.
func IsOff(fence Fence, node Node, exists bool) (bool, Refusal) {
	name := fence.Node
	switch {
	case !exists:
		return false, Refusal{NodeGone, fmt.Sprintf("Node %s is deleted, which does not say that the machine is off; Kubernetes deletes the pod within a minute, "+
			"and by default detaches its volumes 6 minutes later", name)}
	case node.Ready:
		return false, Refusal{NodeAlive, fmt.Sprintf("node %s is Ready so far", name)}
	case !node.Silent:
		return false, Refusal{NodeAlive, fmt.Sprintf("node %s is not ready, but its kubelet reports so", name)}
	case node.Off == "":
		doubt := ""
		if node.Doubt != "" {
			doubt = ", or refused by the storage (" + node.Doubt + ")"
		}
		return false, Refusal{PowerUnknown, fmt.Sprintf("it is not known whether the machine of node %s is off%s; once you know that it is: "+
			"kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", name, doubt, name)}
	case node.Off == OutOfServiceTaint && !isSameBoot(fence, node):
		return false, Refusal{EvidenceOutdated, fmt.Sprintf("%s may be about another boot of node %s than the one on which the pod served last, so Howdah does nothing; "+
			"Kubernetes itself evicts pods because of this taint", describe(node), name)}
	case !isSameBoot(fence, node):
		return false, Refusal{EvidenceOutdated, fmt.Sprintf("%s may be about another boot of node %s than the one on which the pod served last; once you know "+
			"that the machine is off: kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", describe(node), name, name)}
	}
	return true, Refusal{}
}

func isSameBoot(fence Fence, node Node) bool {
	return fence.BootID != "" && node.BootID == fence.BootID && node.UID == fence.NodeUID
}

// describe is the evidence for people.
func describe(node Node) string {
	switch node.Off {
	case OutOfServiceTaint:
		return "taint node.kubernetes.io/out-of-service"
	case ShutdownTaint:
		return "taint node.cloudprovider.kubernetes.io/shutdown"
	}
	return node.By
}

// judged is a node as it is for a data server: storages refuse it, or not, by the volumes.
func (p *planner) judged(name string, server Server) (Node, bool) {
	node, exists := p.Nodes[name]
	return p.Storage.Judge(name, node, server.Volumes), exists
}

// fenceByPower is the failover of a data server whose machine is off. It is written down before anything is done.
func (p *planner) fenceByPower(server Server) Fence {
	node, _ := p.judged(server.Pod.Node, server)
	state := "is off"
	if node.Off == NetworkFenced {
		state = "is refused by the storage"
	}
	return Fence{
		Server: server.Name, PodUID: server.Pod.UID, Node: server.Pod.Node, NodeUID: server.Boot.NodeUID, BootID: server.Boot.BootID,
		Since: server.Since, Requested: p.Now, Fenced: p.Now, Evidence: node.Off, Message: fmt.Sprintf(
			"namespace server %s has got no answer from %s for %d s; node %s %s: %s",
			server.Reporter, server.Name, int(p.Now.Sub(server.Since).Seconds()), server.Pod.Node, state, describe(node)),
	}
}

// continueByPower does the next step of a failover: it deletes the pod, then the attachments of its volumes. Each step needs that the
// machine is still known to be off, or refused: unlike on Ceph, nothing is fenced by Howdah, so what is may be lifted by others.
func (p *planner) continueByPower(fence Fence) {
	server, exists := p.server(fence.Server)
	node, nodeExists := p.judged(fence.Node, server)
	isOff, refusal := IsOff(fence, node, nodeExists)
	if isOff && !node.Closed {
		isOff, refusal = false, p.takesPods(fence.Node)
	}
	switch {
	case !exists:
	case server.Pod.UID == fence.PodUID:
		if p.Allowed && isOff && server.isUnreachable() {
			p.plan.Fences, p.plan.Delete = append(p.plan.Fences, fence), append(p.plan.Delete, server.Pod)
			p.again(time.Second)
		}
	case server.Serving || server.Pod.Node == fence.Node:
		// It is served elsewhere, or the machine was back in time.
	default:
		p.plan.Fences = append(p.plan.Fences, fence)
		p.detach(server, fence, node, isOff && p.Allowed, refusal)
	}
}

// detach has the volumes of a data server detached from the lost node.
func (p *planner) detach(server Server, fence Fence, node Node, may bool, refusal Refusal) {
	var left []string
	fault := ""
	// With that taint Kubernetes detaches by itself.
	if fence.Evidence == OutOfServiceTaint || node.Off == OutOfServiceTaint {
		may = false
	}
	isSettled := !fence.Deleted.IsZero() && p.Now.Sub(fence.Deleted) >= settle
	for _, volume := range server.Volumes {
		for _, attachment := range volume.Attachments {
			if attachment.Node != fence.Node {
				continue
			}
			left = append(left, describeVolume(volume))
			if attachment.Fault != "" {
				fault = "; its driver reports: " + attachment.Fault
			}
			if may && isSettled && !attachment.Ending {
				p.plan.Detach = append(p.plan.Detach, attachment)
			}
		}
	}
	p.again(settle)
	if len(left) == 0 {
		return
	}
	waits := fmt.Sprintf("%s to be detached from node %s%s", list(left), fence.Node, fault)
	if !may && refusal.Message != "" {
		waits += "; " + refusal.Message
	}
	p.plan.Waits[server.Name] = waits
	if !fence.Deleted.IsZero() && p.Now.Sub(fence.Deleted) >= detachLimit {
		p.plan.Refused[server.Name] = Refusal{VolumesNotDetached, "its pod is deleted, and it waits for " + waits}
	}
}

// list bounds the length of a message: a data server can have many volumes.
func list(names []string) string {
	const most = 4
	slices.Sort(names)
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

func describeVolume(volume Volume) string {
	return fmt.Sprintf("%s (claim %s)", volume.Name, volume.Claim)
}

// refusePower is refuse where others must say that the machine is off, or refused. What an administrator must do something about comes first.
func (p *planner) refusePower(server Server) (Refusal, time.Duration) {
	for _, check := range []func(Server) (Refusal, time.Duration){
		p.refuseUnscheduled, p.refuseStarting, p.refusePinned, p.refuseSoon, p.refuseOn, p.refuseVolumes,
		p.refuseCoolDown, p.refuseWitness, p.refuseOther, p.refuseUnhealthy,
	} {
		if refusal, wait := check(server); refusal.Reason != "" {
			if wait == 0 && refusal.Reason != NotScheduled {
				wait = look
			}
			return refusal, min(wait, look)
		}
	}
	return Refusal{}, 0
}

func (p *planner) refuseStarting(server Server) (Refusal, time.Duration) {
	if !slices.ContainsFunc(p.plan.Fences, func(f Fence) bool { return f.Server == server.Name && f.PodUID != server.Pod.UID }) {
		return Refusal{}, 0
	}
	return Refusal{Starting, "it is being started on another node"}, 0
}

// refusePinned says of volumes that no other node can use what they wait for, at once: nothing else is going to be the reason.
func (p *planner) refusePinned(server Server) (Refusal, time.Duration) {
	var names []string
	var common []string
	for i, volume := range server.Volumes {
		if !slices.ContainsFunc(volume.Nodes, func(node string) bool { return node != server.Pod.Node }) {
			names = append(names, describeVolume(volume))
		}
		common = slices.DeleteFunc(slices.Clone(volume.Nodes), func(node string) bool {
			return node == server.Pod.Node || i > 0 && !slices.Contains(common, node)
		})
	}
	if !server.Pinned {
		if len(common) > 0 || len(server.Volumes) == 0 {
			return Refusal{}, 0
		}
		return Refusal{NoNodeForVolumes, fmt.Sprintf("no other node that is Ready and takes data servers can use its volumes: it waits for such a node, or for node %s to come back",
			server.Pod.Node)}, 0
	}
	return Refusal{VolumesOnNode, fmt.Sprintf("its volumes can be used on node %[1]s alone (%[2]s): it waits for node %[1]s to come back", server.Pod.Node, list(names))}, 0
}

// refuseOn refuses unless the machine is known to be off, or refused, as it was when the data server served last.
func (p *planner) refuseOn(server Server) (Refusal, time.Duration) {
	node, exists := p.judged(server.Pod.Node, server)
	fence := Fence{Node: server.Pod.Node}
	if server.Boot.PodUID == server.Pod.UID {
		fence.NodeUID, fence.BootID = server.Boot.NodeUID, server.Boot.BootID
	}
	if isOff, refusal := IsOff(fence, node, exists); !isOff {
		return refusal, 0
	}
	if !node.Closed {
		return p.takesPods(server.Pod.Node), 0
	}
	return Refusal{}, 0
}

func (p *planner) takesPods(node string) Refusal {
	return Refusal{NodeTakesPods, fmt.Sprintf("the next pod could be placed on node %s again, because spec.placement tolerates all of its taints: kubectl cordon %s", node, node)}
}

// refuseVolumes refuses unless all volumes are attached, so that they are detached before they are attached elsewhere.
func (p *planner) refuseVolumes(server Server) (Refusal, time.Duration) {
	if len(server.Volumes) == 0 {
		return Refusal{VolumesNotAttached, "its volumes are not known"}, 0
	}
	for _, volume := range server.Volumes {
		if !slices.ContainsFunc(volume.Attachments, func(a Attachment) bool { return a.Node == server.Pod.Node }) {
			return Refusal{VolumesNotAttached, fmt.Sprintf("volume %s is not the claim's, or has no VolumeAttachment to node %s, so no driver would detach it there before another node uses it; "+
				"if the machine is off, delete the pod by force", describeVolume(volume), server.Pod.Node)}, 0
		}
	}
	return Refusal{}, 0
}

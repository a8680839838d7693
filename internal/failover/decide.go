package failover

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// Observe is how long a data server must be silent. By then the namespace server has reported all servers that it does not
	// reach: it needs 5 to 6 s for each, from about the same moment.
	Observe = 7 * time.Second
	// sign is how much newer than the last answer of a data server a renewal of the node's Lease must be to count as a sign of
	// life. Times in the API are exact to a second or two.
	sign = 2 * time.Second
	// leads is how old the last renewal of the reporting namespace server may be. It renews once a second.
	leads = 10 * time.Second
	// ahead is how far in the future a time may be. Beyond that the clock was wrong when it was written, and nothing is learned from it.
	ahead = time.Minute
	// AliveWait is how long a data server on a node with signs of life may be silent if its kubelet calls it ready.
	AliveWait = 30 * time.Second
	// StuckWait is the same if its kubelet does not, and so restarts it.
	StuckWait = 2 * time.Minute
	// recoverWait is how long an unanswered request to fence stays after the data server answers again.
	recoverWait = 15 * time.Second
	// returnWait is how long after the deletion of the old pod, and after it came back itself, a kubelet must still work to count as one that has
	// stopped it.
	returnWait = 2 * time.Minute
	// stewardWait is how long the steward of a node that shows signs of life has for its answer.
	stewardWait = 5 * time.Second
	// goneWait is how long a fence stays after its Node was deleted: as long as Ceph keeps the clients out that the steward has put into the blocklist.
	goneWait = 30 * 24 * time.Hour
	// maxGone is how many such fences stay: the Steward has all clients of each. The oldest ones go.
	maxGone = 8
	// progressLimit is how long one failover holds back those of other nodes.
	progressLimit = 10 * time.Minute
	// startLimit is how long a data server may take to serve on another node before a refusal is reported.
	startLimit = time.Minute
	// coolDown is the least time between two failovers of a data server. It doubles with each, up to maxCoolDown.
	coolDown    = 5 * time.Minute
	maxCoolDown = 80 * time.Minute
	// maxUnhealthyPercent is how many of the nodes may be unhealthy, in percent.
	maxUnhealthyPercent = 49
)

// Decide returns what to do.
func Decide(in Input) Plan {
	p := &planner{Input: in, plan: Plan{Refused: map[string]Refusal{}, Waits: map[string]string{}}}
	for _, fence := range in.Fences {
		if in.ByPower {
			p.continueByPower(fence)
		} else {
			p.continueWith(fence)
		}
	}
	p.forgetGone()
	servers := slices.Clone(in.Servers)
	slices.SortFunc(servers, func(a, b Server) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name)) })
	for _, server := range servers {
		p.consider(server)
	}
	for _, fence := range p.plan.Fences {
		// By power its taints do, or nothing begins. A Node that is deleted gets no pod.
		if _, exists := in.Nodes[fence.Node]; exists && !in.ByPower {
			p.plan.KeepOff = append(p.plan.KeepOff, fence.Node)
		}
	}
	slices.Sort(p.plan.KeepOff)
	p.plan.KeepOff = slices.Compact(p.plan.KeepOff)
	p.moveSteward()
	return p.plan
}

type planner struct {
	Input
	plan Plan
}

func (p *planner) again(after time.Duration) {
	after = max(after, time.Second)
	if p.plan.Again == 0 || after < p.plan.Again {
		p.plan.Again = after
	}
}

func (p *planner) server(name string) (Server, bool) {
	at := slices.IndexFunc(p.Servers, func(s Server) bool { return s.Name == name })
	if at < 0 {
		return Server{}, false
	}
	return p.Servers[at], true
}

// continueWith keeps a request, drops it, or deletes the pod that is fenced.
func (p *planner) continueWith(fence Fence) {
	server, exists := p.server(fence.Server)
	isOld := exists && server.Pod.UID == fence.PodUID
	switch {
	case isOld && !fence.Fenced.IsZero():
		// Also where the data server answers again, or failover was switched off: a fenced ganesha can't serve.
		p.plan.Fences = append(p.plan.Fences, fence)
		p.plan.Delete = append(p.plan.Delete, server.Pod)
	case isOld:
		recovered := !server.isUnreachable() && (fence.Fault != "" || p.Now.Sub(fence.Requested) >= recoverWait)
		if p.Allowed && !recovered {
			p.plan.Fences = append(p.plan.Fences, fence)
			p.again(time.Second)
		}
	case fence.Fenced.IsZero() && fence.Deleted.IsZero():
		// Something else has deleted the pod. The clients that the storage has now may be those of the next one. If it was fenced and deleted, an
		// earlier steward that goes on has overwritten the answer, which the other one repeats.
	case !p.hasEnded(fence):
		p.plan.Fences = append(p.plan.Fences, fence)
		if p.shows(fence.Node) {
			p.again(returnWait)
		} else if p.isGone(fence) {
			p.again(goneWait - p.Now.Sub(deletedAt(fence)))
		}
	}
}

// isGone reports whether the Node of a fence is deleted.
func (p *planner) isGone(fence Fence) bool {
	_, exists := p.Nodes[fence.Node]
	return !exists
}

// forgetGone drops the oldest fences of Nodes that are deleted, if there are too many.
func (p *planner) forgetGone() {
	isOver := func(fence Fence) bool {
		server, _ := p.server(fence.Server)
		return p.isGone(fence) && server.Pod.UID != fence.PodUID
	}
	var ended []time.Time
	for _, fence := range p.plan.Fences {
		if isOver(fence) {
			ended = append(ended, deletedAt(fence))
		}
	}
	if p.ByPower || len(ended) <= maxGone {
		return
	}
	slices.SortFunc(ended, time.Time.Compare)
	oldest := ended[len(ended)-maxGone]
	p.plan.Fences = slices.DeleteFunc(p.plan.Fences, func(fence Fence) bool { return isOver(fence) && deletedAt(fence).Before(oldest) })
}

// hasEnded reports whether a fenced pod that is deleted in the API has certainly ended on its node, or need not be kept out any more.
func (p *planner) hasEnded(fence Fence) bool {
	node, exists := p.Nodes[fence.Node]
	if !exists {
		// Whoever has deleted it need not have stopped the machine, and a kubelet that is cut off from the API goes on with its pods.
		return p.Now.Sub(deletedAt(fence)) >= goneWait
	}
	if !node.Ready {
		return false
	}
	if fence.BootID != "" && node.BootID != fence.BootID {
		return true
	}
	// Kubernetes may call a node Ready through all of a cut: its controllers may be down themselves, or wait for longer. A pod that was made while the
	// kubelet was away is acknowledged by no other program.
	if node.KeptOff && node.Acknowledged.IsZero() {
		return false
	}
	// One renewal is the first thing that a kubelet does that comes back after a cut. It stops the pod some seconds later.
	works := deletedAt(fence)
	for _, back := range []time.Time{node.ReadySince, node.Acknowledged} {
		if back.After(works) {
			works = back
		}
	}
	return node.Renewed.Sub(works) >= returnWait
}

// deletedAt is when a fenced pod was deleted, at the earliest. The steward, which says when it was fenced, may have a clock that is behind.
func deletedAt(fence Fence) time.Time {
	switch {
	case !fence.Deleted.IsZero():
		return fence.Deleted
	case fence.Fenced.Before(fence.Requested):
		return fence.Requested
	}
	return fence.Fenced
}

// shows reports whether a node is Ready in the API.
func (p *planner) shows(node string) bool { return p.Nodes[node].Ready }

// isAlive reports whether the kubelet of a node works after a time.
func (p *planner) isAlive(node string, after time.Time) bool {
	return p.Nodes[node].Renewed.Sub(after) > sign
}

// moveSteward moves a steward that can't answer because it is on the lost node.
func (p *planner) moveSteward() {
	if p.Steward.UID == "" || p.Steward.Ending {
		return
	}
	for _, fence := range p.plan.Fences {
		waited := p.Now.Sub(fence.Requested)
		if fence.Node == p.Steward.Node && fence.Fenced.IsZero() && (!p.isAlive(fence.Node, fence.Since) || waited >= stewardWait) {
			p.plan.Evict = append(p.plan.Evict, p.Steward)
			return
		}
	}
}

// consider begins a failover of a data server, or says why not.
func (p *planner) consider(server Server) {
	if !p.Allowed || !server.isUnreachable() || !server.Started || p.isRequested(server.Pod.UID) {
		return
	}
	refusal, wait := p.refuse(server)
	if refusal.Reason != "" {
		if _, isRefused := p.plan.Refused[server.Name]; isRefused {
			return
		}
		p.plan.Refused[server.Name] = refusal
		if wait > 0 {
			p.again(wait)
		}
		return
	}
	fence := Fence{
		Server: server.Name, PodUID: server.Pod.UID, Node: server.Pod.Node, BootID: p.Nodes[server.Pod.Node].BootID,
		Since: server.Since, Requested: p.Now, Message: p.why(server),
	}
	if p.ByPower {
		fence = p.fenceByPower(server)
	}
	p.plan.Fences = append(p.plan.Fences, fence)
	p.again(time.Second)
}

func (p *planner) isRequested(podUID string) bool {
	return slices.ContainsFunc(p.plan.Fences, func(f Fence) bool { return f.PodUID == podUID })
}

// why is the reason of a failover, for people.
func (p *planner) why(server Server) string {
	node, exists := p.Nodes[server.Pod.Node]
	state := "is Ready in the API, but its kubelet has not reported since"
	switch {
	case !exists:
		state = "does not exist any more"
	case !node.Ready:
		state = "is not Ready"
	case p.isAlive(server.Pod.Node, server.Since):
		state = "has a working kubelet"
	case node.Renewed.IsZero():
		state = "is Ready in the API"
	}
	return fmt.Sprintf("namespace server %s has got no answer from %s for %d s; node %s %s",
		server.Reporter, server.Name, int(p.Now.Sub(server.Since).Seconds()), server.Pod.Node, state)
}

package failover

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// refuse returns why no failover of an unreachable data server begins, and after which time to ask again; 0: when something
// changes. An empty reason means that it begins.
func (p *planner) refuse(server Server) (Refusal, time.Duration) {
	if p.ByPower {
		return p.refusePower(server)
	}
	for _, check := range []func(Server) (Refusal, time.Duration){
		p.refuseUnscheduled, p.refuseCoolDown, p.refuseSoon, p.refuseAlive, p.refuseWitness, p.refuseOther, p.refuseUnhealthy,
	} {
		if refusal, wait := check(server); refusal.Reason != "" {
			return refusal, wait
		}
	}
	return Refusal{}, 0
}

func (p *planner) refuseUnscheduled(server Server) (Refusal, time.Duration) {
	if server.Pod.UID != "" && server.Pod.Node != "" {
		return Refusal{}, 0
	}
	return Refusal{NotScheduled, "it has no pod on a node"}, 0
}

func (p *planner) refuseSoon(server Server) (Refusal, time.Duration) {
	left := Observe - p.Now.Sub(server.Since)
	if left <= 0 {
		return Refusal{}, 0
	}
	return Refusal{Observing, fmt.Sprintf("it has been silent for less than %d s", int(Observe.Seconds()))}, left
}

// refuseAlive leaves a data server to its supervisor and its kubelet if one of them has shown a sign of life since it went silent.
func (p *planner) refuseAlive(server Server) (Refusal, time.Duration) {
	if !p.isAlive(server.Pod.Node, server.Since) && server.Reported.Sub(server.Since) <= sign {
		return Refusal{}, 0
	}
	limit := StuckWait
	if server.Pod.Ready {
		limit = AliveWait
	}
	left := limit - p.Now.Sub(server.Since)
	if left <= 0 {
		return Refusal{}, 0
	}
	return Refusal{NodeAlive, fmt.Sprintf("node %s shows signs of life, and has until %s to bring it back",
		server.Pod.Node, server.Since.Add(limit).UTC().Format(time.RFC3339))}, left
}

// refuseWitness refuses if the report may be the reporter's own fault.
func (p *planner) refuseWitness(server Server) (Refusal, time.Duration) {
	if refusal := p.refuseReport(server); refusal.Reason != "" {
		return refusal, look // The Lease is not watched.
	}
	for _, pod := range p.NamespaceServers {
		if pod.Name == server.Reporter && pod.Node == server.Pod.Node {
			return Refusal{ReporterOnSameNode, fmt.Sprintf("namespace server %s, which reports this, runs on the same node %s", pod.Name, pod.Node)}, 0
		}
	}
	others, answering := 0, 0
	for _, other := range p.Servers {
		if other.Name == server.Name || !other.Started || other.Pod.Node == server.Pod.Node {
			continue
		}
		others++
		if !other.isUnreachable() {
			answering++
		}
	}
	if answering > 0 {
		return Refusal{}, 0
	}
	if others > 0 {
		return Refusal{NoServerReachable, "no data server on another node answers: the namespace servers may be cut off, or the storage may be down"}, 0
	}
	if p.shows(server.Pod.Node) {
		return Refusal{OneWitness, fmt.Sprintf("no data server is on another node than %s, so the failover waits until Kubernetes also finds this node not ready", server.Pod.Node)}, 0
	}
	return Refusal{}, 0
}

// refuseReport refuses if the reporter does not report any more: then it would not take back what it has reported, either.
func (p *planner) refuseReport(server Server) Refusal {
	switch {
	case p.Leader == nil:
		return Refusal{}
	case p.Leader.Name == "" || p.Now.Sub(p.Leader.Renewed) > leads:
		return Refusal{ReportOutdated, fmt.Sprintf("no namespace server reports now whether it answers; the last report is that of %s", server.Reporter)}
	case p.Leader.Name != server.Reporter:
		return Refusal{ReportOutdated, fmt.Sprintf("namespace server %s has got no answer, and %s, which reports now, has not confirmed it", server.Reporter, p.Leader.Name)}
	}
	return Refusal{}
}

// refuseOther lets one node's data servers move at a time.
func (p *planner) refuseOther(server Server) (Refusal, time.Duration) {
	for _, fence := range p.plan.Fences {
		began := p.Now.Sub(fence.Requested)
		if fence.Node != server.Pod.Node && !p.isServedElsewhere(fence) && began < progressLimit && began > -ahead {
			return Refusal{AnotherInProgress, fmt.Sprintf("the failover of %s from node %s is not done", fence.Server, fence.Node)}, progressLimit - began
		}
	}
	return Refusal{}, 0
}

// isServedElsewhere reports whether the data server of a fence serves from another pod, or is removed.
func (p *planner) isServedElsewhere(fence Fence) bool {
	server, exists := p.server(fence.Server)
	return !exists || server.Serving && server.Pod.UID != fence.PodUID
}

func (p *planner) refuseCoolDown(server Server) (Refusal, time.Duration) {
	last := server.Last
	for _, fence := range p.Fences { // The history may have been lost with the status.
		if fence.Server == server.Name && fence.Requested.After(last) {
			last = fence.Requested
		}
	}
	if last.IsZero() {
		return Refusal{}, 0
	}
	wait := coolDown << min(max(server.Count-1, 0), 4)
	if quiet := p.Now.Sub(last); quiet >= 24*time.Hour || quiet < -ahead {
		return Refusal{}, 0
	}
	left := min(wait, maxCoolDown) - p.Now.Sub(last)
	if left <= 0 {
		return Refusal{}, 0
	}
	if since := p.Now.Sub(last); since < startLimit {
		return Refusal{Starting, "it is being started on another node"}, startLimit - since
	}
	return Refusal{CoolingDown, fmt.Sprintf("its last failover began at %s, and the next may begin at %s",
		last.UTC().Format(time.RFC3339), p.Now.Add(left).UTC().Format(time.RFC3339))}, left
}

// refuseUnhealthy refuses if half of the nodes or more are unhealthy: then the cluster is the problem, and not a node.
func (p *planner) refuseUnhealthy(Server) (Refusal, time.Duration) {
	unhealthy := map[string]bool{}
	look := func(node string) {
		if node != "" {
			unhealthy[node] = unhealthy[node] || !p.shows(node)
		}
	}
	for _, server := range p.Servers {
		look(server.Pod.Node)
		if server.Pod.Node != "" && server.isUnreachable() && server.Pod.UID != "" {
			unhealthy[server.Pod.Node] = true
		}
	}
	for _, pod := range p.NamespaceServers {
		look(pod.Node)
	}
	for _, fence := range p.plan.Fences {
		if !p.isGone(fence) || !p.isServedElsewhere(fence) { // Such a node is no part of the cluster any more.
			unhealthy[fence.Node] = true
		}
	}
	var names []string
	for node, is := range unhealthy {
		if is {
			names = append(names, node)
		}
	}
	if len(names)*100 <= maxUnhealthyPercent*len(unhealthy) {
		return Refusal{}, 0
	}
	slices.Sort(names)
	return Refusal{TooManyNodesUnhealthy, fmt.Sprintf("%d of the %d nodes with data servers or namespace servers are unhealthy (%s), more than %d %%",
		len(names), len(unhealthy), strings.Join(names, ", "), maxUnhealthyPercent)}, 0
}

package failover

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

var cut = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// world is three data servers on three nodes, two namespace servers on the first two, and the steward on the first.
func world(after time.Duration) Input {
	in := Input{Now: cut.Add(after), Allowed: true, Nodes: map[string]Node{}}
	for _, node := range []string{"n0", "n1", "n2"} {
		in.Nodes[node] = Node{Ready: true, BootID: "boot-" + node, Renewed: cut.Add(-3 * time.Second)}
	}
	for i, node := range []string{"n0", "n1", "n2"} {
		name := "training-" + string(rune('0'+i))
		in.Servers = append(in.Servers, Server{
			Name: name, Started: true, Serving: true, Pod: Pod{Name: name, UID: "uid-" + name, Node: node, Ready: true}, Reported: cut.Add(-time.Hour),
		})
	}
	in.NamespaceServers = []Pod{{Name: "ns-a", UID: "a", Node: "n0", Ready: true}, {Name: "ns-b", UID: "b", Node: "n1", Ready: true}}
	in.Steward = Pod{Name: "steward", UID: "s", Node: "n0", Ready: true}
	return in
}

// lost takes the node of a data server away.
func lost(in Input, servers ...int) Input {
	for _, i := range servers {
		in.Servers[i].Serving, in.Servers[i].Since, in.Servers[i].Reporter = false, cut, "ns-a"
	}
	return in
}

func fenceOf(in Input, i int) Fence {
	s := in.Servers[i]
	return Fence{Server: s.Name, PodUID: s.Pod.UID, Node: s.Pod.Node, BootID: in.Nodes[s.Pod.Node].BootID, Since: cut, Requested: cut.Add(8 * time.Second), Message: "why"}
}

// led has a namespace server report that was last heard of a time ago.
func led(in Input, name string, ago time.Duration) Input {
	in.Leader = &Leader{Name: name, Renewed: in.Now.Add(-ago)}
	return in
}

func node(in *Input, name string, change func(*Node)) {
	n := in.Nodes[name]
	change(&n)
	in.Nodes[name] = n
}

func TestALostNodeIsFencedFirst(t *testing.T) {
	in := lost(world(8*time.Second), 2)
	plan := Decide(in)
	if len(plan.Fences) != 1 || len(plan.Delete) != 0 || len(plan.Evict) != 0 || len(plan.Refused) != 0 {
		t.Fatalf("%+v", plan)
	}
	got := plan.Fences[0]
	if got.PodUID != "uid-training-2" || got.Node != "n2" || got.BootID != "boot-n2" || !got.Requested.Equal(in.Now) || !got.Since.Equal(cut) {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(plan.KeepOff, []string{"n2"}) {
		t.Errorf("pods could be placed on the lost node: %v", plan.KeepOff)
	}
	if !strings.Contains(got.Message, "namespace server ns-a has got no answer from training-2 for 8 s") {
		t.Errorf("%s", got.Message)
	}
}

func TestWhyAFailoverDoesNotBegin(t *testing.T) {
	minute := time.Minute
	for name, tc := range map[string]struct {
		in   Input
		want Reason // "" means that it begins
	}{
		"it begins":           {lost(world(8*time.Second), 2), ""},
		"silent for a moment": {lost(world(6*time.Second), 2), Observing},
		"its kubelet has renewed since": {func() Input {
			in := lost(world(8*time.Second), 2)
			node(&in, "n2", func(n *Node) { n.Renewed = cut.Add(5 * time.Second) })
			return in
		}(), NodeAlive},
		"its kubelet has renewed since, half a minute ago": {func() Input {
			in := lost(world(31*time.Second), 2)
			node(&in, "n2", func(n *Node) { n.Renewed = cut.Add(25 * time.Second) })
			return in
		}(), ""},
		"its kubelet restarts it": {func() Input {
			in := lost(world(31*time.Second), 2)
			node(&in, "n2", func(n *Node) { n.Renewed = cut.Add(25 * time.Second) })
			in.Servers[2].Pod.Ready = false
			return in
		}(), NodeAlive},
		"its kubelet has not managed to restart it": {func() Input {
			in := lost(world(121*time.Second), 2)
			node(&in, "n2", func(n *Node) { n.Renewed = cut.Add(115 * time.Second) })
			in.Servers[2].Pod.Ready = false
			return in
		}(), ""},
		"its supervisor reports that ganesha restarts": {func() Input {
			in := lost(world(8*time.Second), 2)
			in.Servers[2].Reported, in.Servers[2].Pod.Ready = cut.Add(4*time.Second), false
			return in
		}(), NodeAlive},
		"the reporter is on that node": {lost(world(8*time.Second), 0), ReporterOnSameNode},
		"no data server answers":       {lost(world(8*time.Second), 0, 1, 2), NoServerReachable},
		"two of three nodes":           {lost(world(8*time.Second), 1, 2), TooManyNodesUnhealthy},
		"another node is NotReady": {func() Input {
			in := lost(world(8*time.Second), 2)
			node(&in, "n1", func(n *Node) { n.Ready = false })
			return in
		}(), TooManyNodesUnhealthy},
		"another node is deleted": {func() Input { in := lost(world(8*time.Second), 2); delete(in.Nodes, "n1"); return in }(), TooManyNodesUnhealthy},
		"its own node is deleted": {func() Input { in := lost(world(8*time.Second), 2); delete(in.Nodes, "n2"); return in }(), ""},
		"half of two nodes": {func() Input {
			in := lost(world(8*time.Second), 1)
			in.Servers, in.NamespaceServers = in.Servers[:2], in.NamespaceServers[:1]
			return in
		}(), TooManyNodesUnhealthy},
		"one data server alone, its node Ready": {func() Input {
			in := lost(world(8*time.Second), 2)
			in.Servers = in.Servers[2:]
			return in
		}(), OneWitness},
		"one data server alone, its node not Ready": {func() Input {
			in := lost(world(minute), 2)
			in.Servers = in.Servers[2:]
			node(&in, "n2", func(n *Node) { n.Ready = false })
			return in
		}(), ""},
		"a short time after the last one": {func() Input {
			in := lost(world(8*time.Second), 2)
			in.Servers[2].Last, in.Servers[2].Count = cut.Add(-4*minute), 1
			return in
		}(), CoolingDown},
		"long enough after the first": {func() Input {
			in := lost(world(8*time.Second), 2)
			in.Servers[2].Last, in.Servers[2].Count = cut.Add(-6*minute), 1
			return in
		}(), ""},
		"not long enough after the third": {func() Input {
			in := lost(world(8*time.Second), 2)
			in.Servers[2].Last, in.Servers[2].Count = cut.Add(-19*minute), 3
			return in
		}(), CoolingDown},
		"a day after the tenth": {func() Input {
			in := lost(world(8*time.Second), 2)
			in.Servers[2].Last, in.Servers[2].Count = cut.Add(-25*time.Hour), 10
			return in
		}(), ""},
		"its pod waits for a node": {func() Input { in := lost(world(8*time.Second), 2); in.Servers[2].Pod.Node = ""; return in }(), NotScheduled},
		"the last one was in the future, by a clock that was wrong": {func() Input {
			in := lost(world(8*time.Second), 2)
			in.Servers[2].Last, in.Servers[2].Count = cut.Add(30*24*time.Hour), 1
			return in
		}(), ""},
		"its reporter reports still":                  {led(lost(world(minute), 2), "ns-a", 9*time.Second), ""},
		"another one reports, and has not confirmed":  {led(lost(world(minute), 2), "ns-b", time.Second), ReportOutdated},
		"its reporter has not been heard for a while": {led(lost(world(minute), 2), "ns-a", 11*time.Second), ReportOutdated},
		"none reports": {led(lost(world(minute), 2), "", time.Second), ReportOutdated},
		"none reports, and machines are off": {
			led(off(lost(powered(minute), 2), "n2", ShutdownTaint), "", time.Second), ReportOutdated,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(tc.in)
			var got Reason
			for _, server := range slices.Sorted(maps.Keys(plan.Refused)) {
				refusal := plan.Refused[server]
				got = refusal.Reason
				if refusal.Message == "" {
					t.Error("no message")
				}
			}
			if got != tc.want {
				t.Errorf("%q, want %q (%+v)", got, tc.want, plan.Refused)
			}
			if begins := len(plan.Fences) > 0; begins != (tc.want == "") || len(plan.Delete) > 0 {
				t.Errorf("%+v", plan)
			}
			if (tc.want == Observing || tc.want == NodeAlive || tc.want == CoolingDown) && plan.Again == 0 {
				t.Error("it is not looked at again")
			}
		})
	}
}

func TestANotReadyNodeAloneIsNoReason(t *testing.T) {
	in := world(time.Hour)
	node(&in, "n2", func(n *Node) { n.Ready = false })
	in.Servers[2].Serving, in.Servers[2].Pod.Ready = false, false
	if plan := Decide(in); len(plan.Fences)+len(plan.Delete)+len(plan.Evict)+len(plan.Refused) != 0 {
		t.Errorf("%+v", plan)
	}
}

func TestNothingBeginsWhereItIsNotAllowed(t *testing.T) {
	in := lost(world(8*time.Second), 2)
	in.Allowed = false
	if plan := Decide(in); len(plan.Fences)+len(plan.Refused)+len(plan.KeepOff) != 0 {
		t.Errorf("%+v", plan)
	}
	in = lost(world(8*time.Second), 2)
	in.Servers[2].Started = false
	if plan := Decide(in); len(plan.Fences)+len(plan.Refused) != 0 {
		t.Errorf("a data server that never served: %+v", plan)
	}
}

func TestThePodIsDeletedOnceTheStorageHasFencedIt(t *testing.T) {
	in := lost(world(10*time.Second), 1)
	fence := fenceOf(in, 1)
	in.Fences = []Fence{fence}
	if plan := Decide(in); len(plan.Delete) != 0 || len(plan.Fences) != 1 || plan.Again == 0 {
		t.Fatalf("before the answer: %+v", plan)
	}
	fence.Fault = "no monitor answers"
	in.Fences = []Fence{fence}
	if plan := Decide(in); len(plan.Delete) != 0 || len(plan.Fences) != 1 {
		t.Fatalf("after a failure: %+v", plan)
	}
	fence.Fault, fence.Fenced = "", cut.Add(10*time.Second)
	in.Fences = []Fence{fence}
	for _, allowed := range []bool{true, false} { // A fenced ganesha can't serve any more, whatever is allowed now.
		in.Allowed = allowed
		plan := Decide(in)
		if len(plan.Delete) != 1 || plan.Delete[0].UID != "uid-training-1" || len(plan.Fences) != 1 {
			t.Fatalf("after the answer: %+v", plan)
		}
	}
	in.Servers[1].Pod.UID, in.Servers[1].Pod.Node = "uid-new", "n2"
	plan := Decide(in)
	if len(plan.Delete) != 0 || len(plan.Fences) != 1 || !slices.Equal(plan.KeepOff, []string{"n1"}) {
		t.Errorf("once the next pod exists: %+v", plan)
	}
}

func TestARequestEndsWhenItHasNoObject(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(in *Input, fence *Fence)
		stays  bool
	}{
		"the data server answers again, a moment ago": {func(in *Input, _ *Fence) { in.Servers[2].Since = time.Time{}; in.Now = cut.Add(12 * time.Second) }, true},
		"the data server answers again":               {func(in *Input, _ *Fence) { in.Servers[2].Since = time.Time{}; in.Now = cut.Add(time.Minute) }, false},
		"the data server answers again, and Ceph failed": {func(in *Input, f *Fence) {
			in.Servers[2].Since, f.Fault, in.Now = time.Time{}, "failed", cut.Add(12*time.Second)
		}, false},
		"failover is switched off":                  {func(in *Input, _ *Fence) { in.Allowed = false }, false},
		"something else has deleted the pod":        {func(in *Input, _ *Fence) { in.Servers[2].Pod = Pod{} }, false},
		"the data server is removed":                {func(in *Input, _ *Fence) { in.Servers = in.Servers[:2] }, false},
		"fenced, and the data server is removed":    {func(in *Input, f *Fence) { in.Servers = in.Servers[:2]; f.Fenced = cut }, true},
		"fenced and deleted, the node is still off": {func(in *Input, f *Fence) { in.Servers[2].Pod = Pod{}; f.Fenced = cut; in.Now = cut.Add(10 * time.Hour) }, true},
		"fenced and deleted, the node shows as not back": {func(in *Input, f *Fence) {
			in.Servers[2].Pod = Pod{}
			f.Fenced = cut
			node(in, "n2", func(n *Node) { n.Ready = false; n.BootID = "new" })
		}, true},
		"fenced and deleted, the node has booted": {func(in *Input, f *Fence) {
			in.Servers[2].Pod = Pod{}
			f.Fenced = cut
			node(in, "n2", func(n *Node) { n.BootID = "new" })
		}, false},
		"fenced and deleted, the Node is deleted, and the machine may run": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced, in.Now = Pod{}, cut, cut.Add(29*24*time.Hour)
			delete(in.Nodes, "n2")
		}, true},
		"fenced and deleted, the Node is deleted for as long as Ceph keeps clients out": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced, in.Now = Pod{}, cut, cut.Add(31*24*time.Hour)
			delete(in.Nodes, "n2")
		}, false},
		"fenced and deleted without a Node, whose kubelet makes it again": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced, f.BootID = Pod{}, cut, ""
			node(in, "n2", func(n *Node) { n.Renewed = cut.Add(time.Minute) })
		}, true},
		"fenced and deleted, the kubelet works a minute": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced = Pod{}, cut
			node(in, "n2", func(n *Node) { n.Renewed = cut.Add(time.Minute) })
		}, true},
		"fenced and deleted, the kubelet works long enough to have stopped the pod": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced = Pod{}, cut
			node(in, "n2", func(n *Node) { n.Renewed = cut.Add(128 * time.Second) })
		}, false},
		"fenced and deleted, and the kubelet comes back after a long cut": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced = Pod{}, cut
			node(in, "n2", func(n *Node) { n.Renewed, n.ReadySince = cut.Add(time.Hour+9*time.Second), cut.Add(time.Hour) })
		}, true},
		"fenced and deleted, and the kubelet is back from a long cut for long enough to have stopped the pod": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced = Pod{}, cut
			node(in, "n2", func(n *Node) { n.Renewed, n.ReadySince = cut.Add(time.Hour+2*time.Minute), cut.Add(time.Hour) })
		}, false},
		"fenced and deleted, and the node was Ready all the time": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced = Pod{}, cut
			node(in, "n2", func(n *Node) { n.Renewed, n.ReadySince = cut.Add(128*time.Second), cut.Add(-time.Hour) })
		}, false},
		"fenced and deleted, and the kubelet has not taken note of the pod that keeps others off": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced = Pod{}, cut
			node(in, "n2", func(n *Node) { n.Renewed, n.ReadySince, n.KeptOff = cut.Add(time.Hour), cut.Add(-time.Hour), true })
		}, true},
		"fenced and deleted, and the kubelet comes back after a long cut through which the node was Ready": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced = Pod{}, cut
			node(in, "n2", func(n *Node) {
				n.Renewed, n.ReadySince, n.KeptOff, n.Acknowledged = cut.Add(time.Hour+9*time.Second), cut.Add(-time.Hour), true, cut.Add(time.Hour)
			})
		}, true},
		"fenced and deleted, and the kubelet is back from such a cut for long enough": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced = Pod{}, cut
			node(in, "n2", func(n *Node) {
				n.Renewed, n.ReadySince, n.KeptOff, n.Acknowledged = cut.Add(time.Hour+2*time.Minute), cut.Add(-time.Hour), true, cut.Add(time.Hour)
			})
		}, false},
		"fenced and deleted, and the kubelet was there all the time": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced = Pod{}, cut
			node(in, "n2", func(n *Node) {
				n.Renewed, n.ReadySince, n.KeptOff, n.Acknowledged = cut.Add(128*time.Second), cut.Add(-time.Hour), true, cut.Add(-time.Second)
			})
		}, false},
		"fenced and deleted, the node has booted, and its kubelet starts the pod that keeps others off": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced = Pod{}, cut
			node(in, "n2", func(n *Node) { n.BootID, n.KeptOff = "new", true })
		}, false},
		"fenced and deleted, and the answer is lost": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Deleted = Pod{}, cut.Add(9*time.Second)
		}, true},
		"fenced by a steward whose clock is behind, and the kubelet was lost before": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced = Pod{}, cut.Add(-time.Hour)
		}, true},
		"fenced by a steward whose clock is ahead, and the kubelet works long enough": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced, f.Deleted = Pod{}, cut.Add(time.Hour), cut.Add(9*time.Second)
			node(in, "n2", func(n *Node) { n.Renewed = cut.Add(129 * time.Second) })
		}, false},
		"fenced, and deleted a moment ago": {func(in *Input, f *Fence) {
			in.Servers[2].Pod, f.Fenced, f.Deleted = Pod{}, cut.Add(9*time.Second), cut.Add(time.Hour)
			node(in, "n2", func(n *Node) { n.Renewed = cut.Add(time.Hour + time.Minute) })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := lost(world(10*time.Second), 2)
			fence := fenceOf(in, 2)
			tc.change(&in, &fence)
			in.Fences = []Fence{fence}
			plan := Decide(in)
			_, isNode := in.Nodes["n2"] // There is nothing to keep off, and no pod could.
			if stays := len(plan.Fences) == 1; stays != tc.stays || (len(plan.KeepOff) == 1) != (stays && isNode) || len(plan.Delete) != 0 {
				t.Errorf("stays: %v, %+v", stays, plan)
			}
			if tc.stays && !isNode && plan.Again == 0 {
				t.Error("it never ends")
			}
		})
	}
}

func TestOneNodeAtATime(t *testing.T) {
	in := world(8 * time.Second)
	for i, node := range []string{"n3", "n4", "n5"} { // Six nodes: two of them are no majority.
		in.Nodes[node] = Node{Ready: true, BootID: "boot-" + node, Renewed: cut}
		name := "training-" + string(rune('3'+i))
		in.Servers = append(in.Servers, Server{Name: name, Started: true, Serving: true, Pod: Pod{Name: name, UID: "uid-" + name, Node: node, Ready: true}})
	}
	in.Servers[3].Pod.Node = "n2" // Two servers on one node move together.
	plan := Decide(lost(in, 2, 3, 4))
	if len(plan.Fences) != 2 || plan.Fences[0].Node != "n2" || plan.Fences[1].Node != "n2" || plan.Refused["training-4"].Reason != AnotherInProgress {
		t.Fatalf("%+v", plan)
	}

	in.Fences = plan.Fences
	for i := range in.Fences {
		in.Fences[i].Fenced = in.Now
		in.Servers[2+i].Pod.UID, in.Servers[2+i].Pod.Node = "new-"+in.Servers[2+i].Name, "n0"
	}
	if plan := Decide(in); plan.Refused["training-4"].Reason != AnotherInProgress {
		t.Errorf("before the first serves: %+v", plan)
	}
	wrong := in
	wrong.Fences = slices.Clone(in.Fences)
	for i := range wrong.Fences {
		wrong.Fences[i].Requested = in.Now.Add(time.Hour)
	}
	if plan := Decide(wrong); plan.Refused["training-4"].Reason == AnotherInProgress {
		t.Errorf("it waits until the time of a clock that was wrong: %+v", plan)
	}
	for i := range in.Fences {
		in.Servers[2+i].Serving, in.Servers[2+i].Since = true, time.Time{}
	}
	if plan := Decide(in); len(plan.Fences) != 3 || len(plan.Refused) != 0 {
		t.Errorf("after it serves: %+v", plan)
	}
}

// The pod that follows is reported unreachable until it serves, which must not begin the next failover.
func TestTheNextPodIsNotFencedWhileItStarts(t *testing.T) {
	in := lost(world(12*time.Second), 2)
	fence := fenceOf(in, 2)
	fence.Fenced = cut.Add(10 * time.Second)
	in.Fences = []Fence{fence}
	in.Servers[2].Pod.UID, in.Servers[2].Pod.Node = "uid-new", "n0"
	plan := Decide(in)
	if len(plan.Fences) != 1 || len(plan.Delete) != 0 || plan.Refused["training-2"].Reason != Starting {
		t.Errorf("%+v", plan)
	}
}

func TestAStewardOnTheLostNodeMoves(t *testing.T) {
	in := lost(world(8*time.Second), 2)
	in.Steward.Node = "n2"
	if plan := Decide(in); len(plan.Evict) != 1 || plan.Evict[0].UID != "s" {
		t.Errorf("the lost node: %+v", plan.Evict)
	}
	in.Steward.Ending = true
	if plan := Decide(in); len(plan.Evict) != 0 {
		t.Errorf("once it is being deleted: %+v", plan.Evict)
	}
	in.Steward.Ending = false
	node(&in, "n2", func(n *Node) { n.Renewed = cut.Add(30 * time.Second) })
	in.Now = cut.Add(32 * time.Second)
	plan := Decide(in)
	if len(plan.Evict) != 0 || len(plan.Fences) != 1 {
		t.Fatalf("a node with signs of life: %+v", plan)
	}
	in.Fences = plan.Fences
	in.Now = in.Now.Add(6 * time.Second)
	if plan := Decide(in); len(plan.Evict) != 1 {
		t.Errorf("no answer for 6 s: %+v", plan)
	}
}

// gone has a data server be served elsewhere, from a node that is deleted.
func gone(in Input, i int, node string, requested time.Time) Input {
	fence := fenceOf(in, i)
	fence.PodUID, fence.Node, fence.BootID = "uid-on-"+node, node, "boot-"+node
	fence.Requested, fence.Fenced, fence.Deleted = requested, requested, requested
	in.Fences = append(slices.Clone(in.Fences), fence)
	return in
}

func TestADeletedNodeIsNotTheNextLoss(t *testing.T) {
	in := gone(lost(world(8*time.Second), 2), 1, "n9", cut.Add(-48*time.Hour))
	if plan := Decide(in); len(plan.Fences) != 2 || len(plan.Refused) != 0 {
		t.Errorf("it keeps the next node from being failed over: %+v", plan)
	}
	in.Servers[1].Serving = false
	if plan := Decide(in); plan.Refused["training-2"].Reason != TooManyNodesUnhealthy {
		t.Errorf("its data server does not serve elsewhere yet: %+v", plan)
	}
}

// The Steward has an answer with all clients for each.
func TestFewDeletedNodesAreRemembered(t *testing.T) {
	in := world(time.Hour)
	for i := range 2 * maxGone {
		in = gone(in, 1, "n-gone-"+string(rune('a'+i)), cut.Add(time.Duration(i)*time.Minute))
		if i < 2*maxGone-1 { // The status has the last one only.
			in.Fences[i].Deleted = time.Time{}
		}
	}
	in.Fences = append(in.Fences, fenceOf(in, 2))
	in.Fences[2*maxGone].PodUID, in.Fences[2*maxGone].Fenced, in.Fences[2*maxGone].Deleted = "uid-lost", cut, cut
	node(&in, "n2", func(n *Node) { n.Ready = false })
	plan := Decide(in)
	if len(plan.Fences) != maxGone+1 {
		t.Fatalf("%d stay: %+v", len(plan.Fences), plan.Fences)
	}
	for _, fence := range plan.Fences {
		if fence.Node != "n2" && fence.Requested.Before(cut.Add(maxGone*time.Minute)) {
			t.Errorf("an earlier one stays: %+v", fence)
		}
	}
}

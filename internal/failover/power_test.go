package failover

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const minute = time.Minute

// powered is world on volumes that every node can use, each attached to the node of its data server.
func powered(after time.Duration) Input {
	in := world(after)
	in.ByPower, in.Steward = true, Pod{}
	for i := range in.Servers {
		s, number := &in.Servers[i], string(rune('0'+i))
		node(&in, s.Pod.Node, func(n *Node) { n.UID = "node-uid-" + s.Pod.Node })
		s.Boot = Boot{PodUID: s.Pod.UID, NodeUID: in.Nodes[s.Pod.Node].UID, BootID: in.Nodes[s.Pod.Node].BootID}
		s.Volumes = []Volume{{Name: "pv-" + number, Claim: "data-0-" + s.Name, Nodes: []string{"n0", "n1", "n2"}, Attachments: []Attachment{
			{Name: "csi-" + number, UID: "va-" + number, Version: "7", Node: s.Pod.Node},
		}}}
	}
	return in
}

// off is what the API has of a machine without power.
func off(in Input, name string, evidence Evidence) Input {
	node(&in, name, func(n *Node) { n.Ready, n.Silent, n.Closed, n.Off = false, true, true, evidence })
	return in
}

// begun has the failover of data server 2 in the status, as the pass that began it leaves it there.
func begun(in Input) Input {
	in.Servers[2].Last, in.Servers[2].Count = cut.Add(minute), 1
	in.Fences = append(in.Fences, Fence{
		Server: "training-2", PodUID: "uid-training-2", Node: "n2", NodeUID: "node-uid-n2", BootID: "boot-n2", Evidence: ShutdownTaint,
		Since: cut, Requested: cut.Add(minute), Fenced: cut.Add(minute), Message: "why",
	})
	return in
}

// moved is begun, with the pod deleted and the next one on another node, where it can't start yet.
func moved(in Input) Input {
	in = begun(in)
	in.Fences[0].Deleted = cut.Add(minute + time.Second)
	in.Servers[2].Pod = Pod{Name: "training-2", UID: "uid-new", Node: "n0"}
	return in
}

func TestAMachineThatIsOffIsWrittenDownBeforeAnythingIsDeleted(t *testing.T) {
	for _, evidence := range []Evidence{OutOfServiceTaint, ShutdownTaint} {
		in := off(lost(powered(minute), 2), "n2", evidence)
		plan := Decide(in)
		if len(plan.Fences) != 1 || len(plan.Delete)+len(plan.Detach)+len(plan.Evict)+len(plan.KeepOff)+len(plan.Refused) != 0 || plan.Again == 0 {
			t.Fatalf("%s: %+v", evidence, plan)
		}
		got := plan.Fences[0]
		if got.PodUID != "uid-training-2" || got.NodeUID != "node-uid-n2" || got.BootID != "boot-n2" || got.Evidence != evidence || !got.Requested.Equal(in.Now) || !got.Fenced.Equal(in.Now) {
			t.Errorf("%+v", got)
		}
		if !strings.Contains(got.Message, "no answer from training-2 for 60 s") || !strings.Contains(got.Message, "node n2 is off: ") {
			t.Error(got.Message)
		}
	}
}

// Every evidence with every kind of volume: begins is the one case in which something is done.
func TestWhenAMachineCountsAsOff(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(in *Input)
		want   Reason // "" means that it begins
		says   string
	}{
		"the cloud says that it is off": {func(*Input) {}, "", ""},
		"it was taken out of service":   {func(in *Input) { node(in, "n2", func(n *Node) { n.Off = OutOfServiceTaint }) }, "", ""},
		"there is no evidence": {
			func(in *Input) { node(in, "n2", func(n *Node) { n.Off = "" }) }, PowerUnknown,
			"kubectl taint node n2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
		},
		"there is none for an hour": {func(in *Input) { node(in, "n2", func(n *Node) { n.Off = "" }); in.Now = cut.Add(time.Hour) }, PowerUnknown, ""},
		"its kubelet is heard":      {func(in *Input) { node(in, "n2", func(n *Node) { n.Ready, n.Silent = true, false }) }, NodeAlive, "is Ready"},
		"its kubelet says that it is not ready": {
			func(in *Input) { node(in, "n2", func(n *Node) { n.Silent = false }) }, NodeAlive,
			"its kubelet reports",
		},
		"it has booted since":             {func(in *Input) { node(in, "n2", func(n *Node) { n.BootID = "boot-2" }) }, EvidenceOutdated, "another boot"},
		"its Node was made again":         {func(in *Input) { node(in, "n2", func(n *Node) { n.UID = "other" }) }, EvidenceOutdated, ""},
		"its boot was never seen":         {func(in *Input) { in.Servers[2].Boot = Boot{} }, EvidenceOutdated, ""},
		"its boot is not known":           {func(in *Input) { in.Servers[2].Boot.BootID = ""; node(in, "n2", func(n *Node) { n.BootID = "" }) }, EvidenceOutdated, ""},
		"another pod served on that boot": {func(in *Input) { in.Servers[2].Boot.PodUID = "uid-earlier" }, EvidenceOutdated, ""},
		"its Node is deleted":             {func(in *Input) { delete(in.Nodes, "n2") }, NodeGone, "does not say that the machine is off"},
		"its volumes are on that node":    {func(in *Input) { in.Servers[2].Pinned, in.Servers[2].Volumes[0].Nodes = true, nil }, VolumesOnNode, "pv-2 (claim data-0-training-2)"},
		"its volumes are there, nothing is known yet": {func(in *Input) {
			in.Servers[2].Pinned, in.Servers[2].Volumes[0].Nodes, in.Now = true, nil, cut.Add(time.Second)
		}, VolumesOnNode, "node n2"},
		"one of two volumes is on that node": {func(in *Input) {
			in.Servers[2].Pinned = true
			in.Servers[2].Volumes = append(in.Servers[2].Volumes, Volume{Name: "pv-local", Claim: "data-1-training-2", Nodes: []string{"n2"}})
		}, VolumesOnNode, "pv-local"},
		"its zone has no other node": {func(in *Input) { in.Servers[2].Volumes[0].Nodes = []string{"n2"} }, NoNodeForVolumes, "node n2 to come back"},
		"no node can use both volumes": {func(in *Input) {
			in.Servers[2].Volumes[0].Nodes = []string{"n0"}
			other := in.Servers[2].Volumes[0]
			other.Nodes = []string{"n1"}
			in.Servers[2].Volumes = append(in.Servers[2].Volumes, other)
		}, NoNodeForVolumes, ""},
		"its volumes are not known":                        {func(in *Input) { in.Servers[2].Volumes = nil }, VolumesNotAttached, ""},
		"nothing is attached":                              {func(in *Input) { in.Servers[2].Volumes[0].Attachments = nil }, VolumesNotAttached, "pv-2"},
		"it is attached to another node":                   {func(in *Input) { in.Servers[2].Volumes[0].Attachments[0].Node = "n1" }, VolumesNotAttached, ""},
		"data servers could be placed there":               {func(in *Input) { node(in, "n2", func(n *Node) { n.Closed = false }) }, NodeTakesPods, "kubectl cordon n2"},
		"silent for a moment":                              {func(in *Input) { in.Now = cut.Add(6 * time.Second) }, Observing, ""},
		"its Lease is newer, and the kubelet silent since": {func(in *Input) { node(in, "n2", func(n *Node) { n.Renewed = cut.Add(20 * time.Second) }) }, "", ""},
		"the reporter is on that node":                     {func(in *Input) { in.NamespaceServers[0].Node = "n2" }, ReporterOnSameNode, ""},
		"no data server answers":                           {func(in *Input) { *in = lost(*in, 0, 1) }, NoServerReachable, ""},
		"two of three nodes":                               {func(in *Input) { node(in, "n1", func(n *Node) { n.Ready = false }) }, TooManyNodesUnhealthy, ""},
		"a short time after the last one":                  {func(in *Input) { in.Servers[2].Last, in.Servers[2].Count = cut.Add(-3*minute), 1 }, CoolingDown, ""},
		"long enough after the last one":                   {func(in *Input) { in.Servers[2].Last, in.Servers[2].Count = cut.Add(-6*minute), 1 }, "", ""},
		"its pod waits for a node":                         {func(in *Input) { in.Servers[2].Pod.Node = "" }, NotScheduled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := off(lost(powered(minute), 2), "n2", ShutdownTaint)
			tc.change(&in)
			plan := Decide(in)
			got := plan.Refused["training-2"]
			if got.Reason != tc.want || !strings.Contains(got.Message, tc.says) || tc.want != "" && got.Message == "" {
				t.Errorf("%q (%s), want %q", got.Reason, got.Message, tc.want)
			}
			if begins := len(plan.Fences) > 0; begins != (tc.want == "") || len(plan.Delete)+len(plan.Detach) > 0 {
				t.Errorf("%+v", plan)
			}
			if tc.want != "" && tc.want != NotScheduled && plan.Again == 0 {
				t.Error("it is not looked at again: neither Leases nor volumes are watched")
			}
		})
	}
}

func TestWithoutPermissionAPowerCutMovesNothing(t *testing.T) {
	in := off(lost(powered(minute), 2), "n2", ShutdownTaint)
	in.Allowed = false
	if plan := Decide(in); len(plan.Fences)+len(plan.Delete)+len(plan.Detach)+len(plan.Refused) != 0 {
		t.Errorf("%+v", plan)
	}
}

func TestThePodOfAMachineThatIsOffIsDeleted(t *testing.T) {
	in := begun(off(lost(powered(minute+time.Second), 2), "n2", ShutdownTaint))
	plan := Decide(in)
	if len(plan.Delete) != 1 || plan.Delete[0].UID != "uid-training-2" || len(plan.Detach) != 0 || len(plan.Fences) != 1 || len(plan.KeepOff) != 0 {
		t.Fatalf("%+v", plan)
	}
}

// The machine may come back at any moment: what was decided a moment ago is not done then. Nothing was fenced, so "stop" is a stop, too.
func TestAFailoverByPowerStopsAsSoonAsItsReasonIsGone(t *testing.T) {
	for name, change := range map[string]func(in *Input){
		"the kubelet is heard again":      func(in *Input) { node(in, "n2", func(n *Node) { n.Ready, n.Silent = true, false }) },
		"the kubelet says it is starting": func(in *Input) { node(in, "n2", func(n *Node) { n.Silent = false }) },
		"it has booted":                   func(in *Input) { node(in, "n2", func(n *Node) { n.BootID = "boot-2" }) },
		"the Node was made again":         func(in *Input) { node(in, "n2", func(n *Node) { n.UID = "other" }) },
		"the Node is deleted":             func(in *Input) { delete(in.Nodes, "n2") },
		"the taint is gone":               func(in *Input) { node(in, "n2", func(n *Node) { n.Off = "" }) },
		"it is not allowed any more":      func(in *Input) { in.Allowed = false },
		"data servers could be placed there again": func(in *Input) {
			node(in, "n2", func(n *Node) { n.Closed = false })
		},
	} {
		t.Run(name, func(t *testing.T) {
			for what, in := range map[string]Input{"begun": begun(lost(powered(2*minute), 2)), "deleted": moved(lost(powered(2*minute), 2))} {
				in = off(in, "n2", ShutdownTaint)
				change(&in)
				if plan := Decide(in); len(plan.Delete)+len(plan.Detach) != 0 {
					t.Errorf("%s: %+v", what, plan)
				}
			}
		})
	}
	in := begun(off(powered(2*minute), "n2", ShutdownTaint))
	if plan := Decide(in); len(plan.Delete)+len(plan.Detach)+len(plan.Fences) != 0 {
		t.Errorf("the data server answers: %+v", plan)
	}
}

func TestVolumesAreDetachedOnceThePodIsGone(t *testing.T) {
	in := moved(off(lost(powered(minute+2*time.Second), 2), "n2", ShutdownTaint))
	other := in.Servers[2].Volumes[0]
	other.Name, other.Attachments = "pv-other", []Attachment{{Name: "csi-x", UID: "va-x", Node: "n0"}}
	in.Servers[2].Volumes = append(in.Servers[2].Volumes, other)
	if plan := Decide(in); len(plan.Detach) != 0 || plan.Again == 0 || len(plan.Fences) != 1 || plan.Waits["training-2"] == "" {
		t.Fatalf("a kubelet that boots just now may not know yet that the pod is deleted: %+v", plan)
	}
	in.Now = cut.Add(minute + 3*time.Second + 100*time.Millisecond)
	if plan := Decide(in); len(plan.Detach) != 0 {
		t.Fatalf("the time of the deletion has no fractions of a second, so this may be 1.2 s after it: %+v", plan)
	}
	in.Now = cut.Add(minute + 4*time.Second)
	plan := Decide(in)
	if len(plan.Detach) != 1 || plan.Detach[0].UID != "va-2" || plan.Detach[0].Version != "7" || len(plan.Delete) != 0 {
		t.Fatalf("%+v", plan)
	}
	in.Fences[0].Deleted = time.Time{}
	if plan := Decide(in); len(plan.Detach) != 0 || len(plan.Refused) != 1 || plan.Refused["training-2"].Reason != Starting {
		t.Fatalf("the status does not have yet when the pod was deleted: %+v", plan)
	}
	in.Fences[0].Deleted = cut.Add(minute + time.Second)
	if waits := plan.Waits["training-2"]; !strings.Contains(waits, "pv-2 (claim data-0-training-2)") || !strings.Contains(waits, "node n2") || strings.Contains(waits, "pv-other") {
		t.Error(waits)
	}
	in.Servers[2].Volumes[0].Attachments[0].Ending, in.Servers[2].Volumes[0].Attachments[0].Fault = true, "array does not answer"
	plan = Decide(in)
	if len(plan.Detach) != 0 || plan.Again == 0 || !strings.Contains(plan.Waits["training-2"], "array does not answer") {
		t.Fatalf("the driver detaches: %+v", plan)
	}
	in.Now = cut.Add(3 * minute)
	plan = Decide(in)
	if got := plan.Refused["training-2"]; got.Reason != VolumesNotDetached || !strings.Contains(got.Message, "pv-2") {
		t.Errorf("for long: %+v", got)
	}
	in.Servers[2].Volumes[0].Attachments = nil
	in.Now = cut.Add(minute + 6*time.Second)
	plan = Decide(in)
	if len(plan.Detach) != 0 || len(plan.Fences) != 1 || plan.Waits["training-2"] != "" || plan.Refused["training-2"].Reason != Starting {
		t.Errorf("detached: %+v", plan)
	}
	in.Servers[2].Serving, in.Servers[2].Since = true, time.Time{}
	if plan := Decide(in); len(plan.Fences) != 0 {
		t.Errorf("it serves: %+v", plan)
	}
}

// With the taint out-of-service the attach/detach controller detaches by itself. It would be two that do it.
func TestKubernetesDetachesWhereANodeIsOutOfService(t *testing.T) {
	in := moved(off(lost(powered(2*minute), 2), "n2", OutOfServiceTaint))
	in.Now = cut.Add(minute + 30*time.Second)
	plan := Decide(in)
	if len(plan.Detach) != 0 || len(plan.Fences) != 1 || !strings.Contains(plan.Waits["training-2"], "pv-2") {
		t.Errorf("%+v", plan)
	}
	// Kubernetes deletes the pod, too. Whoever is first is right.
	in = begun(off(lost(powered(2*minute), 2), "n2", OutOfServiceTaint))
	in.Servers[2].Pod.Ending = true
	if plan := Decide(in); len(plan.Delete) != 1 {
		t.Errorf("%+v", plan)
	}
}

func TestTheNextPodOnAMachineThatIsBackIsLeftAlone(t *testing.T) {
	in := moved(off(lost(powered(2*minute), 2), "n2", ShutdownTaint))
	in.Servers[2].Pod.Node = "n2" // The machine was on again for a moment.
	if plan := Decide(in); len(plan.Detach)+len(plan.Delete) != 0 {
		t.Errorf("the volume of a pod that may run is detached: %+v", plan)
	}
}

func TestOneMachineAtATimeByPower(t *testing.T) {
	in := powered(minute)
	for i, name := range []string{"n3", "n4", "n5"} {
		in.Nodes[name] = Node{Ready: true, BootID: "boot-" + name, UID: "node-uid-" + name, Renewed: cut}
		s := in.Servers[0]
		s.Name = "training-" + string(rune('3'+i))
		s.Pod = Pod{Name: s.Name, UID: "uid-" + s.Name, Node: name, Ready: true}
		s.Boot = Boot{PodUID: s.Pod.UID, NodeUID: "node-uid-" + name, BootID: "boot-" + name}
		s.Volumes = []Volume{{Name: "pv-" + s.Name, Nodes: []string{"n0", name}, Attachments: []Attachment{{Name: "csi-" + s.Name, Node: name}}}}
		in.Servers = append(in.Servers, s)
	}
	in = off(off(lost(in, 2, 3), "n2", ShutdownTaint), "n3", ShutdownTaint)
	plan := Decide(in)
	if len(plan.Fences) != 1 || plan.Fences[0].Node != "n2" || plan.Refused["training-3"].Reason != AnotherInProgress {
		t.Fatalf("%+v", plan)
	}
	in.Fences = plan.Fences
	in.Servers[2].Pod = Pod{Name: "training-2", UID: "uid-new", Node: "n0"}
	if plan := Decide(in); plan.Refused["training-3"].Reason != AnotherInProgress {
		t.Errorf("before the first serves: %+v", plan)
	}
	in.Servers[2].Serving, in.Servers[2].Since = true, time.Time{}
	plan = Decide(in)
	if len(plan.Fences) != 1 || plan.Fences[0].Server != "training-3" || !slices.Equal(plan.KeepOff, nil) {
		t.Errorf("after it serves: %+v", plan)
	}
}

package failover

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const rbd = "rbd.csi.ceph.com"

// inCluster is a storage of Ceph's driver.
func inCluster(id string) StorageOf {
	return StorageOf{Driver: rbd, Parameters: map[string]string{"clusterID": id}}
}

// fenced is powered, a minute after the node of data server 2 was cut off, with a fence that covers both addresses of this node. csi-addons
// has reported the second as the one from which the node uses the storage.
func fenced(after time.Duration) Input {
	in := lost(powered(after), 2)
	node(&in, "n2", func(n *Node) {
		n.Ready, n.Silent, n.Closed = false, true, true
		n.Addresses, n.Reported = []string{"10.0.0.2", "fd00::2"}, cut.Add(-2*minute)
	})
	for i := range in.Servers {
		v := &in.Servers[i].Volumes[0]
		v.Driver, v.Attributes = rbd, map[string]string{"clusterID": "a", "pool": "rbd"}
	}
	in.Storage = StorageFences{
		Fences: []NetworkFence{{
			Name: "n2-off", Storage: inCluster("a"), CIDRs: []string{"10.0.0.2/32", "fd00::2/128"},
			State: "Fenced", Result: "Succeeded", Generation: 1, Made: cut.Add(20 * time.Second),
		}},
		Clients: []StorageClient{
			{Node: "n2", Storage: inCluster("a"), CIDRs: []string{"fd00::2/128"}},
			{Node: "n1", Storage: inCluster("a"), CIDRs: []string{"10.0.0.1/32"}},
		},
	}
	return in
}

// Each way in which fences may say less than that the storage of all volumes refuses the whole node. Nothing is done then.
func TestWhenTheStorageRefusesANode(t *testing.T) {
	fence := func(change func(f *NetworkFence)) func(*Input) {
		return func(in *Input) { change(&in.Storage.Fences[0]) }
	}
	more := func(change func(f *NetworkFence)) func(*Input) {
		return func(in *Input) {
			other := in.Storage.Fences[0]
			other.Name, other.CIDRs = "other", slices.Clone(other.CIDRs)
			change(&other)
			in.Storage.Fences = append(in.Storage.Fences, other)
		}
	}
	for name, tc := range map[string]struct {
		change func(in *Input)
		says   string // "" means that it begins
	}{
		"it covers both addresses": {func(*Input) {}, ""},
		"it covers more":           {fence(func(f *NetworkFence) { f.CIDRs = []string{"10.0.0.0/24", "fd00::/64"} }), ""},
		"two fences cover it together": {func(in *Input) {
			fence(func(f *NetworkFence) { f.CIDRs = f.CIDRs[:1] })(in)
			more(func(f *NetworkFence) { f.CIDRs = []string{"fd00::2/128"} })(in)
		}, ""},
		"another fence of another node failed":  {more(func(f *NetworkFence) { f.CIDRs, f.Result = []string{"10.0.0.1/32"}, "Failed" }), ""},
		"another fence of the same node failed": {more(func(f *NetworkFence) { f.Result = "Failed" }), ""},
		"another node's fence is Unfenced":      {more(func(f *NetworkFence) { f.CIDRs, f.State = []string{"10.0.0.1/32"}, "Unfenced" }), ""},
		"the class of the fence has no parameters": {func(in *Input) {
			in.Storage.Fences[0].Storage.Parameters, in.Storage.Clients[0].Storage.Parameters = nil, nil
		}, ""},

		"one address is left out":                        {fence(func(f *NetworkFence) { f.CIDRs = f.CIDRs[:1] }), "NetworkFence n2-off covers 10.0.0.2, not fd00::2 of node n2"},
		"half of a range":                                {fence(func(f *NetworkFence) { f.CIDRs = []string{"10.0.0.2/32", "fd00::4/127"} }), "covers 10.0.0.2, not fd00::2"},
		"an address without a block":                     {fence(func(f *NetworkFence) { f.CIDRs = []string{"10.0.0.2", "fd00::2/128"} }), "covers fd00::2, not 10.0.0.2"},
		"the node uses the storage from a third address": {func(in *Input) { in.Storage.Clients[0].CIDRs = []string{"192.168.7.2/32"} }, "not 192.168.7.2 of node n2"},
		"the node uses the storage from a whole network": {func(in *Input) { in.Storage.Clients[0].CIDRs = []string{"10.0.0.2/31"} }, "not 10.0.0.2/31 of node n2"},
		"it is not reported from where the node uses the storage": {
			func(in *Input) { in.Storage.Clients = in.Storage.Clients[1:] }, "csi-addons does not report from which addresses node n2 uses the storage",
		},
		"what is reported is of another storage": {func(in *Input) { in.Storage.Clients[0].Storage = inCluster("b") }, "csi-addons does not report"},
		"what is reported is empty":              {func(in *Input) { in.Storage.Clients[0].CIDRs = nil }, "csi-addons does not report"},
		"the Node has no address": {func(in *Input) {
			node(in, "n2", func(n *Node) { n.Addresses = nil })
		}, "Node n2 has no address"},

		"it failed":               {fence(func(f *NetworkFence) { f.Result = "Failed" }), "NetworkFence n2-off has the result Failed"},
		"it has no result":        {fence(func(f *NetworkFence) { f.Result = "" }), "has no result yet"},
		"it is Unfenced":          {fence(func(f *NetworkFence) { f.State = "Unfenced" }), "NetworkFence n2-off is Unfenced, so the storage may accept 10.0.0.2, fd00::2 again"},
		"another one is Unfenced": {more(func(f *NetworkFence) { f.CIDRs, f.State = []string{"10.0.0.0/8"}, "Unfenced" }), "NetworkFence other is Unfenced, so the storage may accept 10.0.0.2 again"},
		"another driver's is Unfenced": {more(func(f *NetworkFence) {
			f.Storage, f.State = StorageOf{Driver: "cephfs.csi.ceph.com"}, "Unfenced"
		}), "NetworkFence other is Unfenced"},
		"its state is new to us":  {fence(func(f *NetworkFence) { f.State = "Loose" }), `has fenceState "Loose"`},
		"it is being deleted":     {fence(func(f *NetworkFence) { f.Ending = true }), "NetworkFence n2-off is being deleted"},
		"it was changed":          {fence(func(f *NetworkFence) { f.Generation = 2 }), "was changed after it was made"},
		"its class is gone":       {fence(func(f *NetworkFence) { f.Storage = StorageOf{} }), "its NetworkFenceClass does not exist"},
		"it is of another driver": {fence(func(f *NetworkFence) { f.Storage.Driver = "cephfs.csi.ceph.com" }), "is for driver cephfs.csi.ceph.com, and volume pv-2 (claim data-0-training-2) is of rbd.csi.ceph.com"},
		"it is of another Ceph":   {fence(func(f *NetworkFence) { f.Storage = inCluster("b") }), "for another storage of driver rbd.csi.ceph.com"},
		"the volume does not say which Ceph": {func(in *Input) {
			in.Servers[2].Volumes[0].Attributes = nil
		}, "for another storage"},
		"the volume is of no CSI driver": {func(in *Input) { in.Servers[2].Volumes[0].Driver = "" }, "pv-2 (claim data-0-training-2) is not known to be of a CSI driver"},
		"a second volume is of another driver": {func(in *Input) {
			other := in.Servers[2].Volumes[0]
			other.Name, other.Driver = "pv-iscsi", "iscsi.example.com"
			in.Servers[2].Volumes = append(in.Servers[2].Volumes, other)
		}, "pv-iscsi"},
		"its volumes are not known":      {func(in *Input) { in.Servers[2].Volumes = nil }, "the volumes are not known"},
		"the kubelet has reported since": {func(in *Input) { node(in, "n2", func(n *Node) { n.Reported = cut.Add(25 * time.Second) }) }, "was made before the kubelet of node n2 reported last, at 2026-11-25T12:00:25Z"},
		"it is of the same second":       {func(in *Input) { node(in, "n2", func(n *Node) { n.Reported = cut.Add(20 * time.Second) }) }, "was made before"},
		"the last report is not known":   {func(in *Input) { node(in, "n2", func(n *Node) { n.Reported = time.Time{} }) }, "which is not known"},
		"it is of another node":          {fence(func(f *NetworkFence) { f.CIDRs = []string{"10.0.0.1/32"} }), "is off; once you know"},
		"there is none":                  {func(in *Input) { in.Storage.Fences = nil }, "is off; once you know"},
		"they can't be read":             {func(in *Input) { in.Storage.Fault = "the operator may not" }, "or refused by the storage (the operator may not); once you know"},
		"the good one is hidden by a bad one": {func(in *Input) {
			fence(func(f *NetworkFence) { f.CIDRs = f.CIDRs[:1] })(in)
			more(func(f *NetworkFence) { f.Result = "Failed" })(in)
		}, "not fd00::2 of node n2; NetworkFence other has the result Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			in := fenced(minute)
			tc.change(&in)
			plan := Decide(in)
			if len(plan.Delete)+len(plan.Detach)+len(plan.KeepOff) != 0 {
				t.Errorf("something is done before it is written down: %+v", plan)
			}
			if tc.says == "" {
				if len(plan.Fences) != 1 || plan.Fences[0].Evidence != NetworkFenced || !strings.Contains(plan.Fences[0].Message, "node n2 is refused by the storage: NetworkFence n2-off") {
					t.Errorf("%+v", plan)
				}
				return
			}
			got := plan.Refused["training-2"]
			if len(plan.Fences) != 0 || got.Reason != PowerUnknown || !strings.Contains(got.Message, tc.says) || !strings.Contains(got.Message, "kubectl taint node n2") {
				t.Errorf("%+v", plan)
			}
		})
	}
}

// What holds for a taint holds for fences as well.
func TestTheOtherGuardsHoldForFences(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(in *Input)
		want   Reason
	}{
		"its kubelet is heard":                 {func(in *Input) { node(in, "n2", func(n *Node) { n.Ready, n.Silent = true, false }) }, NodeAlive},
		"its kubelet says it is not ready":     {func(in *Input) { node(in, "n2", func(n *Node) { n.Silent = false }) }, NodeAlive},
		"it has booted since":                  {func(in *Input) { node(in, "n2", func(n *Node) { n.BootID = "boot-2" }) }, EvidenceOutdated},
		"its Node is deleted":                  {func(in *Input) { delete(in.Nodes, "n2") }, NodeGone},
		"data servers could be placed there":   {func(in *Input) { node(in, "n2", func(n *Node) { n.Closed = false }) }, NodeTakesPods},
		"a volume has no attachment":           {func(in *Input) { in.Servers[2].Volumes[0].Attachments = nil }, VolumesNotAttached},
		"its volumes are on that node":         {func(in *Input) { in.Servers[2].Pinned, in.Servers[2].Volumes[0].Nodes = true, nil }, VolumesOnNode},
		"two of three nodes":                   {func(in *Input) { node(in, "n1", func(n *Node) { n.Ready = false }) }, TooManyNodesUnhealthy},
		"a short time after the last failover": {func(in *Input) { in.Servers[2].Last, in.Servers[2].Count = cut.Add(-3*minute), 1 }, CoolingDown},
		"silent for a moment":                  {func(in *Input) { in.Now = cut.Add(6 * time.Second) }, Observing},
	} {
		in := fenced(minute)
		tc.change(&in)
		if plan := Decide(in); len(plan.Fences)+len(plan.Delete)+len(plan.Detach) != 0 || plan.Refused["training-2"].Reason != tc.want {
			t.Errorf("%s: %+v", name, plan)
		}
	}
	in := off(fenced(minute), "n2", OutOfServiceTaint)
	if plan := Decide(in); len(plan.Fences) != 1 || plan.Fences[0].Evidence != OutOfServiceTaint {
		t.Errorf("Kubernetes acts on the taint, whatever is fenced: %+v", plan)
	}
}

func TestAFailoverByFencesGoesOnWhileTheyHold(t *testing.T) {
	by := func(in Input, next bool) Input {
		if next {
			in = moved(in)
			in.Now = cut.Add(minute + 4*time.Second)
		} else {
			in = begun(in)
		}
		in.Fences[0].Evidence = NetworkFenced
		return in
	}
	if plan := Decide(by(fenced(minute+time.Second), false)); len(plan.Delete) != 1 || plan.Delete[0].UID != "uid-training-2" || len(plan.Fences) != 1 {
		t.Fatalf("%+v", plan)
	}
	if plan := Decide(by(fenced(minute), true)); len(plan.Detach) != 1 || plan.Detach[0].UID != "va-2" {
		t.Fatalf("%+v", plan)
	}
	for name, change := range map[string]func(in *Input){
		"Unfenced":      func(in *Input) { in.Storage.Fences[0].State = "Unfenced" },
		"deleted":       func(in *Input) { in.Storage.Fences = nil },
		"made smaller":  func(in *Input) { in.Storage.Fences[0].CIDRs = in.Storage.Fences[0].CIDRs[:1] },
		"with a report": func(in *Input) { node(in, "n2", func(n *Node) { n.Reported = in.Now }) },
	} {
		for _, next := range []bool{false, true} {
			in := by(fenced(minute), next)
			change(&in)
			if plan := Decide(in); len(plan.Delete)+len(plan.Detach) != 0 {
				t.Errorf("%s: %+v", name, plan)
			}
		}
	}
	in := by(fenced(minute), true)
	in.Storage.Fences[0].State = "Unfenced"
	if plan := Decide(in); !strings.Contains(plan.Waits["training-2"], "pv-2 (claim data-0-training-2) to be detached from node n2") || !strings.Contains(plan.Waits["training-2"], "NetworkFence n2-off is Unfenced") {
		t.Errorf("%q", plan.Waits["training-2"])
	}
}

package fileserver

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/volumes"
	"github.com/howdah/howdah/internal/failover"
)

// withoutPower is lostNode on a volume that every node can use, a minute after the cloud has seen that the machine is off.
func withoutPower() *observed {
	o := lostNode()
	o.fileServer.Spec.Failover.Fencing, o.steward, o.now = v1alpha1.FailoverFencingPower, nil, at(60).Time
	for i := range o.nodes {
		o.nodes[i].UID = "node-uid"
	}
	o.fileServer.Status.Servers = []v1alpha1.FileServerServerStatus{{
		Name: "fs-2", ServedBoot: v1alpha1.ServedBoot{PodUID: "uid-fs-2", NodeUID: "node-uid", BootID: "boot-n2"},
	}}
	o.nodes[2].Status.Conditions[0].Status = corev1.ConditionUnknown
	o.nodes[2].Spec.Taints = []corev1.Taint{{Key: taintShutdown, Effect: corev1.TaintEffectNoSchedule}}
	o.closedNodes = closedNodes(o.nodes, nil)
	o.storage = &volumes.Storage{Attached: map[string][]failover.Volume{"fs-2": {{
		Name: "pv", Claim: "data-0-fs-2", Nodes: []string{"n0", "n1"}, Attachments: []failover.Attachment{{Name: "csi-1", UID: "va", Version: "1", Node: "n2"}},
	}}}}
	return o
}

// passed is one pass, with the status that follows kept for the next one.
func (o *observed) passed() (decision, v1alpha1.FileServerServerStatus) {
	d := decision{failover: failover.Decide(o.failoverInput()), deletedLost: true}
	status := v1alpha1.FileServerServerStatus{
		Name: "fs-2", LastFailover: o.reportFailover("fs-2", d), FailoverRefusal: o.refusalOf("fs-2", d.failover), ServedBoot: o.servedBoot("fs-2"),
	}
	o.fileServer.Status.Servers = []v1alpha1.FileServerServerStatus{status}
	return d, status
}

func (o *observed) setPod(uid, node string) {
	pod := o.pods["fs-2"]
	pod.UID, pod.Spec.NodeName = "uid-next", node
	o.pods["fs-2"] = pod
}

func TestAFailoverByPowerIsReportedStepByStep(t *testing.T) {
	o := withoutPower()
	d, status := o.passed()
	record := status.LastFailover
	if len(d.failover.Delete)+len(d.failover.Detach) != 0 || record.Count != 1 || record.Evidence != v1alpha1.FailoverEvidenceShutdownTaint ||
		!record.DetectedTime.Equal(at(60)) || !record.FencedTime.Equal(at(60)) || record.PodDeletedTime != nil {
		t.Fatalf("before it is written, nothing is deleted: %+v, %+v", d.failover, record)
	}
	o.now = at(61).Time
	d, status = o.passed()
	if len(d.failover.Delete) != 1 || status.LastFailover.PodDeletedTime != nil || status.LastFailover.Count != 1 {
		t.Fatalf("the pod is to be deleted, which counts once it is seen: %+v, %+v", d.failover, status.LastFailover)
	}
	if waits := o.failoverWaits("fs-2", d); !strings.Contains(waits, "the machine of node n2 is off") {
		t.Error(waits)
	}

	o.setPod("uid-next", "n0")
	o.now = at(62).Time
	if d, status = o.passed(); !status.LastFailover.PodDeletedTime.Equal(at(62)) || len(d.failover.Detach) != 0 || status.LastFailover.VolumesDetachedTime != nil {
		t.Fatalf("%+v, %+v", d.failover, status.LastFailover)
	}
	o.now = at(65).Time
	if d, _ = o.passed(); len(d.failover.Detach) != 1 || d.failover.Detach[0].UID != "va" {
		t.Fatalf("%+v", d.failover)
	}
	if waits := o.failoverWaits("fs-2", d); !strings.Contains(waits, "waiting for pv (claim data-0-fs-2) to be detached from node n2") {
		t.Error(waits)
	}
	o.now = at(140).Time
	if _, status = o.passed(); status.FailoverRefusal.Reason != string(failover.VolumesNotDetached) {
		t.Errorf("%+v", status.FailoverRefusal)
	}
	o.storage = &volumes.Storage{Attached: map[string][]failover.Volume{"fs-2": {{Name: "pv", Claim: "data-0-fs-2", Nodes: []string{"n0", "n1"}}}}}
	if _, status = o.passed(); !status.LastFailover.VolumesDetachedTime.Equal(at(140)) || status.FailoverRefusal.Reason != "" {
		t.Fatalf("%+v", status)
	}
	o.setUnreachable("fs-2", nil)
	o.now = at(150).Time
	d, status = o.passed()
	if record = status.LastFailover; !record.ServingTime.Equal(at(150)) || record.Completed != 1 || *record.DurationSeconds != 150 || len(d.failover.Fences) != 0 {
		t.Fatalf("%+v", record)
	}
	if status.ServedBoot.PodUID != "uid-next" || status.ServedBoot.BootID != "boot-n0" {
		t.Errorf("%+v", status.ServedBoot)
	}
	if d, status = o.passed(); len(d.failover.Fences) != 0 || status.LastFailover.Count != 1 {
		t.Errorf("%+v", status.LastFailover)
	}
}

// The machine may be on again before its pod is deleted. What was begun must not be gone on with at the next power cut, which has its own guards.
func TestAFailoverByPowerThatIsGivenUpIsOver(t *testing.T) {
	o := withoutPower()
	o.passed()
	o.nodes[2].Status.Conditions[0].Status, o.nodes[2].Status.NodeInfo.BootID, o.now = corev1.ConditionTrue, "boot-2", at(62).Time
	d, status := o.passed()
	if len(d.failover.Delete) != 0 || !status.LastFailover.StoppedTime.Equal(at(62)) {
		t.Fatalf("%+v, %+v", d.failover, status.LastFailover)
	}
	o.setUnreachable("fs-2", nil)
	if _, status = o.passed(); status.ServedBoot.BootID != "boot-n2" {
		t.Fatalf("the taint is still there, so it may be of the boot before: %+v", status.ServedBoot)
	}
	o.nodes[2].Spec.Taints = nil
	if _, status = o.passed(); status.ServedBoot.BootID != "boot-2" {
		t.Fatalf("%+v", status.ServedBoot)
	}

	off := withoutPower()
	o.nodes[2].Status.Conditions[0].Status, o.nodes[2].Spec.Taints, o.now = corev1.ConditionUnknown, off.nodes[2].Spec.Taints, at(120).Time
	o.setUnreachable("fs-2", at(70))
	if d, status = o.passed(); len(d.failover.Fences) != 0 || status.FailoverRefusal.Reason != string(failover.CoolingDown) || status.LastFailover.Count != 1 {
		t.Fatalf("the next power cut follows at once: %+v, %+v", d.failover, status)
	}
	o.now = at(600).Time
	if d, status = o.passed(); len(d.failover.Delete) != 0 || status.LastFailover.Count != 2 || status.LastFailover.StoppedTime != nil {
		t.Fatalf("%+v, %+v", d.failover, status.LastFailover)
	}
	if d, _ = o.passed(); len(d.failover.Delete) != 1 {
		t.Errorf("%+v", d.failover)
	}
}

func TestWhenABootCountsAsServed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*observed)
		want   string
	}{
		"it serves":                     {func(*observed) {}, "boot-n1"},
		"failover is by the storage":    {func(o *observed) { o.fileServer.Spec.Failover.Fencing = v1alpha1.FailoverFencingStorage }, ""},
		"it does not answer":            {func(o *observed) { o.setUnreachable("fs-1", at(0)) }, ""},
		"its pod is being stopped":      {func(o *observed) { p := o.pods["fs-1"]; p.DeletionTimestamp = at(0); o.pods["fs-1"] = p }, ""},
		"its node is not Ready":         {func(o *observed) { o.nodes[1].Status.Conditions[0].Status = corev1.ConditionUnknown }, ""},
		"its node has the cloud's word": {func(o *observed) { o.nodes[1].Spec.Taints = []corev1.Taint{{Key: taintShutdown}} }, ""},
		"its node is out of service":    {func(o *observed) { o.nodes[1].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}} }, ""},
		"its node has other taints":     {func(o *observed) { o.nodes[1].Spec.Taints = []corev1.Taint{{Key: "example.com/gpu"}} }, "boot-n1"},
		"its node is not known":         {func(o *observed) { o.nodes = o.nodes[:1] }, ""},
		"its boot is not known":         {func(o *observed) { o.nodes[1].Status.NodeInfo.BootID = "" }, ""},
	} {
		o := withoutPower()
		tc.change(o)
		if got := o.servedBoot("fs-1"); got.BootID != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The cache may be seconds behind. The API server is asked right before, and what it has must be what was decided on.
func TestNothingIsDeletedOfAMachineThatIsBack(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(node *corev1.Node, attachment *storagev1.VolumeAttachment)
		gone   bool
	}{
		"the machine is off": {func(*corev1.Node, *storagev1.VolumeAttachment) {}, true},
		"it is Ready": {func(n *corev1.Node, _ *storagev1.VolumeAttachment) {
			n.Status.Conditions[0].Status = corev1.ConditionTrue
		}, false},
		"its kubelet reports": {func(n *corev1.Node, _ *storagev1.VolumeAttachment) {
			n.Status.Conditions[0].Status = corev1.ConditionFalse
		}, false},
		"it has booted":             {func(n *corev1.Node, _ *storagev1.VolumeAttachment) { n.Status.NodeInfo.BootID = "boot-2" }, false},
		"the taint is gone":         {func(n *corev1.Node, _ *storagev1.VolumeAttachment) { n.Spec.Taints = nil }, false},
		"the Node is deleted":       {func(n *corev1.Node, _ *storagev1.VolumeAttachment) { n.Name = "other" }, false},
		"it is another attachment":  {func(_ *corev1.Node, a *storagev1.VolumeAttachment) { a.UID = "other" }, false},
		"the attachment is another": {func(_ *corev1.Node, a *storagev1.VolumeAttachment) { a.ResourceVersion = "999" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := withoutPower()
			node := o.nodes[2].DeepCopy()
			attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-1", UID: "va", ResourceVersion: "1"}}
			tc.change(node, attachment)
			api := fake.NewClientBuilder().WithObjects(node, attachment).Build()
			r := &Reconciler{Client: withPreconditions{api}, Live: api}
			fence := failover.Fence{Server: "fs-2", Node: "n2", NodeUID: "node-uid", BootID: "boot-n2"}
			plan := failover.Plan{Fences: []failover.Fence{fence}, Detach: []failover.Attachment{{Name: "csi-1", UID: "va", Version: "1", Node: "n2"}}}
			if err := r.failOver(context.Background(), o, plan); err != nil {
				t.Fatal(err)
			}
			err := api.Get(context.Background(), client.ObjectKeyFromObject(attachment), attachment)
			if gone := apierrors.IsNotFound(err); gone != tc.gone {
				t.Errorf("gone: %v (%v)", gone, err)
			}
		})
	}
}

// csiAddons are a fence of node n2, and what it needs.
func csiAddons(now time.Time) (fence, class, node *unstructured.Unstructured) {
	object := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "csiaddons.openshift.io/v1alpha1", "kind": kind, "spec": spec}}
		u.SetName(name)
		u.SetGeneration(1)
		u.SetCreationTimestamp(metav1.NewTime(now))
		return u
	}
	fence = object("NetworkFence", "n2-off", map[string]any{"networkFenceClassName": "rbd", "fenceState": "Fenced", "cidrs": []any{"10.0.0.2/32"}})
	fence.Object["status"] = map[string]any{"result": "Succeeded"}
	class = object("NetworkFenceClass", "rbd", map[string]any{"provisioner": "rbd.csi.ceph.com"})
	node = object("CSIAddonsNode", "n2-rbd", map[string]any{"driver": map[string]any{"name": "rbd.csi.ceph.com", "nodeID": "n2"}})
	node.SetNamespace("rook-ceph")
	node.Object["status"] = map[string]any{"networkFenceClientStatus": []any{map[string]any{
		"networkFenceClassName": "rbd", "ClientDetails": []any{map[string]any{"id": "a", "cidrs": []any{"10.0.0.2/32"}}},
	}}}
	return fence, class, node
}

func fencedNode() *observed {
	o := withoutPower()
	node := &o.nodes[2]
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n2"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.2"}}
	node.Status.Conditions[0].LastHeartbeatTime = *at(-5)
	o.storage.(*volumes.Storage).Attached["fs-2"][0].Driver = "rbd.csi.ceph.com"
	return o
}

func TestAFenceIsReadAgainBeforeAnythingIsDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(fence, node *unstructured.Unstructured)
		gone   bool
	}{
		"it holds": {func(_, _ *unstructured.Unstructured) {}, true},
		"it is gone": {func(fence, _ *unstructured.Unstructured) {
			fence.SetName("other")
			fence.Object["spec"].(map[string]any)["cidrs"] = []any{"10.0.0.9/32"}
		}, false},
		"it is Unfenced": {func(fence, _ *unstructured.Unstructured) {
			fence.Object["spec"].(map[string]any)["fenceState"] = "Unfenced"
		}, false},
		"another address is reported": {func(_, node *unstructured.Unstructured) {
			node.Object["status"] = map[string]any{"networkFenceClientStatus": []any{map[string]any{
				"networkFenceClassName": "rbd", "ClientDetails": []any{map[string]any{"id": "a", "cidrs": []any{"192.168.0.2/32"}}},
			}}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := fencedNode()
			fence, class, node := csiAddons(at(10).Time)
			tc.change(fence, node)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fs-2", UID: "uid-fs-2"}}
			attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-1", UID: "va", ResourceVersion: "1"}}
			api := fake.NewClientBuilder().WithObjects(o.nodes[2].DeepCopy(), pod, attachment, fence, class, node).Build()
			r := &Reconciler{Client: withPreconditions{api}, Live: api}
			plan := failover.Plan{
				Fences: []failover.Fence{{Server: "fs-2", Node: "n2", NodeUID: "node-uid", BootID: "boot-n2"}},
				Delete: []failover.Pod{{Name: "fs-2", UID: "uid-fs-2", Node: "n2"}},
				Detach: []failover.Attachment{{Name: "csi-1", UID: "va", Version: "1", Node: "n2"}},
			}
			if err := r.failOver(context.Background(), o, plan); err != nil {
				t.Fatal(err)
			}
			for _, object := range []client.Object{pod, attachment} {
				if gone := apierrors.IsNotFound(api.Get(context.Background(), client.ObjectKeyFromObject(object), object)); gone != tc.gone {
					t.Errorf("%T gone: %v", object, gone)
				}
			}
		})
	}
}

func TestAFailoverByFencesIsReported(t *testing.T) {
	o := fencedNode()
	fence, class, node := csiAddons(at(10).Time)
	api := fake.NewClientBuilder().WithObjects(fence, class, node).Build()
	if err := o.readNetworkFences(context.Background(), api); err != nil {
		t.Fatal(err)
	}
	_, status := o.passed()
	if record := status.LastFailover; record.Evidence != v1alpha1.FailoverEvidenceNetworkFence || !record.FencedTime.Equal(at(60)) ||
		!strings.Contains(record.Message, "node n2 is refused by the storage: NetworkFence n2-off") {
		t.Fatalf("%+v, %+v", record, status.FailoverRefusal)
	}
	d, _ := o.passed()
	if waits := o.failoverWaits("fs-2", d); len(d.failover.Delete) != 1 || waits != "failover: the storage refuses node n2, and its pod there is to be deleted" {
		t.Errorf("%q, %+v", waits, d.failover)
	}
	o.networkFences.Fences = nil
	if d, status = o.passed(); len(d.failover.Delete) != 0 || !status.LastFailover.StoppedTime.Equal(at(60)) {
		t.Errorf("the fence is gone before the pod was deleted: %+v, %+v", d.failover, status.LastFailover)
	}
	o.setUnreachable("fs-2", nil)
	o.networkFences = failover.StorageFences{}
	if err := o.readNetworkFences(context.Background(), api); err != nil || len(o.networkFences.Fences) != 0 {
		t.Errorf("fences are read while all answer: %v", err)
	}
}

// withPreconditions checks preconditions of deletions, as the API server does and the fake client does not.
type withPreconditions struct{ client.WithWatch }

func (c withPreconditions) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	wanted := &client.DeleteOptions{}
	wanted.ApplyOptions(options)
	stored := object.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), stored); err != nil {
		return err
	}
	if p := wanted.Preconditions; p == nil || p.UID == nil || *p.UID != stored.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != stored.GetResourceVersion() {
		return apierrors.NewConflict(storagev1.Resource("any"), object.GetName(), nil)
	}
	return c.WithWatch.Delete(ctx, object)
}

func TestAnOperatorThatMayNotFailOverVolumesSaysSo(t *testing.T) {
	o := withoutPower()
	o.mayFailOver = false
	d, status := o.passed()
	if len(d.failover.Fences)+len(o.lostServers()) != 0 || status.FailoverRefusal.Reason != v1alpha1.ReasonFailoverNotAllowed ||
		!strings.Contains(status.FailoverRefusal.Message, "failover.volumes=true") || !strings.Contains(o.failoverNotAllowed(), "failover.volumes=true") {
		t.Errorf("%+v, %+v", d.failover, status.FailoverRefusal)
	}
	o.mayFailOver = true
	if lost := o.lostServers(); len(lost) != 1 || !lost["fs-2"] || o.failoverNotAllowed() != "" {
		t.Errorf("%v", lost)
	}
	o.setUnreachable("fs-2", nil)
	if lost := o.lostServers(); len(lost) != 0 {
		t.Errorf("volumes are read while all answer: %v", lost)
	}
}

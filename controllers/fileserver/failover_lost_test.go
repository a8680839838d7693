package fileserver

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/naming"
)

// leaseRenewed is a Lease that its holder has renewed at a second by the API server's clock; its own clock is ahead by some seconds.
func leaseRenewed(second, ahead int) *coordinationv1.Lease {
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes([]byte(`{"f:spec":{"f:holderIdentity":{},"f:renewTime":{}}}`))
	labels := &metav1.FieldsV1{}
	labels.SetRawBytes([]byte(`{"f:metadata":{"f:labels":{}}}`))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: naming.NamespaceServers("fs"), ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "holder", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "coordination.k8s.io/v1", FieldsType: "FieldsV1", Time: at(second), FieldsV1: fields},
			{Manager: "another", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "coordination.k8s.io/v1", FieldsType: "FieldsV1", Time: at(second + 500), FieldsV1: labels},
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("fs-namespace-a"), RenewTime: &metav1.MicroTime{Time: at(second + ahead).Add(700 * time.Millisecond)}},
	}
}

func TestRenewalsCountByTheClockOfTheAPIServer(t *testing.T) {
	for name, tc := range map[string]struct {
		lease   *coordinationv1.Lease
		renewed time.Time
		ahead   time.Duration
	}{
		"the clocks agree":                {leaseRenewed(10, 0), at(10).Add(700 * time.Millisecond), 700 * time.Millisecond},
		"the holder's is ahead":           {leaseRenewed(10, 300), at(10).Time, 300*time.Second + 700*time.Millisecond},
		"the holder's is behind":          {leaseRenewed(10, -300), at(10).Time, -300*time.Second + 700*time.Millisecond},
		"the API server's is not written": {func() *coordinationv1.Lease { l := leaseRenewed(10, 300); l.ManagedFields = nil; return l }(), at(310).Add(700 * time.Millisecond), 0},
		"it was never renewed":            {&coordinationv1.Lease{}, time.Time{}, 0},
	} {
		if renewed, ahead := renewalOf(tc.lease); !renewed.Equal(tc.renewed) || ahead != tc.ahead {
			t.Errorf("%s: %s, ahead %s", name, renewed, ahead)
		}
	}
}

// asLive are the objects of an observation as the API server has them.
func (o *observed) asLive(t *testing.T, more ...client.Object) []client.Object {
	t.Helper()
	server, pod := o.dataServers["fs-2"], o.pods["fs-2"]
	server.Namespace, pod.Namespace = "ns", "ns"
	server.Labels, pod.Labels = map[string]string{v1alpha1.FileServerLabel: "fs"}, naming.SelectDataServers("fs")
	return append([]client.Object{server.DeepCopy(), pod.DeepCopy()}, more...)
}

// A cache may be minutes behind, and clocks differ: neither may fence a data server that answers, nor keep one that is lost waiting without end.
func TestAFailoverIsDecidedOnWhatIsSoNow(t *testing.T) {
	for name, tc := range map[string]struct {
		live   func(o *observed) []client.Object
		now    int
		begins bool
		reason failover.Reason
	}{
		"as in the cache": {func(o *observed) []client.Object { return o.asLive(t, leaseRenewed(8, 0)) }, 8, true, ""},
		"it answers by now": {func(o *observed) []client.Object {
			objects := o.asLive(t, leaseRenewed(8, 0))
			objects[0].(*internalv1.DataServer).Status.Unreachable = internalv1.Unreachable{}
			return objects
		}, 8, false, ""},
		"it is another pod by now, without a node": {func(o *observed) []client.Object {
			objects := o.asLive(t, leaseRenewed(8, 0))
			pod := objects[1].(*corev1.Pod)
			pod.UID, pod.Spec.NodeName = "uid-next", ""
			return objects
		}, 8, false, failover.NotScheduled},
		"its pod is gone by now": {func(o *observed) []client.Object {
			objects := o.asLive(t, leaseRenewed(8, 0))
			return slices.Delete(objects, 1, 2)
		}, 8, false, failover.NotScheduled},
		"a pod of its name is not the FileServer's": {func(o *observed) []client.Object {
			objects := o.asLive(t, leaseRenewed(8, 0))
			objects[1].SetLabels(nil)
			return objects
		}, 8, false, failover.NotScheduled},
		"none has reported for a minute": {func(o *observed) []client.Object { return o.asLive(t, leaseRenewed(8, 0)) }, 68, false, failover.ReportOutdated},
		"the reporter's clock is an hour behind": {func(o *observed) []client.Object {
			objects := o.asLive(t, leaseRenewed(2, -3600))
			objects[0].(*internalv1.DataServer).Status.Unreachable.SinceTime = at(-3600)
			return objects
		}, 2, false, failover.Observing},
		"the reporter's clock is an hour ahead": {func(o *observed) []client.Object {
			objects := o.asLive(t, leaseRenewed(8, 3600))
			objects[0].(*internalv1.DataServer).Status.Unreachable.SinceTime = at(3600)
			return objects
		}, 8, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := lostNode()
			o.fileServer.Namespace, o.now = "ns", at(tc.now).Time
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{internalv1.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			live := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(tc.live(o)...).Build()
			if err := o.readLost(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			plan := failover.Decide(o.failoverInput())
			if begins := len(plan.Fences) > 0; begins != tc.begins || plan.Refused["fs-2"].Reason != tc.reason {
				t.Errorf("%+v", plan)
			}
		})
	}
}

func TestClientsOfALostNodeAreNamedUntilGraceHasEnded(t *testing.T) {
	fenced := v1alpha1.ServerFailover{NodeName: "n2", PodUID: "uid-fs-2", SinceTime: at(0), FencedTime: at(10), Evidence: v1alpha1.FailoverEvidenceStorageFenced}
	stopped, serving, deletedNode, earlier, refused, off := fenced, fenced, fenced, fenced, fenced, fenced
	stopped.StoppedTime, serving.ServingTime, deletedNode.NodeName, earlier.PodUID = at(11), at(30), "n9", "uid-before"
	refused.Evidence, off.Evidence = v1alpha1.FailoverEvidenceNetworkFence, v1alpha1.FailoverEvidenceShutdownTaint
	alive, second := fenced, fenced
	alive.SinceTime, second.NetworkAddresses = at(-30), []string{"10.20.0.12", "10.0.0.2"}
	for name, test := range map[string]struct {
		record v1alpha1.ServerFailover
		grace  metav1.ConditionStatus
		want   []string
	}{
		"fenced, and its kubelet has worked since": {alive, metav1.ConditionTrue, nil},
		"fenced, and the node was back since":      {earlier, metav1.ConditionTrue, nil},
		"refused by the storage":                   {refused, metav1.ConditionTrue, nil},
		"off":                                      {off, metav1.ConditionTrue, []string{"10.0.0.2", "10.244.2.0", "10.244.2.1"}},
		"no failover":                              {v1alpha1.ServerFailover{}, metav1.ConditionTrue, nil},
		"detected, and not fenced":                 {v1alpha1.ServerFailover{NodeName: "n2", DetectedTime: at(8)}, metav1.ConditionTrue, nil},
		"fenced":                                   {fenced, metav1.ConditionTrue, []string{"10.0.0.2", "10.244.2.0", "10.244.2.1"}},
		"fenced, with an address that no Node has": {second, metav1.ConditionTrue, []string{"10.0.0.2", "10.244.2.0", "10.244.2.1", "10.20.0.12"}},
		"stopped":                                  {stopped, metav1.ConditionTrue, nil},
		"serving elsewhere, in grace":              {serving, metav1.ConditionFalse, []string{"10.0.0.2", "10.244.2.0", "10.244.2.1"}},
		"serving elsewhere, and ended":             {serving, metav1.ConditionTrue, nil},
		"the Node was deleted":                     {deletedNode, metav1.ConditionTrue, nil},
	} {
		o := lostNode()
		o.nodes[2].Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}}
		o.nodes[2].Spec.PodCIDRs = []string{"10.244.2.0/24"}
		o.fileServer.Status.Servers = []v1alpha1.FileServerServerStatus{{Name: "fs-2", LastFailover: test.record}}
		o.steward.Spec.Fences, o.renewed["n2"] = []internalv1.PodFence{{PodUID: "uid-fs-2"}}, at(-3).Time
		if test.record.Evidence != v1alpha1.FailoverEvidenceStorageFenced {
			o.fileServer.Spec.Failover.Fencing = v1alpha1.FailoverFencingPower
		}
		server := o.dataServers["fs-2"]
		server.Status.Conditions = append(slices.Clone(server.Status.Conditions), metav1.Condition{Type: internalv1.GraceEnded, Status: test.grace})
		o.dataServers["fs-2"] = server
		var got []string
		for _, address := range o.lostNodeAddresses()["fs-2"] {
			got = append(got, address.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// The next pod's ganesha takes them at its start, which can be before the pass after this one.
func TestClientsOfALostNodeAreNamedInThePassThatDeletesItsPod(t *testing.T) {
	o := lostNode()
	o.now = at(11).Time
	o.nodes[2].Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}}
	o.renewed["n2"] = at(-3).Time
	o.fileServer.Status.Servers = []v1alpha1.FileServerServerStatus{{Name: "fs-2", LastFailover: v1alpha1.ServerFailover{
		NodeName: "n2", PodUID: "uid-fs-2", SinceTime: at(0), DetectedTime: at(8),
	}}}
	o.steward.Spec.Fences = []internalv1.PodFence{{PodUID: "uid-fs-2", DataServerName: "fs-2", NodeName: "n2", SinceTime: at(0), RequestTime: at(8)}}
	if got := o.lostNodeAddresses()["fs-2"]; len(got) > 0 {
		t.Errorf("before the steward's answer: %v", got)
	}
	o.steward.Status.Fences = []internalv1.PodFenceAnswer{{PodUID: "uid-fs-2", RequestTime: at(8), Time: at(10)}}
	if plan := failover.Decide(o.failoverInput()); len(plan.Delete) != 1 {
		t.Fatalf("the pass does not delete the pod: %+v", plan)
	}
	if got := o.lostNodeAddresses()["fs-2"]; !slices.Equal(got, []netip.Addr{netip.MustParseAddr("10.0.0.2")}) {
		t.Errorf("%v", got)
	}
}

// A data server that is fenced must come to another node, also where the quota has no room for one more pod.
func TestAPodThatIsRefusedDelaysAFailoverUntilTheNodeTakesNone(t *testing.T) {
	for name, closed := range map[string]bool{"the scheduler could take the lost node": false, "Kubernetes keeps pods off it": true} {
		o := lostNode()
		o.fileServer.Namespace, o.closedNodes = "ns", map[string]bool{"n2": closed}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fs-2", UID: "uid-fs-2"}}
		api := fake.NewClientBuilder().WithObjects(pod).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
				return apierrors.NewForbidden(corev1.Resource("pods"), object.GetName(), errors.New("exceeded quota"))
			},
		}).Build()
		r := &Reconciler{Client: withPreconditions{api}, Live: api}
		err := r.failOver(t.Context(), o, failover.Plan{KeepOff: []string{"n2"}, Delete: []failover.Pod{{Name: "fs-2", UID: "uid-fs-2", Node: "n2"}}})
		gone := apierrors.IsNotFound(api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		if gone != closed || (err == nil) != closed {
			t.Errorf("%s: gone %v, %v", name, gone, err)
		}
	}
}

// The node's Ready condition has the time of the kubelet, and the Lease that of the API server.
func TestSinceWhenANodeIsReadyCountsByTheClockOfTheAPIServer(t *testing.T) {
	for ahead, want := range map[time.Duration]time.Time{0: at(300).Time, exact: at(300).Time, time.Hour: at(300 - 3600).Time, -time.Hour: at(300 + 3600).Time} {
		o := lostNode()
		o.nodes[2].Status.Conditions[0].LastTransitionTime = *at(300)
		o.clocksAhead = map[string]time.Duration{"n2": ahead}
		in := o.failoverInput()
		if got := in.Nodes["n2"].ReadySince; !got.Equal(want) {
			t.Errorf("the kubelet's clock is %s ahead: Ready since %s, want %s", ahead, got, want)
		}
		if got := in.Nodes["n1"].ReadySince; !got.IsZero() {
			t.Errorf("not known, and Ready since %s", got)
		}
	}
	o := lostNode()
	o.nodes[2].Status.Conditions[0].Status, o.nodes[2].Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, *at(300)
	if got := o.failoverInput().Nodes["n2"].ReadySince; !got.IsZero() {
		t.Errorf("not Ready, and Ready since %s", got)
	}
}

// A cut in which the node's controller does not call the node NotReady ends with a renewal, too. That its kubelet is back says the pod that keeps others
// off: it was made meanwhile.
func TestAFenceEndsAfterTheKubeletTookNoteOfWhatWasMadeMeanwhile(t *testing.T) {
	const back = 3600
	for name, tc := range map[string]struct {
		started *metav1.Time
		ahead   time.Duration
		renewed int
		ends    bool
	}{
		"it renews, and has done nothing else":  {nil, 0, back + 1, false},
		"it is back":                            {at(back), 0, back + 9, false},
		"it is back for two minutes":            {at(back), 0, back + 120, true},
		"its clock is an hour ahead":            {at(back + 3600), time.Hour, back + 9, false},
		"its clock is an hour ahead, and later": {at(back + 3600), time.Hour, back + 120, true},
		"its clock is an hour behind":           {at(back - 3600), -time.Hour, back + 9, false},
	} {
		o := lostNode()
		o.decided(false)
		o.steward.Status.Fences = []internalv1.PodFenceAnswer{{PodUID: "uid-fs-2", RequestTime: at(8), Time: at(10), Addresses: []string{"a"}}}
		o.now = at(10).Time
		o.decided(true)
		marker := desired.LostNodePod(o.fileServer, desired.Images{Howdah: "howdah"}, "n2")
		marker.Status.StartTime = tc.started
		o.lostNodePods = []corev1.Pod{*marker}
		next := o.pods["fs-2"]
		next.UID, next.Spec.NodeName = "uid-next", "n0"
		o.pods["fs-2"] = next
		o.setUnreachable("fs-2", nil)
		o.now, o.renewed["n2"] = at(tc.renewed).Time, at(tc.renewed).Time
		o.clocksAhead = map[string]time.Duration{"n2": tc.ahead}
		if d, _ := o.decided(true); (len(d.failover.Fences) == 0) != tc.ends || (len(d.failover.KeepOff) == 0) != tc.ends {
			t.Errorf("%s: %+v", name, d.failover)
		}
	}
}

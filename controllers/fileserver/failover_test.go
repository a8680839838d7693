package fileserver

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/volumes"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/test/builders"
)

var lossTime = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func at(seconds int) *metav1.Time {
	return &metav1.Time{Time: lossTime.Add(time.Duration(seconds) * time.Second)}
}

// lostNode is a FileServer with three data servers, of which fs-2 has not answered for 8 s.
func lostNode() *observed {
	fs := builders.FileServer("ns", "fs").UID("uid").Provisioned().Replicas(3).Build()
	fs.Spec.Failover.Fencing = v1alpha1.FailoverFencingStorage
	o := &observed{
		now: at(8).Time, fileServer: fs, mayFailOver: true, storage: &volumes.Storage{}, steward: &internalv1.Steward{},
		pods: map[string]corev1.Pod{}, dataServers: map[string]internalv1.DataServer{}, renewed: map[string]time.Time{},
	}
	for i, name := range []string{"fs-0", "fs-1", "fs-2"} {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n" + name[3:]}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.NodeInfo.BootID = "boot-" + node.Name
		o.nodes = append(o.nodes, node)
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}, Spec: corev1.PodSpec{NodeName: node.Name}}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		o.pods[name] = pod
		generation := int64(i + 1)
		server := internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation}}
		server.Status.ObservedGeneration = &generation
		server.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: *at(-3600)}}
		o.dataServers[name] = server
	}
	o.setUnreachable("fs-2", at(0))
	o.namespacePods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "fs-namespace-a"}, Spec: corev1.PodSpec{NodeName: "n0"}}}
	return o
}

func (o *observed) setUnreachable(name string, since *metav1.Time) {
	server := o.dataServers[name]
	server.Status.Unreachable = internalv1.Unreachable{}
	if since != nil {
		server.Status.Unreachable = internalv1.Unreachable{SinceTime: since, SeenBy: "fs-namespace-a"}
	}
	o.dataServers[name] = server
}

// decided is the decision about an observation, with the status that follows kept for the next one.
func (o *observed) decided(deleted bool) (decision, v1alpha1.ServerFailover) {
	d := decision{failover: failover.Decide(o.failoverInput()), deletedLost: deleted}
	record := o.reportFailover("fs-2", d)
	o.fileServer.Status.Servers = []v1alpha1.FileServerServerStatus{{Name: "fs-2", LastFailover: record, FailoverRefusal: o.refusalOf("fs-2", d.failover)}}
	o.steward.Spec.Fences = fencesInAPI(d.failover.Fences)
	return d, record
}

func TestAFailoverIsReportedStepByStep(t *testing.T) {
	o := lostNode()
	expect := func(what, waits string, d decision) {
		t.Helper()
		if got := o.failoverWaits("fs-2", d); !strings.Contains(got, waits) || waits == "" && got != "" {
			t.Errorf("%s: %q, want %q", what, got, waits)
		}
	}
	o.report("fs-2", "10.20.0.12")
	d, record := o.decided(false)
	if record.Count != 1 || record.NodeName != "n2" || record.PodUID != "uid-fs-2" || !record.DetectedTime.Equal(at(8)) || record.FencedTime != nil ||
		!slices.Equal(record.NetworkAddresses, []string{"10.20.0.12"}) {
		t.Fatalf("requested: %+v", record)
	}
	expect("requested", "waiting for Ceph", d)

	o.steward.Status.Fences = []internalv1.PodFenceAnswer{{PodUID: "uid-fs-2", RequestTime: at(8), Fault: "no monitor answers"}}
	o.now = at(9).Time
	d, _ = o.decided(false)
	expect("failed", "no monitor answers", d)

	o.steward.Status.Fences[0] = internalv1.PodFenceAnswer{PodUID: "uid-fs-2", RequestTime: at(7), Time: at(9)}
	if d, record = o.decided(true); len(d.failover.Delete) != 0 || record.FencedTime != nil {
		t.Fatalf("the answer to another request counts: %+v", record)
	}
	o.steward.Status.Fences[0] = internalv1.PodFenceAnswer{PodUID: "uid-fs-2", RequestTime: at(8), Time: at(10), Addresses: []string{"a", "b"}}
	o.now = at(10).Time
	if d, record = o.decided(false); record.PodDeletedTime != nil || !record.FencedTime.Equal(at(10)) || len(d.failover.Delete) != 1 {
		t.Fatalf("fenced, and the pod could not be deleted: %+v", record)
	}
	if _, record = o.decided(true); !record.PodDeletedTime.Equal(at(10)) {
		t.Fatalf("the pod is deleted: %+v", record)
	}
	if !strings.Contains(record.Message, "2 of its Ceph clients") {
		t.Error(record.Message)
	}

	pod := o.pods["fs-2"]
	pod.UID, pod.Spec.NodeName = "uid-next", "n0"
	o.pods["fs-2"] = pod
	o.report("fs-2", "10.20.0.10")
	o.now = at(14).Time
	d, record = o.decided(true)
	if record.ServingTime != nil || len(d.failover.Delete) != 0 || !record.PodDeletedTime.Equal(at(10)) {
		t.Fatalf("the next pod starts: %+v", record)
	}
	expect("the next pod starts", "being started on another node", d)
	o.setUnreachable("fs-2", nil)
	o.now = at(16).Time
	d, record = o.decided(true)
	if !record.ServingTime.Equal(at(16)) || record.Completed != 1 || *record.DurationSeconds != 16 {
		t.Fatalf("it serves: %+v", record)
	}
	expect("it serves", "", d)
	o.now = at(60).Time
	if _, record = o.decided(true); !record.ServingTime.Equal(at(16)) || record.Completed != 1 {
		t.Errorf("later: %+v", record)
	}
	o.nodes[2].Status.NodeInfo.BootID = "next boot"
	if d, record = o.decided(true); len(d.failover.Fences) != 0 || record.Count != 1 {
		t.Errorf("the node is back: %+v, %+v", d.failover, record)
	}
}

// A machine may have booted, or its Node may be deleted, before the next pod serves: then the request to fence is gone.
func TestAFailoverIsReportedToItsEndWhenTheNodeIsBackBefore(t *testing.T) {
	o := lostNode()
	o.decided(false)
	o.steward.Status.Fences = []internalv1.PodFenceAnswer{{PodUID: "uid-fs-2", RequestTime: at(8), Time: at(9)}}
	o.now = at(10).Time
	o.decided(true)
	delete(o.pods, "fs-2")
	o.nodes[2].Status.NodeInfo.BootID, o.now = "next boot", at(12).Time
	if d, _ := o.decided(true); len(d.failover.Fences) != 0 {
		t.Fatalf("%+v", d.failover)
	}
	next := o.pods["fs-1"]
	next.Name = "fs-2"
	o.pods["fs-2"] = next
	o.now = at(16).Time
	if _, record := o.decided(true); record.ServingTime != nil || !record.PodDeletedTime.Equal(at(10)) {
		t.Fatalf("the next pod starts: %+v", record)
	}
	o.setUnreachable("fs-2", nil)
	o.now = at(30).Time
	if _, record := o.decided(true); !record.ServingTime.Equal(at(30)) || record.Completed != 1 || *record.DurationSeconds != 30 {
		t.Errorf("it serves: %+v", record)
	}
	o.now = at(60).Time
	if _, record := o.decided(true); !record.ServingTime.Equal(at(30)) || record.Completed != 1 {
		t.Errorf("later: %+v", record)
	}
}

// A data server that answers for a moment, and then not any more, has not been started anywhere.
func TestARequestThatWasWithdrawnDelaysNothing(t *testing.T) {
	o := lostNode()
	o.decided(false)
	o.setUnreachable("fs-2", nil)
	o.steward.Status.Fences = []internalv1.PodFenceAnswer{{PodUID: "uid-fs-2", RequestTime: at(8), Fault: "data server fs-2 answers"}}
	o.now = at(10).Time
	if d, record := o.decided(true); len(d.failover.Fences) != 0 || record.FencedTime != nil {
		t.Fatalf("%+v, %+v", d.failover, record)
	}
	o.setUnreachable("fs-2", at(20))
	o.now = at(28).Time
	d, record := o.decided(true)
	if len(d.failover.Fences) != 1 || record.Count != 1 || !record.SinceTime.Equal(at(20)) || !record.DetectedTime.Equal(at(28)) {
		t.Errorf("%+v, %+v", d.failover, record)
	}
	o.steward.Status.Fences = []internalv1.PodFenceAnswer{{PodUID: "uid-fs-2", RequestTime: at(28), Time: at(29)}}
	o.now = at(29).Time
	if _, record = o.decided(true); !record.FencedTime.Equal(at(29)) || !record.DetectedTime.Equal(at(28)) {
		t.Errorf("%+v", record)
	}
}

func TestWhyThereIsNoFailoverIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		change        func(*observed)
		reason, waits string
	}{
		"it is not asked for":          {func(o *observed) { o.fileServer.Spec.Failover.Fencing = "" }, "", ""},
		"the operator may not":         {func(o *observed) { o.mayFailOver = false }, v1alpha1.ReasonFailoverNotAllowed, "failover.enabled"},
		"too many nodes are unhealthy": {func(o *observed) { o.nodes[1].Status.Conditions = nil }, "TooManyNodesUnhealthy", "2 of the 3 nodes"},
		"it is silent for a moment":    {func(o *observed) { o.now = at(3).Time }, "", "silent for less than"},
		"the node shows signs of life": {func(o *observed) { o.renewed["n2"] = at(5).Time }, "", "signs of life"},
		"the supervisor reports since": {func(o *observed) { s := o.dataServers["fs-2"]; s.Status.Conditions[0].LastTransitionTime = *at(5) }, "", "signs of life"},
		"the FileServer is paused": {func(o *observed) {
			metav1.SetMetaDataAnnotation(&o.fileServer.ObjectMeta, v1alpha1.PausedAnnotation, v1alpha1.PausedTrue)
		}, "", ""},
		"there is no steward":           {func(o *observed) { o.steward = nil }, "", ""},
		"the data server answers again": {func(o *observed) { o.setUnreachable("fs-2", nil) }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := lostNode()
			tc.change(o)
			d := decision{failover: failover.Decide(o.failoverInput())}
			refusal, waits := o.refusalOf("fs-2", d.failover), o.failoverWaits("fs-2", d)
			if refusal.Reason != tc.reason || !strings.Contains(waits, tc.waits) || tc.waits == "" && waits != "" || len(d.failover.Fences) != 0 {
				t.Errorf("%+v, %q, %+v", refusal, waits, d.failover)
			}
		})
	}
}

func TestEachStepOfAFailoverIsOneEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	fs := builders.FileServer("ns", "fs").Build()
	var before []v1alpha1.FileServerServerStatus
	step := func(want string, change func(*v1alpha1.FileServerServerStatus)) {
		t.Helper()
		after := []v1alpha1.FileServerServerStatus{{Name: "fs-2"}}
		if before != nil {
			after[0] = *before[0].DeepCopy()
		}
		change(&after[0])
		tellFailovers(recorder, fs, before, after)
		tellFailovers(recorder, fs, after, after)
		before = after
		got := []string{}
		for len(recorder.Events) > 0 {
			got = append(got, strings.Fields(<-recorder.Events)[1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	step("", func(*v1alpha1.FileServerServerStatus) {})
	step("FailoverRefused", func(s *v1alpha1.FileServerServerStatus) { s.FailoverRefusal.Reason = "TooManyNodesUnhealthy" })
	step("", func(s *v1alpha1.FileServerServerStatus) { s.FailoverRefusal.Message = "three of them" })
	step("FailoverStarted", func(s *v1alpha1.FileServerServerStatus) {
		s.FailoverRefusal, s.LastFailover = v1alpha1.FailoverRefusal{}, v1alpha1.ServerFailover{PodUID: "a", Count: 1}
	})
	step("FailoverFenced", func(s *v1alpha1.FileServerServerStatus) { s.LastFailover.FencedTime = at(1) })
	step("FailoverDone", func(s *v1alpha1.FileServerServerStatus) { s.LastFailover.ServingTime = at(2) })
	step("FailoverStarted FailoverFenced", func(s *v1alpha1.FileServerServerStatus) {
		s.LastFailover = v1alpha1.ServerFailover{PodUID: "b", Count: 2, FencedTime: at(9)}
	})
}

// The scheduler must see that the pod on a lost node and the pods of the FileServer exclude each other, and the kubelet of a node that is back
// must be able to run it where Pod Security's level restricted is enforced.
func TestThePodOnALostNode(t *testing.T) {
	fs := builders.FileServer("ns", "fs").UID("uid").Build()
	pod := desired.LostNodePod(fs, desired.Images{Howdah: "image", PullSecrets: []string{"registry"}}, "n2")
	if pod.Spec.NodeName != "n2" || !metav1.IsControlledBy(pod, fs) || len(pod.Spec.ImagePullSecrets) != 1 {
		t.Errorf("%+v", pod)
	}
	if tolerations := pod.Spec.Tolerations; len(tolerations) != 1 || tolerations[0].Operator != corev1.TolerationOpExists || tolerations[0].Key != "" || tolerations[0].Effect != "" {
		t.Errorf("a taint of the lost node evicts it: %+v", tolerations)
	}
	if c := pod.Spec.Containers[0]; *c.SecurityContext.AllowPrivilegeEscalation || !*pod.Spec.SecurityContext.RunAsNonRoot || len(c.SecurityContext.Capabilities.Drop) != 1 {
		t.Errorf("%+v", c.SecurityContext)
	}
}

// An administrator must learn before a node is lost that nothing would happen.
func TestFailoverThatTheOperatorMayNotDoIsReportedWhileAllServe(t *testing.T) {
	serving := []serverReport{{status: v1alpha1.FileServerServerStatus{Name: "fs-0", NodeName: "n0", State: v1alpha1.ServerServing}}}
	d := decision{eligible: 3, input: desired.FileServerInput{Replicas: 1}}
	if c := serversCondition(d, serving, "spec.failover.fencing is Storage, but … failover.enabled"); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonFailoverNotAllowed || !strings.Contains(c.Message, "failover.enabled") {
		t.Errorf("%+v", c)
	}
	if c := serversCondition(d, serving, ""); c.Reason != v1alpha1.ReasonReady {
		t.Errorf("%+v", c)
	}
}

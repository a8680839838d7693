package fileserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/apply"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/backend/volumes"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/watched"
	"github.com/howdah/howdah/internal/admissible"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/test/builders"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func pod(phase corev1.PodPhase, ready bool, mutate ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-a"}, Status: corev1.PodStatus{Phase: phase}}
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready]
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: status}}
	for _, m := range mutate {
		m(p)
	}
	return p
}

func dataServer(generation, loaded int64, ready bool, message string) internalv1.DataServer {
	var r internalv1.DataServer
	r.Generation = generation
	if loaded > 0 {
		r.Status.ObservedGeneration = &loaded
	}
	c := conditions.False(v1alpha1.ConditionReady, "NotReady", message)
	if ready {
		c = conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, message)
	}
	if message != "" || ready {
		conditions.Set(&r.Status.Conditions, generation, noon, c)
	}
	return r
}

func fault(name string) field.ErrorList {
	return field.ErrorList{field.Required(field.NewPath("spec", name), "wrong")}
}

func TestServerState(t *testing.T) {
	waiting := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
		}
	}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
	unscheduled := func(p *corev1.Pod) {
		p.Spec.NodeName = ""
		p.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available."}
	}
	unknown := dataServer(1, 1, true, "")
	conditions.Set(&unknown.Status.Conditions, 1, noon,
		conditions.True(v1alpha1.ConditionReady, internalv1.ReasonCertificateInvalid, "namespace servers can't make or remove directories here"))
	tests := map[string]struct {
		pod        *corev1.Pod
		dataServer internalv1.DataServer
		want       v1alpha1.ServerState
		waits      string
	}{
		"serves":                            {pod(corev1.PodRunning, true), dataServer(2, 2, true, ""), v1alpha1.ServerServing, ""},
		"serves with older exports":         {pod(corev1.PodRunning, true), dataServer(3, 2, true, ""), v1alpha1.ServerServing, ""},
		"has no pod":                        {nil, dataServer(1, 0, false, ""), v1alpha1.ServerPending, "its pod is not made yet"},
		"had a pod once":                    {nil, dataServer(1, 1, true, ""), v1alpha1.ServerUnavailable, "its pod is not made yet"},
		"is not scheduled":                  {pod(corev1.PodPending, false, unscheduled), dataServer(1, 0, false, ""), v1alpha1.ServerPending, "not scheduled: 0/3 nodes are available."},
		"waits for its image":               {pod(corev1.PodPending, false, waiting("ImagePullBackOff", "back-off 5m0s")), dataServer(1, 0, false, ""), v1alpha1.ServerPending, "ImagePullBackOff"},
		"has no such image":                 {pod(corev1.PodPending, false, waiting("ErrImageNeverPull", "not present")), dataServer(1, 0, false, ""), v1alpha1.ServerPending, "ErrImageNeverPull: not present"},
		"crashes":                           {pod(corev1.PodRunning, false, waiting("CrashLoopBackOff", "back-off 10s")), dataServer(1, 1, true, ""), v1alpha1.ServerUnavailable, "CrashLoopBackOff"},
		"starts":                            {pod(corev1.PodRunning, false), dataServer(1, 0, false, ""), v1alpha1.ServerStarting, "ganesha does not answer yet"},
		"starts and says why it takes long": {pod(corev1.PodRunning, false), dataServer(1, 0, false, "volume 0 is read-only"), v1alpha1.ServerStarting, "volume 0 is read-only"},
		"serves, and namespace servers can't authenticate it": {pod(corev1.PodRunning, false), unknown, v1alpha1.ServerUnavailable, "namespace servers can't make or remove directories here"},
		"is stopped":                              {pod(corev1.PodRunning, true, deleted), dataServer(1, 1, true, ""), v1alpha1.ServerUnavailable, "its pod is being stopped"},
		"says it serves, but its node is lost":    {pod(corev1.PodRunning, false), dataServer(1, 1, true, "serving"), v1alpha1.ServerUnavailable, "ganesha does not answer yet"},
		"runs, and ganesha has lost its identity": {pod(corev1.PodRunning, true), dataServer(1, 1, false, "another server answers"), v1alpha1.ServerUnavailable, "another server answers"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &observed{now: noon, dataServers: map[string]internalv1.DataServer{"fs-0": tc.dataServer}, pods: map[string]corev1.Pod{}}
			if tc.pod != nil {
				o.pods["fs-0"] = *tc.pod
			}
			state, waits := o.stateOf("fs-0").InAPI(), o.waitsOf("fs-0")
			if state != tc.want || waits != tc.waits {
				t.Errorf("got %s %q, want %s %q", state, waits, tc.want, tc.waits)
			}
		})
	}
}

// boundClaim is a claim of 1 GiB that has its volume.
func boundClaim() corev1.PersistentVolumeClaim {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return corev1.PersistentVolumeClaim{
		Spec:   corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: size}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size},
	}
}

// claimsOf are those that the storage of a world has.
func claimsOf(o *observed) map[string]corev1.PersistentVolumeClaim {
	return o.storage.(*volumes.Storage).All
}

// world is a FileServer of two servers in which everything is well.
func world() (*observed, decision) {
	o := &observed{
		fileServer: builders.FileServer("ns", "fs").Replicas(2).Build(),
		services:   map[string]corev1.Service{"fs": {Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.9"}}},
		dataServers: map[string]internalv1.DataServer{
			"fs-0": dataServer(4, 4, true, ""), "fs-1": dataServer(4, 4, true, ""),
		},
		pods:          map[string]corev1.Pod{"fs-0": *pod(corev1.PodRunning, true), "fs-1": *pod(corev1.PodRunning, true)},
		namespacePods: []corev1.Pod{*pod(corev1.PodRunning, true), *pod(corev1.PodRunning, true)},
	}
	o.fileServer.Generation = 7
	o.storage = &volumes.Storage{
		Observation: backendapi.Observation{FileServer: o.fileServer, DataServers: o.dataServers},
		All:         map[string]corev1.PersistentVolumeClaim{"data-0-fs-0": boundClaim(), "data-0-fs-1": boundClaim()},
	}
	return o, decision{eligible: 2, input: desired.FileServerInput{FileServer: o.fileServer, Replicas: 2}}
}

func TestReady(t *testing.T) {
	refusal := conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonScaleInRefused, "no")
	tests := map[string]struct {
		change  func(*observed, *decision)
		applied error
		reason  string
		message string
	}{
		"everything is well": {nil, nil, v1alpha1.ReasonReady, "everything is as specified"},
		"a claim waits": {
			func(o *observed, _ *decision) { delete(claimsOf(o), "data-0-fs-1") }, nil, v1alpha1.ReasonClaimsPending,
			"StorageAvailable: 1 of 2 claims are not bound: data-0-fs-1 (not made yet)",
		},
		"a server waits": {
			func(o *observed, _ *decision) { delete(o.pods, "fs-1") }, nil, v1alpha1.ReasonServersNotReady,
			"ServersAvailable: 1 of 2 data servers serve: fs-1 is Unavailable (its pod is not made yet)",
		},
		"a server's pod is refused": {
			func(o *observed, _ *decision) {
				delete(o.pods, "fs-1")
				o.refused = map[string]string{"fs-1": "exceeded quota: few"}
			}, nil, v1alpha1.ReasonPodsRefused,
			"ServersAvailable: 1 of 2 data servers serve: fs-1 is Unavailable (its pod is refused: exceeded quota: few)",
		},
		"a server's pod is refused and nodes are few": {
			func(o *observed, d *decision) {
				delete(o.pods, "fs-1")
				o.refused, d.eligible = map[string]string{"fs-1": "exceeded quota: few"}, 1
			}, nil, v1alpha1.ReasonPodsRefused, "its pod is refused: exceeded quota: few",
		},
		"a server's pod is missing and not refused": {
			func(o *observed, _ *decision) {
				delete(o.pods, "fs-1")
				o.refused = map[string]string{"fs-1": ""}
			}, nil, v1alpha1.ReasonServersNotReady, "its pod is not made yet",
		},
		"the pods of all namespace servers are refused": {
			func(o *observed, _ *decision) { o.namespacePods, o.namespaceRefusal = nil, "exceeded quota: few" }, nil, v1alpha1.ReasonPodsRefused,
			"NamespaceServersAvailable: 0 of 2 namespace servers are ready: a pod is refused: exceeded quota: few",
		},
		"a pod of one namespace server is refused": {
			func(o *observed, _ *decision) {
				o.namespacePods, o.namespaceRefusal = o.namespacePods[:1], "exceeded quota: few"
			}, nil, v1alpha1.ReasonReady, "everything",
		},
		"a server waits and nodes are few": {
			func(o *observed, d *decision) { delete(o.pods, "fs-1"); d.eligible = 1 }, nil, v1alpha1.ReasonTooFewNodes,
			"1 node is eligible for 2 data servers",
		},
		"a server's node is lost, and eligible no more": {
			func(o *observed, d *decision) {
				lost, server := o.pods["fs-1"], o.dataServers["fs-1"]
				lost.Spec.NodeName = "node-b"
				server.Status.Unreachable = internalv1.Unreachable{SinceTime: &metav1.Time{Time: noon}, SeenBy: "x"}
				o.pods["fs-1"], o.dataServers["fs-1"], d.eligible = lost, server, 1
			}, nil, v1alpha1.ReasonServersNotReady, "node node-b is gone",
		},
		"servers share a node and serve": {func(_ *observed, d *decision) { d.eligible = 1 }, nil, v1alpha1.ReasonServersShareNodes, "2 of 2 data servers serve; 1 node is eligible for 2"},
		"connections are nearly used up": {func(o *observed, _ *decision) {
			r, used := o.dataServers["fs-0"], int32(80)
			r.Status.Connections = internalv1.Connections{Used: &used, Limit: 100}
			o.dataServers["fs-0"] = r
		}, nil, v1alpha1.ReasonConnectionsNearLimit, "2 of 2 data servers serve; more than 80 % of the connections that there may be are used of fs-0 (100): raise"},
		"connections are used, and more can be": {func(o *observed, _ *decision) {
			r, used := o.dataServers["fs-0"], int32(79)
			r.Status.Connections = internalv1.Connections{Used: &used, Limit: 100}
			o.dataServers["fs-0"] = r
		}, nil, v1alpha1.ReasonReady, "everything"},
		"no node at all":                 {func(_ *observed, d *decision) { d.eligible, d.input.Replicas = 0, 0 }, nil, v1alpha1.ReasonTooFewNodes, "no node is eligible"},
		"one namespace server is enough": {func(o *observed, _ *decision) { o.namespacePods = o.namespacePods[:1] }, nil, v1alpha1.ReasonReady, "everything"},
		"the namespace servers are nearly full": {
			func(o *observed, _ *decision) {
				o.connections = &connectionUse{used: 90, limit: 200, full: []string{"fs-namespace-a (100)"}}
			}, nil,
			v1alpha1.ReasonConnectionsNearLimit,
			"2 of 2 namespace servers are ready; more than 80 % of the connections that there may be are used of fs-namespace-a (100): raise the memory",
		},
		"the namespace servers were nearly full before the operator started": {
			func(o *observed, _ *decision) {
				conditions.Set(&o.fileServer.Status.Conditions, 7, noon, conditions.True(v1alpha1.FileServerNamespaceServersAvailable,
					v1alpha1.ReasonConnectionsNearLimit, "as before"))
			}, nil, v1alpha1.ReasonConnectionsNearLimit, "as before",
		},
		"the namespace servers were nearly full once": {
			func(o *observed, _ *decision) {
				conditions.Set(&o.fileServer.Status.Conditions, 7, noon, conditions.True(v1alpha1.FileServerNamespaceServersAvailable,
					v1alpha1.ReasonConnectionsNearLimit, "as before"))
				o.connections = &connectionUse{used: 90, limit: 200}
			}, nil, v1alpha1.ReasonReady, "everything",
		},
		"no namespace server": {
			func(o *observed, _ *decision) { o.namespacePods = nil }, nil, v1alpha1.ReasonNamespaceServersNotReady,
			"NamespaceServersAvailable: 0 of 2 namespace servers are ready",
		},
		"exports are not loaded": {
			func(o *observed, _ *decision) { o.dataServers["fs-0"] = dataServer(5, 4, true, "") }, nil, v1alpha1.ReasonConfigPending,
			"ConfigApplied: 1 of 2 data servers have not loaded their newest configuration: fs-0: revision 4 loaded, 5 wanted",
		},
		"a restart is pending": {
			func(o *observed, _ *decision) {
				server := o.dataServers["fs-1"]
				server.Status.RestartPending = []string{"graceSeconds", "leaseSeconds"}
				o.dataServers["fs-1"] = server
			}, nil, v1alpha1.ReasonRestartPending,
			"every data server has loaded its newest configuration; 1 of 2 use earlier values of spec.nfs until they restart: fs-1 (graceSeconds, leaseSeconds). " +
				"To restart one after the other: kubectl -n ns rollout restart statefulset fs",
		},
		"outside addresses are awaited": {
			func(o *observed, _ *decision) { o.outside(time.Minute, "192.0.2.1", "", "192.0.2.3") }, nil,
			v1alpha1.ReasonOutsideAddressesPending,
			"OutsideAddressesAvailable: 2 of 3 Services of type LoadBalancer have an address; waiting for fs-0-outside",
		},
		"outside addresses never come": {
			func(o *observed, _ *decision) { o.outside(outsideLimit, "192.0.2.1", "", "192.0.2.3") }, nil,
			v1alpha1.ReasonOutsideAddressesMissing,
			"no load balancer has given one to Service fs-0-outside for more than 2m0s: install one that serves the class example.com/lb, or give its pool more " +
				"addresses (kubectl -n ns describe service fs-0-outside shows its events), or remove spec.network.loadBalancer; clients in the cluster are served",
		},
		"outside addresses are there": {
			func(o *observed, _ *decision) { o.outside(time.Hour, "192.0.2.1", "lb.example.com", "192.0.2.3") }, nil, v1alpha1.ReasonReady, "everything",
		},
		"scale-in is refused": {func(_ *observed, d *decision) { d.refused = &refusal }, nil, v1alpha1.ReasonScaleInRefused, "no"},
		"a name is taken": {
			nil, errors.Join(&apply.NameTaken{Kind: "Service", Namespace: "ns", Name: "fs", Holder: "Deployment x"}),
			v1alpha1.ReasonNameTaken, "Service ns/fs exists and belongs to Deployment x; Howdah needs that name",
		},
		"the API server refuses": {
			nil, fmt.Errorf("Role ns/fs-data: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "fs-data", errors.New("no"))),
			v1alpha1.ReasonApplyFailed, "Role ns/fs-data: roles",
		},
		"no pod can have a value": {
			func(o *observed, d *decision) {
				o.badValues.NamespaceServers = field.ErrorList{field.Required(field.NewPath("spec", "a"), "one"), field.Invalid(field.NewPath("spec", "b"), "x", "two")}
				d.refused = &refusal
			}, errors.New("timeout"), v1alpha1.ReasonInvalidSpec,
			`spec.a: one; spec.b: "x" can't be used: two; until this is corrected, pods of namespace servers are made as before, or not at all`,
		},
		"no pod and no Service can have a value": {
			func(o *observed, _ *decision) {
				o.badValues = admissible.Faults{DataServers: fault("a"), Pods: fault("b"), NamespaceServers: fault("c"), Outside: fault("d")}
			}, nil, v1alpha1.ReasonInvalidSpec,
			"spec.a: wrong; spec.b: wrong; spec.c: wrong; and 1 more; until this is corrected, all pods and Services for clients outside the cluster are made as before, or not at all",
		},
		"the API server does not answer": {nil, errors.New("Role ns/fs-data: timeout"), v1alpha1.ReasonProgressing, "Role ns/fs-data: timeout"},
		"deletion waits": {func(o *observed, _ *decision) {
			o.fileServer.DeletionTimestamp = &metav1.Time{Time: noon}
			o.shares = []fleet.Share{{Key: "a"}, {Key: "b"}}
		}, nil, v1alpha1.ReasonInUse, "deletion waits for the FileShares that use it: a, b; nothing is stopped until they are deleted"},
		"deletion waits for one that is not watched": {func(o *observed, _ *decision) {
			o.fileServer.DeletionTimestamp = &metav1.Time{Time: noon}
			o.watched = watched.Namespaces{"ns", "team-a"}
			o.shares = []fleet.Share{{Key: "a"}, {Key: "team-a.b"}, {Key: "team-b.c"}, {Key: "team-c.d"}}
		}, nil, v1alpha1.ReasonInUse, "deletion waits for the FileShares that use it: a, team-a/b, team-b/c, team-c/d; nothing is stopped until they are deleted; " +
			"the operator does not watch the Kubernetes namespaces team-b, team-c (the chart's watchNamespaces), so it can't finish the deletion of FileShares there: " +
			"add the namespaces, and delete the FileShares"},
	}
	serves := []string{v1alpha1.ReasonReady, v1alpha1.ReasonServersShareNodes, v1alpha1.ReasonConnectionsNearLimit, v1alpha1.ReasonRestartPending}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o, d := world()
			if tc.change != nil {
				tc.change(o, &d)
			}
			status := report(o, d, tc.applied, noon)
			if got := conditions.Reason(status.Conditions, v1alpha1.ConditionReady); got != tc.reason {
				t.Errorf("reason %s, want %s", got, tc.reason)
			}
			if got := conditions.Message(status.Conditions, v1alpha1.ConditionReady); !strings.Contains(got, tc.message) {
				t.Errorf("message %q, want %q in it", got, tc.message)
			}
			if ready := conditions.IsTrue(status.Conditions, v1alpha1.ConditionReady); ready != slices.Contains(serves, tc.reason) {
				t.Errorf("ready = %v with reason %s", ready, tc.reason)
			}
			if complete := tc.applied == nil || v1alpha1.NeedsUser(tc.reason); (ptr.Deref(status.ObservedGeneration, 0) == 7) != complete {
				t.Errorf("observedGeneration is the present one after passes that are complete, or as complete as they get without the user; got %d", ptr.Deref(status.ObservedGeneration, 0))
			}
		})
	}
}

func TestAReportOfTheSameFactsIsTheSame(t *testing.T) {
	o, d := world()
	first := report(o, d, nil, noon)
	o.fileServer.Status = first
	second := report(o, d, nil, noon.Add(time.Hour))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("an hour later (-first +second):\n%s", diff)
	}
}

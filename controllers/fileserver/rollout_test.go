package fileserver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/volumes"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/rollout"
	"github.com/howdah/howdah/test/builders"
)

func TestWhenADataServerIsStuck(t *testing.T) {
	aged := func(age time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-age)) }
	}
	container := func(status corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{status} }
	}
	waiting := func(reason string) func(*corev1.Pod) {
		return container(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}})
	}
	ended := func(count int32, ago time.Duration) func(*corev1.Pod) {
		return container(corev1.ContainerStatus{RestartCount: count, LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(noon.Add(-ago))},
		}})
	}
	reported := func(ready bool, reason string, ago time.Duration) internalv1.DataServer {
		var server internalv1.DataServer
		c := conditions.False(v1alpha1.ConditionReady, reason, "ganesha exited with code 2; restarting it")
		if ready {
			c.Status = metav1.ConditionTrue
		}
		conditions.Set(&server.Status.Conditions, 1, noon.Add(-ago), c)
		return server
	}
	// As namespace servers report it of a pod that does not serve, too.
	unreachable := func(server internalv1.DataServer, ago time.Duration) internalv1.DataServer {
		since := metav1.NewTime(noon.Add(-ago))
		server.Status.Unreachable = internalv1.Unreachable{SinceTime: &since, SeenBy: "fs-namespace-a"}
		return server
	}
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		server internalv1.DataServer
		want   string
	}{
		"its image can't be pulled":             {pod(corev1.PodPending, false, aged(time.Second), waiting("ImagePullBackOff")), internalv1.DataServer{}, "waits"},
		"its container is being made":           {pod(corev1.PodPending, false, aged(time.Second), waiting("ContainerCreating")), internalv1.DataServer{}, ""},
		"for too long":                          {pod(corev1.PodPending, false, aged(time.Hour), waiting("ContainerCreating")), internalv1.DataServer{}, "waits"},
		"it ends again and again":               {pod(corev1.PodRunning, false, aged(time.Minute), ended(2, time.Second)), internalv1.DataServer{}, "its container ends again and again"},
		"it did long ago, and ganesha restarts": {pod(corev1.PodRunning, false, aged(24*time.Hour), ended(2, time.Hour)), reported(false, internalv1.ReasonServerDown, time.Second), ""},
		"it ended once":                         {pod(corev1.PodRunning, false, aged(time.Minute), ended(1, time.Second)), internalv1.DataServer{}, ""},
		"ganesha starts":                        {pod(corev1.PodRunning, false, aged(time.Minute)), reported(false, internalv1.ReasonStarting, time.Minute), ""},
		"ganesha never serves":                  {pod(corev1.PodRunning, false, aged(time.Hour)), reported(false, internalv1.ReasonServerDown, 3*time.Minute), "waits"},
		"ganesha never serves, and its node's clock is a day ahead": {
			pod(corev1.PodRunning, false, aged(time.Hour)), reported(false, internalv1.ReasonServerDown, -24*time.Hour), "waits",
		},
		"ganesha never serves, and the clock of who reports that it does not answer is a day ahead": {
			pod(corev1.PodRunning, false, aged(time.Hour)), unreachable(reported(false, internalv1.ReasonServerDown, 3*time.Minute), -24*time.Hour), "waits",
		},
		"it reports nothing at all": {pod(corev1.PodRunning, false, aged(time.Hour)), internalv1.DataServer{}, "waits"},
		"its storage is refused":    {pod(corev1.PodRunning, false, aged(time.Hour)), reported(false, internalv1.ReasonVolumeRefused, time.Hour), ""},
		"its image can't be pulled, and it does not answer": {
			pod(corev1.PodPending, false, aged(time.Second), waiting("ImagePullBackOff")), unreachable(reported(true, v1alpha1.ReasonReady, time.Hour), time.Second), "waits",
		},
		"its container is made for too long, and it does not answer": {
			pod(corev1.PodPending, false, aged(time.Hour), waiting("ContainerCreating")), unreachable(internalv1.DataServer{}, time.Hour), "waits",
		},
		"it ends again and again, and does not answer": {
			pod(corev1.PodRunning, false, aged(time.Minute), ended(2, time.Second)), unreachable(internalv1.DataServer{}, time.Second), "its container ends again and again",
		},
		"ganesha never serves, and it does not answer": {
			pod(corev1.PodRunning, false, aged(time.Hour)), unreachable(reported(false, internalv1.ReasonServerDown, 3*time.Minute), 3*time.Minute), "waits",
		},
		"it served for long, and does not answer since a moment ago": {
			pod(corev1.PodRunning, false, aged(time.Hour)), unreachable(reported(true, v1alpha1.ReasonReady, time.Hour), time.Minute), "",
		},
		// The network to it.
		"it does not answer, and its kubelet says that it is ready": {
			pod(corev1.PodRunning, true, aged(time.Hour)), unreachable(reported(true, v1alpha1.ReasonReady, time.Hour), time.Hour), "",
		},
	} {
		if got := stuckWhy(tc.pod, &tc.server, false, "waits", noon); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	server := reported(false, internalv1.ReasonCephUnusable, 3*time.Minute)
	if got := stuckWhy(pod(corev1.PodRunning, false, aged(time.Hour)), &server, true, "waits", noon); got != "waits" {
		t.Errorf("its storage is refused, from which others serve: %q", got)
	}
}

// An image without what speaks to Ceph finds each Ceph unusable.
func TestAStorageFromWhichOthersServeIsNotAtFault(t *testing.T) {
	for name, tc := range map[string]struct {
		shared bool
		others bool
		want   bool
	}{
		"others serve from the same Ceph":  {true, true, true},
		"none does":                        {true, false, false},
		"each has volumes of its own":      {false, true, false},
		"each has volumes, and none works": {false, false, false},
	} {
		o := rollingServers("old", "new")
		if tc.shared {
			o.fileServer.Spec.Storage = builders.FileServer("ns", "fs").Ceph().Build().Spec.Storage
		}
		refused := func(server *internalv1.DataServer) {
			conditions.Set(&server.Status.Conditions, 1, noon.Add(-time.Hour), conditions.False(v1alpha1.ConditionReady, internalv1.ReasonCephUnusable, "no such file"))
		}
		old := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) }
		o.set("fs-1", func(p *corev1.Pod) { old(p); p.Status.Conditions = nil }, refused)
		if !tc.others {
			o.set("fs-0", nil, refused)
		}
		if got := o.rolloutServer("fs-1").Stuck != ""; got != tc.want {
			t.Errorf("%s: stuck: %v", name, got)
		}
	}
}

// An image that is bad would take fences and new shares, too.
func TestTheStewardGetsAnImageAfterADataServerServesWithIt(t *testing.T) {
	works := func(ready metav1.ConditionStatus, ago time.Duration) *internalv1.Steward {
		steward := &internalv1.Steward{}
		condition := conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "")
		condition.Status = ready
		conditions.Set(&steward.Status.Conditions, 1, noon.Add(-ago), condition)
		return steward
	}
	down := func(server *internalv1.DataServer) {
		conditions.Set(&server.Status.Conditions, 1, noon, conditions.False(v1alpha1.ConditionReady, internalv1.ReasonCephUnusable, "no such file"))
	}
	for name, tc := range map[string]struct {
		pods    []string
		steward *internalv1.Steward
		image   string
		change  func(o *observed)
		want    bool
	}{
		"no data server has it yet":                {[]string{"old", "old"}, works(metav1.ConditionTrue, time.Hour), "old", nil, true},
		"one has it, and does not serve":           {[]string{"old", "new"}, works(metav1.ConditionTrue, time.Hour), "old", func(o *observed) { o.set("fs-1", nil, down) }, true},
		"one serves with it":                       {[]string{"old", "new"}, works(metav1.ConditionTrue, time.Hour), "old", nil, false},
		"the steward has it":                       {[]string{"old", "old"}, works(metav1.ConditionTrue, time.Hour), "new", nil, false},
		"the steward can't work since a moment":    {[]string{"old", "old"}, works(metav1.ConditionFalse, time.Second), "old", nil, true},
		"the steward can't work with what it has":  {[]string{"old", "old"}, works(metav1.ConditionFalse, time.Hour), "old", nil, false},
		"the steward can't work, by a clock ahead": {[]string{"old", "old"}, works(metav1.ConditionFalse, -24*time.Hour), "old", nil, false},
		"the steward has reported nothing yet":     {[]string{"old", "old"}, &internalv1.Steward{}, "old", nil, false},
		"there is no Deployment yet":               {[]string{"old", "old"}, works(metav1.ConditionTrue, time.Hour), "", nil, false},
		"there is no steward":                      {[]string{"old", "old"}, nil, "", nil, false},
	} {
		o := rollingServers(tc.pods...)
		o.steward, o.stewardImage = tc.steward, tc.image
		if tc.change != nil {
			tc.change(o)
		}
		if got := o.stewardStays("new"); got != tc.want {
			t.Errorf("%s: it stays: %v", name, got)
		}
	}
}

// rollingServers are three data servers of which each pod has an image, the newest template another one.
func rollingServers(images ...string) *observed {
	o := &observed{
		now: noon, fileServer: builders.FileServer("ns", "fs").Replicas(int32(len(images))).Build(),
		pods: map[string]corev1.Pod{}, dataServers: map[string]internalv1.DataServer{}, statefulSet: &appsv1.StatefulSet{},
		storage: &volumes.Storage{},
		nodes:   []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}},
	}
	o.statefulSet.Generation, o.statefulSet.Status.ObservedGeneration = 7, 7
	o.statefulSet.Status.CurrentRevision, o.statefulSet.Status.UpdateRevision = "of-old", "of-new"
	o.statefulSet.Spec.Template.Spec.Containers = []corev1.Container{{Image: "new"}}
	for i, image := range images {
		p := pod(corev1.PodRunning, true)
		p.Name, p.Labels = "fs-"+string(rune('0'+i)), map[string]string{appsv1.StatefulSetRevisionLabel: "of-" + image}
		p.Spec.Containers, p.Spec.NodeName = []corev1.Container{{Image: image}}, "n1"
		p.Status.PodIP = "10.0.0.1"
		o.pods[p.Name] = *p
		server := dataServer(1, 1, true, "")
		server.Status.PodIP = "10.0.0.1"
		o.dataServers[p.Name] = server
	}
	return o
}

func (o *observed) set(name string, pod func(*corev1.Pod), server func(*internalv1.DataServer)) {
	p, s := o.pods[name], o.dataServers[name]
	if pod != nil {
		pod(&p)
	}
	if server != nil {
		server(&s)
	}
	o.pods[name], o.dataServers[name] = p, s
}

func TestARolloutIsExplained(t *testing.T) {
	pullFails := func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
		}}}
	}
	reclaims := func(s *internalv1.DataServer) {
		conditions.Set(&s.Status.Conditions, 1, noon, conditions.False(internalv1.GraceEnded, internalv1.ReasonInGrace, "clients reclaim"))
	}
	closed := func(o *observed) {
		o.closedNodes, o.storage = map[string]bool{"n1": true}, &volumes.Storage{Pinned: map[string]bool{"fs-1": true}}
	}
	for name, tc := range map[string]struct {
		images []string
		change func(*observed)
		reason string
		holds  bool
		says   []string
	}{
		"done":            {[]string{"new", "new"}, func(o *observed) { o.statefulSet.Status.CurrentRevision = "of-new" }, v1alpha1.ReasonReady, true, nil},
		"begins":          {[]string{"old", "old"}, nil, v1alpha1.ReasonRollingOut, false, []string{"2 data servers with earlier pods: fs-0, fs-1"}},
		"clients reclaim": {[]string{"old", "new"}, func(o *observed) { o.set("fs-1", nil, reclaims) }, v1alpha1.ReasonRollingOut, false, []string{"1 data server with earlier pods: fs-0", "waits for fs-1 (its clients reclaim"}},
		"the report is that of the pod before": {
			[]string{"old", "new"},
			func(o *observed) { o.set("fs-1", func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.2" }, nil) },
			v1alpha1.ReasonRollingOut, false,
			[]string{"waits for fs-1"},
		},
		"another one is away": {
			[]string{"old", "old"},
			func(o *observed) { delete(o.pods, "fs-0") },
			v1alpha1.ReasonRollingOut, false,
			[]string{"waits for fs-0 (its pod is not made yet)"},
		},
		"an image that can't be pulled": {
			[]string{"old", "new"},
			func(o *observed) { o.set("fs-1", pullFails, nil) }, v1alpha1.ReasonRolloutStopped, false,
			[]string{"data server fs-1 does not serve with its new pod (image new): ImagePullBackOff; fs-0 and the others not yet replaced keep image old; set the earlier image again"},
		},
		"an image that can't be pulled, and namespace servers say that the data server does not answer": {
			[]string{"old", "new"},
			func(o *observed) {
				o.set("fs-1", pullFails, nil)
				o.setUnreachable("fs-1", at(0))
			}, v1alpha1.ReasonRolloutStopped, false,
			[]string{"data server fs-1 does not serve with its new pod (image new): ImagePullBackOff; fs-0"},
		},
		"of the only server": {
			[]string{"new"},
			func(o *observed) { o.set("fs-0", pullFails, nil) }, v1alpha1.ReasonRolloutStopped, false,
			[]string{"data server fs-0 does not serve with its new pod (image new): ImagePullBackOff; take the change back, or correct it"},
		},
		"a refused pod": {
			[]string{"old", "new"},
			func(o *observed) {
				delete(o.pods, "fs-1")
				o.refused = map[string]string{"fs-1": "exceeded quota: memory"}
			},
			v1alpha1.ReasonRolloutStopped, false,
			[]string{"its pod is refused: exceeded quota: memory"},
		},
		"no node takes its new pod": {
			[]string{"old", "new"}, func(o *observed) {
				o.set("fs-1", func(p *corev1.Pod) {
					p.CreationTimestamp, p.Spec.NodeName = metav1.NewTime(noon.Add(-time.Hour)), ""
					p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
						Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available: 1 node(s) were unschedulable",
					}}}
				}, nil)
			}, v1alpha1.ReasonRolloutStopped, false, []string{"not scheduled: 0/3 nodes are available", "it goes on by itself when a node takes the pod"},
		},
		"one is on a cordoned node with its volume": {[]string{"old", "old"}, closed, v1alpha1.ReasonRollingOut, false, []string{"2 data servers with earlier pods"}},
		"only that one is left": {
			[]string{"new", "old"},
			closed, v1alpha1.ReasonRolloutWaiting, false,
			[]string{"1 data server with earlier pods: fs-1; they serve, and stay: fs-1 (its volume is on node n1 only, which takes no pod now"},
		},
		"the new pod is on a lost node": {
			[]string{"old", "new"}, func(o *observed) {
				o.nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
				o.set("fs-1", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) }, func(s *internalv1.DataServer) { *s = dataServer(1, 1, false, "") })
			}, v1alpha1.ReasonRollingOut, false, []string{"the next step waits for fs-1 (ganesha does not answer yet)"},
		},
		"the budget lets no pod go": {
			[]string{"old", "old"}, nil, v1alpha1.ReasonRollingOut, false, []string{"it waits: PodDisruptionBudget fs-data lets no pod of a data server go now"},
		},
		"another FileServer is first": {
			[]string{"old", "old"},
			func(o *observed) { o.rolloutHeldBy = "ns/other" },
			v1alpha1.ReasonRolloutWaiting, false,
			[]string{"FileServer ns/other is not done"},
		},
	} {
		o := rollingServers(tc.images...)
		if tc.change != nil {
			tc.change(o)
		}
		d := decision{rollout: rollout.Decide(o.rolloutInput(int32(len(tc.images))))}
		if name == "the budget lets no pod go" {
			d.replaceWaits = "PodDisruptionBudget fs-data lets no pod of a data server go now"
		}
		got := o.updatedCondition(d)
		if got == nil || got.Reason != tc.reason || (got.Status == metav1.ConditionTrue) != tc.holds {
			t.Errorf("%s: got %+v, want %s", name, got, tc.reason)
			continue
		}
		for _, words := range tc.says {
			if !strings.Contains(got.Message, words) {
				t.Errorf("%s: %q does not say %q", name, got.Message, words)
			}
		}
	}
	o := rollingServers("old")
	if got := o.updatedCondition(decision{templateChanged: true}); got == nil || got.Reason != v1alpha1.ReasonRollingOut {
		t.Errorf("a template that is applied now: %+v", got)
	}
	o.statefulSet.Status.ObservedGeneration = 6
	if got := o.updatedCondition(decision{rollout: rollout.Decide(o.rolloutInput(1))}); got != nil {
		t.Errorf("a template that was not observed: %+v", got)
	}
}

// Whoever may write in the Kubernetes namespace of one FileServer must not keep the others from upgrades.
func TestARolloutThatCanNotBeginGivesItsTurnBack(t *testing.T) {
	for name, refusal := range map[string]error{
		"the budget has just been used": apierrors.NewTooManyRequests("budget", 0),
		"there are two budgets":         apierrors.NewInternalError(errors.New("this pod has more than one PodDisruptionBudget")),
		"":                              nil,
	} {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
			if err := add(scheme); err != nil {
				t.Fatal(err)
			}
		}
		fs := builders.FileServer("ns", "fs").Build()
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: naming.DataServerAccount("fs")}}
		budget.Status.DisruptionsAllowed = 1
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fs", UID: "set", Annotations: map[string]string{
			v1alpha1.RolloutAnnotation: rollout.Record{Template: "t", Cause: rollout.Operator}.String(),
		}}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fs-0", UID: "uid"}}
		written := func(api client.Client) bool {
			var now appsv1.StatefulSet
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(set), &now); err != nil {
				t.Fatal(err)
			}
			return hasTurn(&now)
		}
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(budget, set, pod).WithInterceptorFuncs(interceptor.Funcs{
			SubResourceCreate: func(_ context.Context, api client.Client, _ string, _ client.Object, _ client.Object, _ ...client.SubResourceCreateOption) error {
				if !written(api) {
					t.Error("a pod goes before it is written whose turn it is")
				}
				return refusal
			},
		}).Build()
		r := &Reconciler{Client: api, Live: api, Events: events.NewFakeRecorder(10)}
		o := &observed{fileServer: fs, pods: map[string]corev1.Pod{"fs-0": *pod}, statefulSet: set}
		_, err := r.replacePod(t.Context(), o, decision{rollout: rollout.Plan{Next: "fs-0", Now: true, Outdated: []string{"fs-0"}}})
		if holds := r.turns.holder() == "ns/fs"; holds != (refusal == nil) || written(api) != holds {
			t.Errorf("%s: it holds the turn: %v, as the StatefulSet has it: %v (%v)", name, holds, written(api), err)
		}
		if refusal != nil {
			continue
		}
		// When all is done.
		set.Annotations[v1alpha1.RolloutTurnAnnotation] = v1alpha1.RolloutTurnTaken
		o.turnIsOver = true
		if _, err := r.replacePod(t.Context(), o, decision{}); err != nil || written(api) || r.turns.holder() != "" {
			t.Errorf("all is done, and it holds the turn: %v, %q (%v)", written(api), r.turns.holder(), err)
		}
	}
}

// A pod that goes begins a change, whatever became of the answer, and whoever took it. From then on it is this FileServer's turn until all is done.
func TestARolloutThatHasBegunKeepsItsTurn(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(api client.Client, pod client.Object) error {
		return api.Delete(t.Context(), pod, client.GracePeriodSeconds(0))
	}
	for name, tc := range map[string]struct {
		finalizers []string
		meanwhile  func(api client.Client, pod client.Object) error
		answer     error
		outdated   []string
		keeps      bool
	}{
		"refused before the first pod":            {nil, nil, apierrors.NewTooManyRequests("budget", 0), []string{"fs-0", "fs-1"}, false},
		"refused in the midst":                    {nil, nil, apierrors.NewTooManyRequests("budget", 0), []string{"fs-0"}, true},
		"the answer is lost, and the pod stays":   {nil, nil, context.DeadlineExceeded, []string{"fs-0", "fs-1"}, false},
		"the answer is lost, and the pod ends":    {[]string{"x/y"}, gone, context.DeadlineExceeded, []string{"fs-0", "fs-1"}, true},
		"the answer is lost, and the pod is gone": {nil, gone, apierrors.NewInternalError(errors.New("etcdserver: request timed out")), []string{"fs-0", "fs-1"}, true},
		"another program has taken the pod":       {nil, gone, apierrors.NewNotFound(corev1.Resource("pods"), "fs-0"), []string{"fs-0", "fs-1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: naming.DataServerAccount("fs")}}
			budget.Status.DisruptionsAllowed = 1
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fs", UID: "set", Annotations: map[string]string{
				v1alpha1.RolloutAnnotation: rollout.Record{Template: "t", Cause: rollout.Operator}.String(),
			}}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fs-0", UID: "uid", Finalizers: tc.finalizers}}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(budget, set, pod).WithInterceptorFuncs(interceptor.Funcs{
				SubResourceCreate: func(_ context.Context, api client.Client, _ string, _ client.Object, _ client.Object, _ ...client.SubResourceCreateOption) error {
					if tc.meanwhile != nil {
						if err := tc.meanwhile(api, pod.DeepCopy()); err != nil {
							t.Fatal(err)
						}
					}
					return tc.answer
				},
			}).Build()
			r := &Reconciler{Client: api, Live: api, Events: events.NewFakeRecorder(10)}
			o := &observed{fileServer: builders.FileServer("ns", "fs").Build(), pods: map[string]corev1.Pod{"fs-0": *pod}, statefulSet: set}
			d := decision{rollout: rollout.Plan{Next: "fs-0", Now: true, Outdated: tc.outdated}}
			d.input.Replicas = 2
			_, err := r.replacePod(t.Context(), o, d)
			var now appsv1.StatefulSet
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(set), &now); err != nil {
				t.Fatal(err)
			}
			if holds := r.turns.holder() == "ns/fs"; holds != tc.keeps || hasTurn(&now) != tc.keeps {
				t.Errorf("it holds the turn: %v, as the StatefulSet has it: %v (%v)", holds, hasTurn(&now), err)
			}
		})
	}
}

// A change that was taken back before all data servers had it: the StatefulSet calls the earlier revision that of all pods at once.
func TestAChangeIsTakenBackInOneFileServerAtATime(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	set := func(name, current string, updated, ready int32) *appsv1.StatefulSet {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: naming.SelectDataServers(name), Annotations: map[string]string{
			v1alpha1.RolloutAnnotation: rollout.Record{Template: "t", Cause: rollout.Operator}.String(),
		}}}
		set.Spec.Replicas = ptr.To[int32](2)
		set.Status = appsv1.StatefulSetStatus{Replicas: 2, ReadyReplicas: ready, UpdatedReplicas: updated, CurrentRevision: current, UpdateRevision: "old"}
		return set
	}
	pods := func(name string, revisions ...string) (pods []corev1.Pod) {
		for i, revision := range revisions {
			labels := naming.SelectDataServers(name)
			labels[appsv1.StatefulSetRevisionLabel] = revision
			pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: naming.DataServer(name, int32(i)), Labels: labels}})
		}
		return pods
	}
	// inTurn has the StatefulSet of a FileServer whose turn it is, as an earlier operator has left it.
	inTurn := func(set *appsv1.StatefulSet) *appsv1.StatefulSet {
		set.Annotations[v1alpha1.RolloutTurnAnnotation] = v1alpha1.RolloutTurnTaken
		return set
	}
	ending := func(pods []corev1.Pod) []corev1.Pod {
		pods[1].DeletionTimestamp, pods[1].Finalizers = &metav1.Time{Time: noon}, []string{"x/y"}
		return pods
	}
	ofEarlier := func(pods []corev1.Pod) []corev1.Pod {
		pods[1] = controlled(pods[1], "uid-of-an-earlier-set")
		return pods
	}
	for name, tc := range map[string]struct {
		set    *appsv1.StatefulSet
		pods   []corev1.Pod
		holder string
		// held is what the other FileServer waits for, next is the one with the turn after this one has looked.
		held, next string
	}{
		"half of them have the change":                             {set("b", "old", 1, 2), pods("b", "old", "new"), "", "ns/b", ""},
		"half of them have the change, and it has the turn":        {set("b", "old", 1, 2), pods("b", "old", "new"), "ns/b", "ns/b", "ns/b"},
		"the last one is being started":                            {set("b", "old", 2, 1), pods("b", "old", "old"), "ns/b", "ns/b", "ns/b"},
		"the last one is being started, and the operator is new":   {inTurn(set("b", "old", 2, 1)), pods("b", "old", "old"), "", "ns/b", ""},
		"the last one is being stopped, and ready until it ends":   {inTurn(set("b", "old", 1, 2)), ending(pods("b", "old", "new")), "", "ns/b", ""},
		"the last one is being stopped":                            {set("b", "old", 1, 2), ending(pods("b", "old", "new")), "ns/b", "ns/b", "ns/b"},
		"its first one is to be made, and the operator is new":     {inTurn(set("b", "new", 0, 2)), pods("b", "new", "new"), "", "ns/b", ""},
		"all serve with what was before, and the operator is new":  {inTurn(set("b", "old", 2, 2)), pods("b", "old", "old"), "", "", ""},
		"all serve with what was before":                           {set("b", "old", 2, 2), pods("b", "old", "old"), "ns/b", "", ""},
		"nothing was changed, and one is down":                     {set("b", "old", 2, 1), pods("b", "old", "old"), "", "", ""},
		"nothing was changed, and one is on a lost node":           {set("b", "old", 1, 1), ending(pods("b", "old", "old")), "", "", ""},
		"one of an earlier StatefulSet of the name is there still": {set("b", "old", 1, 2), ofEarlier(pods("b", "old", "new")), "", "", ""},
		"the last pod with it is on a lost node":                   {set("b", "old", 1, 1), ending(pods("b", "old", "new")), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{tc.set, builders.FileServer("ns", "b").Build(), set("a", "new", 0, 2), builders.FileServer("ns", "a").Build()}
			for i := range tc.pods {
				objects = append(objects, &tc.pods[i])
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			turns := &turns{last: tc.holder}
			look := func(name string, set *appsv1.StatefulSet) string {
				// Pods are read later.
				o := &observed{fileServer: builders.FileServer("ns", name).Build(), statefulSet: set}
				if err := o.readRollouts(t.Context(), api, turns); err != nil {
					t.Fatal(err)
				}
				return o.rolloutHeldBy
			}
			if held := look("a", set("a", "new", 0, 2)); held != tc.held {
				t.Errorf("the other one waits for %q, want %q", held, tc.held)
			}
			if held := look("b", tc.set); held != "" {
				t.Errorf("it waits for %q", held)
			}
			if turns.holder() != tc.next {
				t.Errorf("the turn is %q's, want %q", turns.holder(), tc.next)
			}
		})
	}
}

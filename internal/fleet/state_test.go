package fleet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func TestStateOfADataServer(t *testing.T) {
	never := Observation{}
	started := Observation{Started: true}
	ready := func(since time.Duration) Observation {
		return Observation{Started: true, Ready: true, Since: noon.Add(-since)}
	}
	notReady := func(since time.Duration) Observation { return Observation{Started: true, Since: noon.Add(-since)} }
	firstReport := Observation{Since: noon.Add(-time.Second)}
	firstReady := Observation{Ready: true, Since: noon.Add(-time.Second)}
	unreachable := ready(time.Hour)
	unreachable.Unreachable = true
	lost := Observation{Unreachable: true}
	// One column for each PodState: unknown, down, running, ready.
	for name, tc := range map[string]struct {
		seen Observation
		want [4]State
	}{
		"never reported":                    {never, [4]State{Pending, Pending, Starting, Starting}},
		"loaded, and reports nothing":       {started, [4]State{Unavailable, Unavailable, Unavailable, Unavailable}},
		"first report, not Ready":           {firstReport, [4]State{Pending, Pending, Starting, Starting}},
		"Ready, and nothing loaded":         {firstReady, [4]State{Serving, Pending, Starting, Serving}},
		"Ready for long":                    {ready(time.Hour), [4]State{Serving, Unavailable, Unavailable, Serving}},
		"Ready for less than the lag":       {ready(readinessLag - 1), [4]State{Serving, Restarting, Restarting, Serving}},
		"Ready for the lag":                 {ready(readinessLag), [4]State{Serving, Unavailable, Unavailable, Serving}},
		"not Ready within the allowance":    {notReady(RestartAllowance - 1), [4]State{Restarting, Restarting, Restarting, Restarting}},
		"not Ready for the allowance":       {notReady(RestartAllowance), [4]State{Unavailable, Unavailable, Unavailable, Unavailable}},
		"not Ready in another clock's time": {notReady(-time.Hour), [4]State{Unavailable, Unavailable, Unavailable, Unavailable}},
		"Ready, and unreachable":            {unreachable, [4]State{Unavailable, Unavailable, Unavailable, Unavailable}},
		"never reported, and unreachable":   {lost, [4]State{Unavailable, Unavailable, Unavailable, Unavailable}},
	} {
		for _, pod := range []PodState{PodUnknown, PodDown, PodRunning, PodReady} {
			tc.seen.Pod = pod
			if got := tc.seen.State(noon); got != tc.want[pod] {
				t.Errorf("%s, pod %d: %s, want %s", name, pod, got, tc.want[pod])
			}
		}
	}
}

func TestWhatFollowsFromAState(t *testing.T) {
	for state, want := range map[State]struct {
		down, away bool
		api        v1alpha1.ServerState
	}{
		Pending:     {away: true, api: v1alpha1.ServerPending},
		Starting:    {api: v1alpha1.ServerStarting},
		Serving:     {api: v1alpha1.ServerServing},
		Restarting:  {down: true, away: true, api: v1alpha1.ServerUnavailable},
		Unavailable: {down: true, away: true, api: v1alpha1.ServerUnavailable},
	} {
		if state.IsDown() != want.down || state.IsAway() != want.away || state.InAPI() != want.api {
			t.Errorf("%s: down %v, away %v, in the API %s", state, state.IsDown(), state.IsAway(), state.InAPI())
		}
	}
}

func TestPodState(t *testing.T) {
	pod := func(phase corev1.PodPhase, ready corev1.ConditionStatus, deleting bool) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
		if deleting {
			p.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		return p
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want PodState
	}{
		"no pod":        {nil, PodDown},
		"pending":       {pod(corev1.PodPending, corev1.ConditionFalse, false), PodDown},
		"failed":        {pod(corev1.PodFailed, corev1.ConditionTrue, false), PodDown},
		"running":       {pod(corev1.PodRunning, corev1.ConditionFalse, false), PodRunning},
		"ready":         {pod(corev1.PodRunning, corev1.ConditionTrue, false), PodReady},
		"being stopped": {pod(corev1.PodRunning, corev1.ConditionTrue, true), PodRunning},
	} {
		if got := PodOf(tc.pod); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestTheFileServersStatusStandsForThePod(t *testing.T) {
	server := newServer()
	for state, want := range map[v1alpha1.ServerState]PodState{
		"": PodUnknown, v1alpha1.ServerPending: PodDown, v1alpha1.ServerStarting: PodReady, v1alpha1.ServerServing: PodReady, v1alpha1.ServerUnavailable: PodRunning,
	} {
		fs := newFileServer()
		if state != "" {
			fs.Status.Servers = []v1alpha1.FileServerServerStatus{{Name: "fs-0", State: v1alpha1.ServerPending}, {Name: "fs-1", State: state}}
		}
		if got := ObserveWith(fs, "fs-1", server).Pod; got != want {
			t.Errorf("%q: %d, want %d", state, got, want)
		}
	}
	if got := ObserveWith(newFileServer(), "fs-7", nil); got != (Observation{}) {
		t.Errorf("of a data server without an object: %+v", got)
	}
}

func TestRestartLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		seen Observation
		want time.Duration
	}{
		"never reported":      {Observation{}, 0},
		"Ready":               {Observation{Ready: true, Since: noon}, 0},
		"not Ready since now": {Observation{Since: noon}, RestartAllowance},
		"not Ready for 4 s":   {Observation{Since: noon.Add(-4 * time.Second)}, RestartAllowance - 4*time.Second},
		"for the allowance":   {Observation{Since: noon.Add(-RestartAllowance)}, 0},
		"in the future":       {Observation{Since: noon.Add(time.Second)}, 0},
	} {
		if got := tc.seen.RestartLeft(noon); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func newFileServer() *v1alpha1.FileServer {
	return &v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Name: "fs"}, Spec: v1alpha1.FileServerSpec{Replicas: 2}}
}

// newServer is a data server that has been Ready for an hour.
func newServer() *internalv1.DataServer {
	server := &internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: "fs-1"}}
	server.Status.ObservedGeneration = ptr.To(int64(1))
	report(metav1.ConditionTrue, time.Hour)(server, nil)
	return server
}

// report is the data server's own report, and how long ago it changed.
func report(status metav1.ConditionStatus, since time.Duration) func(*internalv1.DataServer, *v1alpha1.FileServer) {
	return func(s *internalv1.DataServer, _ *v1alpha1.FileServer) {
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, LastTransitionTime: metav1.NewTime(noon.Add(-since))}}
	}
}

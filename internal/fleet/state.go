package fleet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

const (
	// RestartAllowance is how long a data server may report itself not Ready before it counts as unavailable. A restart takes less.
	RestartAllowance = 10 * time.Second
	// readinessLag is how long the kubelet may take to call a pod ready after its data server reports Ready, also on a busy node.
	readinessLag = 30 * time.Second
)

// State is what a data server does at one moment.
type State string

const (
	// Pending means that it never served, and no pod of it runs.
	Pending State = "Pending"
	// Starting means that it never served, and its pod runs.
	Starting State = "Starting"
	// Serving means that it answers clients.
	Serving State = "Serving"
	// Restarting means that it served, and is expected to serve again within seconds.
	Restarting State = "Restarting"
	// Unavailable means that it served, and does not answer.
	Unavailable State = "Unavailable"
)

// IsDown tells whether a data server served and does not serve at present, for a moment or for longer.
func (s State) IsDown() bool { return s == Restarting || s == Unavailable }

// IsAway tells whether a deletion does not wait for a data server: it does its part when it is back.
func (s State) IsAway() bool { return s == Pending || s.IsDown() }

// InAPI is the state as a FileServer's status has it, where a restart is no state of its own.
func (s State) InAPI() v1alpha1.ServerState {
	switch s {
	case Serving:
		return v1alpha1.ServerServing
	case Restarting, Unavailable:
		return v1alpha1.ServerUnavailable
	case Starting:
		return v1alpha1.ServerStarting
	}
	return v1alpha1.ServerPending
}

// PodState is what is known of a data server's pod.
type PodState int

const (
	// PodUnknown means that the observer does not look at pods.
	PodUnknown PodState = iota
	// PodDown means that there is no pod, or it does not run.
	PodDown
	// PodRunning means that it runs and is not ready, or is about to end.
	PodRunning
	// PodReady means that the kubelet calls it ready.
	PodReady
)

// PodOf is the state of a pod; nil stands for a pod that does not exist.
func PodOf(pod *corev1.Pod) PodState {
	if pod == nil || pod.Status.Phase != corev1.PodRunning {
		return PodDown
	}
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if ready && pod.DeletionTimestamp == nil {
		return PodReady
	}
	return PodRunning
}

// Observation is what is known of a data server. The zero value knows nothing: its state is Pending.
type Observation struct {
	// Started means that it has reported a loaded configuration at least once.
	Started bool
	// Ready is its own report, and Since when that changed last; zero: it never reported.
	Ready bool
	Since time.Time
	// Unreachable means that namespace servers get no answer from it.
	Unreachable bool
	// Pod is the second source: of a data server whose node is lost the last report stays Ready.
	Pod PodState
}

// Observe is what a DataServer's object has; nil stands for one that does not exist.
func Observe(server *internalv1.DataServer, pod PodState) Observation {
	o := Observation{Pod: pod}
	if server == nil {
		return o
	}
	o.Started, o.Unreachable = server.Status.ObservedGeneration != nil, server.Status.Unreachable.SeenBy != ""
	if ready := meta.FindStatusCondition(server.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		o.Ready, o.Since = ready.Status == metav1.ConditionTrue, ready.LastTransitionTime.Time
	}
	return o
}

// ObserveWith is the same for an observer that sees no pods: the FileServer's status has what its controller saw of them.
func ObserveWith(fileServer *v1alpha1.FileServer, name string, server *internalv1.DataServer) Observation {
	pod := PodUnknown
	if at := slices.IndexFunc(fileServer.Status.Servers, func(s v1alpha1.FileServerServerStatus) bool { return s.Name == name }); at >= 0 {
		switch fileServer.Status.Servers[at].State {
		case v1alpha1.ServerPending:
			pod = PodDown
		case v1alpha1.ServerUnavailable:
			pod = PodRunning
		case v1alpha1.ServerServing, v1alpha1.ServerStarting:
			// A data server reports its first Ready before the FileServer's status has it.
			pod = PodReady
		}
	}
	return Observe(server, pod)
}

// State judges an observation at a time.
func (o Observation) State(now time.Time) State {
	switch {
	case o.Unreachable:
		return Unavailable
	case o.Ready && (o.Pod == PodReady || o.Pod == PodUnknown):
		return Serving
	case o.Started && (o.Ready && now.Sub(o.Since) < readinessLag || o.RestartLeft(now) > 0):
		return Restarting
	case o.Started:
		return Unavailable
	case o.Pod == PodRunning || o.Pod == PodReady:
		return Starting
	}
	return Pending
}

// RestartLeft is how much longer a data server that reports itself not Ready counts as restarting; 0 if it is Ready, or never reported. A time in the
// future comes from another clock and does not count.
func (o Observation) RestartLeft(now time.Time) time.Duration {
	if o.Ready || o.Since.IsZero() {
		return 0
	}
	if since := now.Sub(o.Since); since >= 0 {
		return max(0, RestartAllowance-since)
	}
	return 0
}

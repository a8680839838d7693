package exporter

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
)

// maxEndMessage is the schema's limit of the message of an end, in bytes.
const maxEndMessage = 256

// ends is what this process knows of the ends of its data server: that of the pod or the container before it, and those of ganesha since.
type ends struct {
	begun bool
	// base is the count before the first end of ganesha in this process.
	base int64
	last *v1alpha1.ServerEnd
	at   time.Time
	// seen is the number of ganesha's ends that last is about; start is the start that has to come up again.
	seen, start int
	// downSince is since when clients could not reclaim their state before this process began; zero if it is the first. It never changes.
	downSince time.Time
	// away is true until the data server serves again after the last end.
	away bool
}

// begin reads from the status that the process before this one left how that one ended. Only the first call counts.
func (e *ends) begin(status internalv1.DataServerStatus, podIP, podUID string, now time.Time) {
	if e.begun {
		return
	}
	e.begun = true
	if status.LastEnd != nil {
		e.base, e.last = ptr.Deref(status.LastEnd.Count, 0), status.LastEnd.DeepCopy()
	}
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if status.PodIP == "" || ready == nil {
		return // It is the first.
	}
	stopped, at := ready.Reason == internalv1.ReasonStopping, now
	switch {
	case stopped:
		at = ready.LastTransitionTime.Time
	case status.Unreachable.SinceTime != nil:
		at = status.Unreachable.SinceTime.Time
	}
	cause, message := v1alpha1.EndPodLost, "the pod was replaced without having been stopped in order"
	switch {
	case status.PodIP == podIP && (status.PodUID == "" || status.PodUID == podUID): // On a node's network pods have the node's address.
		cause, message = v1alpha1.EndContainer, "the container was started again in its pod"
		if stopped {
			message = "the kubelet stopped the container, and started it again in its pod"
		}
	case stopped:
		cause, message = v1alpha1.EndPodStopped, "the pod was stopped and replaced"
	}
	if cause != v1alpha1.EndPodStopped {
		e.base++
	}
	e.downSince = at
	if earlier := status.LastEnd; earlier != nil && earlier.EndTime != nil && earlier.EndTime.Time.Before(at) && !gaveGrace(status) {
		e.downSince = earlier.EndTime.Time
	}
	e.set(cause, message, at, e.base, 0)
}

// gaveGrace tells whether clients could reclaim their state for a whole grace period after the last end.
func gaveGrace(status internalv1.DataServerStatus) bool {
	return status.LastEnd.ServedAfterMilliseconds != nil && !meta.IsStatusConditionFalse(status.Conditions, internalv1.GraceEnded)
}

func (e *ends) set(cause v1alpha1.EndCause, message string, at time.Time, count int64, start int) {
	seconds := metav1.NewTime(at.Truncate(time.Second))
	e.last = &v1alpha1.ServerEnd{EndTime: &seconds, Cause: cause, Message: message[:min(len(message), maxEndMessage)], Count: &count}
	e.at, e.start, e.away = at, start, true
}

// Outage is for the supervisor, which runs after the exporter has read the DataServer: since when the server did not serve before this process,
// zero if it is the first, and the addresses whose clients are lost with their node.
func (m *Exporter) Outage() supervisor.Outage {
	return supervisor.Outage{Since: m.ends.downSince, LostClients: *m.lostClients.Load()}
}

// reportStart reports the new pod at once, while the storage is looked at: its clients may come, and wait at the port until ganesha serves. It
// writes nothing if a pass was faster, or if the container was started again in its pod.
func (m *Exporter) reportStart(ctx context.Context) {
	seen := kubeapi.Observation{
		NodeName: m.NodeName, PodIP: m.PodIP, PodUID: m.PodUID, FirstPort: m.FirstPort, Generation: m.dataServer.Generation,
		Reason: internalv1.ReasonStarting, Message: "the data server has just started", LastEnd: m.ends.last,
	}
	seen.NetworkAddresses, _ = m.nodeAddresses()
	now := metav1.NewTime(m.now().Truncate(time.Second))
	m.group.Go(func() {
		err := m.Reporter.Report(ctx, func(earlier internalv1.DataServerStatus) internalv1.DataServerStatus {
			if earlier.PodUID == seen.PodUID {
				return earlier
			}
			return kubeapi.StatusFrom(earlier, seen, now)
		})
		if err != nil {
			m.Log.Warn("reporting the start in the status failed", "err", err)
		}
	})
}

// observe notes new ends of ganesha, and that the data server serves again.
func (e *ends) observe(state supervisor.State, ready bool, now time.Time) {
	if state.Ends != e.seen {
		e.seen = state.Ends
		e.set(v1alpha1.EndGanesha, "ganesha "+state.LastEnd.How, state.LastEnd.At, e.base+int64(state.Ends), state.LastEnd.Start)
	}
	if e.away && ready && state.Starts > e.start {
		e.away = false
		served := *e.last
		served.ServedAfterMilliseconds = ptr.To(max(now.Sub(e.at).Milliseconds(), 0))
		e.last = &served
	}
}

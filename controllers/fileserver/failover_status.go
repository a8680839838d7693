package fileserver

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/fleet"
)

// Reasons of events about failovers.
const (
	eventFailoverStarted = "FailoverStarted"
	eventFailoverFenced  = "FailoverFenced"
	eventFailoverDone    = "FailoverDone"
	eventFailoverRefused = "FailoverRefused"
	eventFailoverStopped = "FailoverStopped"
)

// maxFailoverMessage is how long messages about failovers can be in the status. Names in them have up to 253 characters.
const maxFailoverMessage = 1024

// notAllowed is the reason of a refusal because the operator was installed without failover.
const notAllowed = v1alpha1.ReasonFailoverNotAllowed

// reportFailover is the last failover of a data server, with what this pass has found out and done.
func (o *observed) reportFailover(name string, d decision) v1alpha1.ServerFailover {
	last := o.lastFailover(name)
	record := *last.DeepCopy()
	fence := newestFence(name, d.failover.Fences)
	if fence == nil && o.steward != nil {
		fence = newestFence(name, fencesOf(o.steward)) // This pass ends it.
	}
	if fence == nil {
		return o.endWithout(name, record, d)
	}
	// A pod outlives a failover that was stopped.
	if fence.PodUID != record.PodUID || record.StoppedTime != nil {
		record = v1alpha1.ServerFailover{
			Count: record.Count + 1, Completed: record.Completed, NodeName: fence.Node, PodUID: fence.PodUID, Message: conditions.Shown(fence.Message, maxFailoverMessage),
			SinceTime: &metav1.Time{Time: fence.Since}, DetectedTime: &metav1.Time{Time: fence.Requested},
		}
		if status := o.dataServers[name].Status; status.PodUID == fence.PodUID {
			record.NetworkAddresses = status.NetworkAddresses // The next pod reports those of its own node.
		}
	}
	if requested := (metav1.Time{Time: fence.Requested}); record.FencedTime == nil && !record.DetectedTime.Equal(&requested) {
		// The request before was withdrawn.
		record.SinceTime, record.DetectedTime, record.Message = &metav1.Time{Time: fence.Since}, &requested, conditions.Shown(fence.Message, maxFailoverMessage)
	}
	if !fence.Fenced.IsZero() && record.FencedTime == nil {
		record.FencedTime = &metav1.Time{Time: fence.Fenced}
		record.Evidence = v1alpha1.FailoverEvidence(cmp.Or(fence.Evidence, failover.StorageFenced))
		if fence.Evidence == "" {
			record.Message = fmt.Sprintf("%s; %d of its Ceph clients are in the blocklist, and its mounts end when the next pod mounts", fence.Message, fence.Clients)
		}
	}
	if record.FencedTime == nil {
		return record
	}
	return o.reportSteps(name, record, d)
}

// reportSteps adds what was done since the lost data server is known not to write any more.
func (o *observed) reportSteps(name string, record v1alpha1.ServerFailover, d decision) v1alpha1.ServerFailover {
	now := metav1.NewTime(o.now)
	pod := o.podOf(name)
	isOld := pod != nil && string(pod.UID) == record.PodUID
	// By power the deletion counts once it is seen: a machine that came back may have kept this pass from it.
	isDeleted := !failsOverByPower(o.fileServer) && d.deletedLost && slices.ContainsFunc(d.failover.Delete, func(p failover.Pod) bool { return p.UID == record.PodUID })
	if record.PodDeletedTime == nil && (!isOld || isDeleted) {
		record.PodDeletedTime = &now
	}
	if volumes := o.storage.Volumes(name); isUnderWay(&record) && record.PodDeletedTime != nil && record.VolumesDetachedTime == nil &&
		len(volumes) > 0 && !areAttached(volumes, record.NodeName) {
		record.VolumesDetachedTime = &now
	}
	if record.ServingTime == nil && pod != nil && !isOld && o.stateOf(name) == fleet.Serving {
		record.ServingTime = &now
		record.Completed++
		if record.SinceTime != nil {
			record.DurationSeconds = ptr.To(int32(max(0, now.Sub(record.SinceTime.Time)).Round(time.Second) / time.Second))
		}
	}
	return record
}

func areAttached(volumes []failover.Volume, node string) bool {
	return slices.ContainsFunc(volumes, func(v failover.Volume) bool {
		return slices.ContainsFunc(v.Attachments, func(a failover.Attachment) bool { return a.Node == node })
	})
}

// endWithout ends a failover that this pass does not go on with: the data server serves again, its node is back before, or the reason is gone.
func (o *observed) endWithout(name string, record v1alpha1.ServerFailover, d decision) v1alpha1.ServerFailover {
	if record.Evidence == v1alpha1.FailoverEvidenceStorageFenced && record.ServingTime == nil {
		return o.reportSteps(name, record, d)
	}
	if !isUnderWay(&record) {
		return record
	}
	if pod := o.podOf(name); pod != nil && string(pod.UID) == record.PodUID {
		record.StoppedTime = &metav1.Time{Time: o.now}
		return record
	}
	return o.reportSteps(name, record, d)
}

func newestFence(server string, fences []failover.Fence) (newest *failover.Fence) {
	for i := range fences {
		if fences[i].Server == server && (newest == nil || fences[i].Requested.After(newest.Requested)) {
			newest = &fences[i]
		}
	}
	return newest
}

// refusalOf is why a data server that does not answer is not started on another node; empty while that is not asked for, or not yet
// the question.
func (o *observed) refusalOf(name string, plan failover.Plan) v1alpha1.FailoverRefusal {
	if !asksForFailover(o.fileServer) || o.dataServers[name].Status.Unreachable.SeenBy == "" {
		return v1alpha1.FailoverRefusal{}
	}
	if !o.mayFailOver {
		return v1alpha1.FailoverRefusal{Reason: notAllowed, Message: "the operator was installed without " + allowedBy(o.fileServer)}
	}
	refusal, refused := plan.Refused[name]
	if !refused || refusal.Reason.IsWait() {
		return v1alpha1.FailoverRefusal{}
	}
	return v1alpha1.FailoverRefusal{Reason: string(refusal.Reason), Message: conditions.Shown(refusal.Message, maxFailoverMessage)}
}

// failoverNotAllowed is why there would be no failover although the specification asks for it; "" if there would be.
func (o *observed) failoverNotAllowed() string {
	if !asksForFailover(o.fileServer) || o.mayFailOver {
		return ""
	}
	return fmt.Sprintf("spec.failover.fencing is %s, but the operator was installed without %s", o.fileServer.Spec.Failover.Fencing, allowedBy(o.fileServer))
}

// allowedBy is what an operator that may not fail over was installed without.
func allowedBy(fs *v1alpha1.FileServer) string {
	if failsOverByPower(fs) {
		return "failover of volumes: set failover.volumes=true of the chart"
	}
	return "failover: set failover.enabled=true of the chart"
}

// failoverWaits describes the failover of a data server that does not serve, after what it waits for; "" if there is none.
func (o *observed) failoverWaits(name string, d decision) string {
	refusal, refused := d.failover.Refused[name]
	fence := newestFence(name, d.failover.Fences)
	switch {
	case o.stateOf(name) == fleet.Serving:
		return ""
	case asksForFailover(o.fileServer) && !o.mayFailOver && o.dataServers[name].Status.Unreachable.SeenBy != "":
		return "no failover: " + o.refusalOf(name, d.failover).Message
	case d.failover.Waits[name] != "":
		return "failover: waiting for " + d.failover.Waits[name]
	case refused && refusal.Reason.IsWait():
		return "failover: " + refusal.Message
	case refused:
		return "no failover: " + refusal.Message
	case fence == nil:
		return ""
	case fence.Evidence == failover.NetworkFenced:
		return fmt.Sprintf("failover: the storage refuses node %s, and its pod there is to be deleted", fence.Node)
	case fence.Evidence != "":
		return fmt.Sprintf("failover: the machine of node %s is off, and its pod there is to be deleted", fence.Node)
	case !fence.Fenced.IsZero():
		return fmt.Sprintf("failover: Ceph refuses the clients of its pod on node %s, and it starts on another node", fence.Node)
	case fence.Fault != "":
		return fmt.Sprintf("failover: waiting for Ceph to refuse the clients of its pod on node %s; the steward reports: %s", fence.Node, fence.Fault)
	}
	return fmt.Sprintf("failover: waiting for Ceph to refuse the clients of its pod on node %s", fence.Node)
}

// tellFailovers records events for what is new about failovers.
func tellFailovers(recorder events.EventRecorder, fs *v1alpha1.FileServer, before, after []v1alpha1.FileServerServerStatus) {
	earlier := map[string]v1alpha1.FileServerServerStatus{}
	for i := range before {
		earlier[before[i].Name] = before[i]
	}
	for i := range after {
		// Without the related object, events about several data servers would be counted as one.
		related := &internalv1.DataServer{
			TypeMeta:   metav1.TypeMeta{APIVersion: internalv1.GroupVersion.String(), Kind: "DataServer"},
			ObjectMeta: metav1.ObjectMeta{Namespace: fs.Namespace, Name: after[i].Name},
		}
		tell := func(kind, reason, note string, args ...any) {
			recorder.Eventf(fs, related, kind, reason, "Failover", note, args...)
		}
		server, was, record := &after[i], earlier[after[i].Name], &after[i].LastFailover
		if was.LastFailover.PodUID != record.PodUID || was.LastFailover.StoppedTime != nil && record.StoppedTime == nil {
			tell(corev1.EventTypeWarning, eventFailoverStarted, "%s is to be started on another node than %s: %s", server.Name, record.NodeName, record.Message)
			was.LastFailover = v1alpha1.ServerFailover{}
		}
		if was.LastFailover.FencedTime == nil && record.FencedTime != nil {
			tell(corev1.EventTypeNormal, eventFailoverFenced, "%s on node %s can't write any more: %s", server.Name, record.NodeName, record.Message)
		}
		if was.LastFailover.StoppedTime == nil && record.StoppedTime != nil {
			tell(corev1.EventTypeNormal, eventFailoverStopped, "%s is left on node %s: the machine is not known to be off or refused by the storage any more, or it answers again, or failover was switched off",
				server.Name, record.NodeName)
		}
		if was.LastFailover.ServingTime == nil && record.ServingTime != nil {
			tell(corev1.EventTypeNormal, eventFailoverDone, "%s serves on node %s, %d s after it stopped answering on node %s",
				server.Name, server.NodeName, ptr.Deref(record.DurationSeconds, 0), record.NodeName)
		}
		if refusal := server.FailoverRefusal; refusal.Reason != "" && refusal.Reason != was.FailoverRefusal.Reason {
			tell(corev1.EventTypeWarning, eventFailoverRefused, "%s does not answer, and is not started on another node (%s): %s", server.Name, refusal.Reason, refusal.Message)
		}
	}
}

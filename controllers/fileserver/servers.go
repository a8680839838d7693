package fileserver

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/contract"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/naming"
)

// serverReport is one data server for the status, and why it does not serve.
type serverReport struct {
	status v1alpha1.FileServerServerStatus
	waits  string
	// config is "" if the newest configuration is loaded, else how far it is.
	config string
}

func reportServers(o *observed, d decision) []serverReport {
	reports := make([]serverReport, 0, d.input.Replicas)
	for ordinal := range d.input.Replicas {
		reports = append(reports, reportServer(o, naming.DataServer(o.fileServer.Name, ordinal)))
	}
	return reports
}

func reportServer(o *observed, name string) serverReport {
	pod, hasPod := o.pods[name]
	dataServer := o.dataServers[name]
	r := serverReport{status: v1alpha1.FileServerServerStatus{
		Name:           name,
		NodeName:       pod.Spec.NodeName,
		Address:        dataServer.Spec.Address,
		ConfigRevision: dataServer.Status.ObservedGeneration,
	}}
	if seen := dataServer.Status.Connections; seen.Limit > 0 {
		r.status.Connections = v1alpha1.FileServerConnections{Used: seen.Used, Limit: seen.Limit}
	}
	count := o.directories[name]
	r.status.Directories, r.status.Drain = &count, o.drainOf(name)
	r.status.State, r.waits = o.serverState(&pod, hasPod, &dataServer)
	if undone := o.describeUndone(name); undone != "" {
		r.waits += "; " + undone
	}
	if loaded := dataServer.Status.ObservedGeneration; loaded == nil {
		r.config = "nothing loaded yet"
	} else if *loaded != dataServer.Generation {
		r.config = fmt.Sprintf("revision %d loaded, %d wanted", *loaded, dataServer.Generation)
	}
	return r
}

// serverState tells how far a data server is, and what it waits for. The pod's
// readiness counts beside what the server says of itself: of a lost node the last word stays "ready". Before both comes whether
// it answers, which the namespace servers know within seconds.
func (o *observed) serverState(pod *corev1.Pod, hasPod bool, dataServer *internalv1.DataServer) (v1alpha1.ServerState, string) {
	saysReady := conditions.IsTrue(dataServer.Status.Conditions, v1alpha1.ConditionReady)
	running := hasPod && pod.Status.Phase == corev1.PodRunning
	if unreachable := dataServer.Status.Unreachable; unreachable.SeenBy != "" {
		// A pod on a node that is lost is Running for ever, and one that is to go there never goes.
		if waits := podWaits(pod, hasPod); waits != "" && (!running || o.isNodeReady(pod.Spec.NodeName)) {
			return v1alpha1.ServerUnavailable, waits
		}
		return v1alpha1.ServerUnavailable, unreachableWaits(unreachable, pod.Spec.NodeName, o.nodes, o.storage.IsPinned(dataServer.Name))
	}
	if running && podReady(pod) && pod.DeletionTimestamp == nil && saysReady {
		return v1alpha1.ServerServing, ""
	}
	waits := podWaits(pod, hasPod)
	if waits == "" && running {
		waits = "ganesha does not answer yet"
		said := meta.FindStatusCondition(dataServer.Status.Conditions, v1alpha1.ConditionReady)
		if said != nil && said.Message != "" && (!saysReady || said.Reason == internalv1.ReasonCertificateInvalid) {
			waits = said.Message
		}
		if contract.Refusal(dataServer) != "" {
			waits = "it can't use its storage: see " + v1alpha1.FileServerStorageAvailable
		}
	}
	switch {
	case dataServer.Status.ObservedGeneration != nil:
		return v1alpha1.ServerUnavailable, waits
	case running:
		return v1alpha1.ServerStarting, waits
	}
	return v1alpha1.ServerPending, waits
}

func podReady(pod *corev1.Pod) bool {
	c := podCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func podCondition(pod *corev1.Pod, conditionType corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == conditionType {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// podWaits is what keeps a pod from running: the scheduler's words, or the
// kubelet's reason. Restart counts and times are left out, because they would change the message with every pass.
func podWaits(pod *corev1.Pod, hasPod bool) string {
	switch {
	case !hasPod:
		return "its pod is not made yet"
	case pod.DeletionTimestamp != nil:
		return "its pod is being stopped"
	}
	if c := podCondition(pod, corev1.PodScheduled); c != nil && c.Status != corev1.ConditionTrue {
		return "not scheduled: " + strings.TrimSpace(c.Message)
	}
	if pod.Spec.NodeName == "" {
		return "not scheduled yet"
	}
	for i := range pod.Status.ContainerStatuses {
		state := pod.Status.ContainerStatuses[i].State
		switch {
		case state.Waiting != nil && state.Waiting.Reason != "":
			return describeWaiting(state.Waiting)
		case state.Terminated != nil:
			return fmt.Sprintf("its container ended with code %d (%s)", state.Terminated.ExitCode, state.Terminated.Reason)
		}
	}
	if pod.Status.Phase == corev1.PodPending {
		return "its container is being made"
	}
	return ""
}

// describeWaiting quotes the kubelet only where its words do not change from try to try.
func describeWaiting(waiting *corev1.ContainerStateWaiting) string {
	switch waiting.Reason {
	case "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError":
		return waiting.Reason + ": " + waiting.Message
	}
	return waiting.Reason
}

func servingCount(reports []serverReport) int32 {
	count := int32(0)
	for _, r := range reports {
		if r.status.State == v1alpha1.ServerServing {
			count++
		}
	}
	return count
}

func names(reports []serverReport) []string {
	names := make([]string, 0, len(reports))
	for _, r := range reports {
		names = append(names, r.status.Name)
	}
	return names
}

// namespaceReady counts the namespace servers that are ready, and tells what the others wait for.
func namespaceReady(o *observed) (ready, wanted int32, waits []string) {
	wanted = desired.NamespaceReplicas(o.fileServer)
	for i := range o.namespacePods {
		pod := &o.namespacePods[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		if podReady(pod) {
			ready++
			continue
		}
		if w := podWaits(pod, true); w != "" {
			waits = append(waits, w)
		}
	}
	return ready, wanted, waits
}

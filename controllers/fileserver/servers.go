package fileserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/naming"
)

// serverReport is one data server for the status, and why it does not serve.
type serverReport struct {
	status v1alpha1.FileServerServerStatus
	waits  string
	// refused: the API server refuses its pod.
	refused bool
	// lacksPorts: it waits for ports on a node's network; lacksAddress: for the node's address in another network.
	lacksPorts, lacksAddress bool
	// config is "" if the newest configuration is loaded, else how far it is.
	config string
}

func reportServers(o *observed, d decision) []serverReport {
	reports := make([]serverReport, 0, d.input.Replicas)
	for ordinal := range d.input.Replicas {
		name := naming.DataServer(o.fileServer.Name, ordinal)
		r := reportServer(o, name)
		if failover := o.failoverWaits(name, d); failover != "" {
			r.waits += "; " + failover
		}
		r.status.LastFailover, r.status.FailoverRefusal = o.reportFailover(name, d), o.refusalOf(name, d.failover)
		r.status.ServedBoot = o.servedBoot(name)
		r.status.LastEnd = d.ends[name].status
		if at := d.input.NodeEndpoints[name]; at.Address.IsValid() {
			r.status.NodeAddress = at.Address.String()
		}
		if fault := d.nodeFaults[name]; fault != "" && r.status.State == v1alpha1.ServerServing {
			r.status.State, r.waits, r.lacksAddress = v1alpha1.ServerUnavailable, fault, true
		}
		reports = append(reports, r)
	}
	return reports
}

func reportServer(o *observed, name string) serverReport {
	pod, dataServer := o.pods[name], o.dataServers[name]
	r := serverReport{status: v1alpha1.FileServerServerStatus{
		Name:     name,
		NodeName: pod.Spec.NodeName,
		Address:  dataServer.Spec.Address,

		// As the condition has it; the DataServer follows in this pass.
		OutsideAddresses: o.outsideAddresses()[name],
		ConfigRevision:   dataServer.Status.ObservedGeneration,
	}}
	if seen := dataServer.Status.Connections; seen.Limit > 0 {
		r.status.Connections = v1alpha1.FileServerConnections{Used: seen.Used, Limit: seen.Limit}
	}
	if !o.isShared() {
		r.status.Capacity, r.status.Fill = o.storage.Capacity([]string{name}), fleet.FillOf(&dataServer)
	}
	count := o.directories[name]
	r.status.Directories, r.status.Drain = &count, o.drainOf(name)
	r.status.State, r.waits = o.stateOf(name).InAPI(), o.waitsOf(name)
	r.status.RestartPending = dataServer.Status.RestartPending
	r.refused, r.lacksPorts, r.lacksAddress = o.refused[name] != "", o.lacksPorts(name), o.lacksAddress(name)
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

// stateOf is the state of a data server. Its pod counts beside its own report: on a lost node the last report stays Ready.
func (o *observed) stateOf(name string) fleet.State {
	dataServer := o.dataServers[name]
	return fleet.Observe(&dataServer, fleet.PodOf(o.podOf(name))).State(o.now)
}

// podOf is the pod of a data server, nil if there is none.
func (o *observed) podOf(name string) *corev1.Pod {
	if pod, ok := o.pods[name]; ok {
		return &pod
	}
	return nil
}

// waitsOf is what keeps a data server from serving; "" if it serves.
func (o *observed) waitsOf(name string) string {
	pod, dataServer := o.podOf(name), o.dataServers[name]
	running := pod != nil && pod.Status.Phase == corev1.PodRunning
	if taken := portTaken(&dataServer, pod); taken != "" {
		return taken // The kubelet starts such a container again and again.
	}
	if missing := reportedAs(internalv1.ReasonNodeAddressMissing, &dataServer, pod); missing != "" {
		return missing
	}
	if unreachable := dataServer.Status.Unreachable; unreachable.SeenBy != "" {
		// On a lost node a pod stays Running, and one that is to be stopped there never ends.
		if waits := o.podWaitsOf(name, pod); waits != "" && (!running || o.isNodeReady(pod.Spec.NodeName)) {
			return waits
		}
		return unreachableWaits(unreachable, pod.Spec.NodeName, o.nodes, o.storage.IsPinned(name), o.mayFailOver && asksForFailover(o.fileServer)) +
			o.reachesNone(unreachable.SeenBy)
	}
	if o.stateOf(name) == fleet.Serving {
		return ""
	}
	if waits := o.podWaitsOf(name, pod); waits != "" || !running {
		return waits
	}
	if backendapi.Refusal(&dataServer) != "" {
		return "it can't use its storage: see " + v1alpha1.FileServerStorageAvailable
	}
	reported := meta.FindStatusCondition(dataServer.Status.Conditions, v1alpha1.ConditionReady)
	if reported != nil && reported.Message != "" && (reported.Status != metav1.ConditionTrue || reported.Reason == internalv1.ReasonCertificateInvalid) {
		return reported.Message
	}
	return "ganesha does not answer yet"
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

// podWaits is what keeps a pod from running: the scheduler's message, or the kubelet's reason. nil stands for a pod that does not exist. Restart
// counts and times are left out, because they would change the message with every pass.
func podWaits(pod *corev1.Pod) string {
	switch {
	case pod == nil:
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
		if w := podWaits(pod); w != "" {
			waits = append(waits, w)
		}
	}
	if o.namespaceRefusal != "" && ready < wanted {
		waits = append(waits, "a pod is refused: "+o.namespaceRefusal)
	}
	return ready, wanted, waits
}

// schedulerOnPorts is how the scheduler says that a node has another pod with one of the ports (k8s.io/kubernetes,
// pkg/scheduler/framework/plugins/nodeports, ErrReason).
const schedulerOnPorts = "didn't have free ports"

// portTaken is what a data server says of a port that another program of its node has; "" if it has all.
func portTaken(dataServer *internalv1.DataServer, pod *corev1.Pod) string {
	return reportedAs(internalv1.ReasonPortTaken, dataServer, pod)
}

// reportedAs is what a data server says if this pod of it reports a reason; "" if it reports another.
func reportedAs(reason string, dataServer *internalv1.DataServer, pod *corev1.Pod) string {
	reported := meta.FindStatusCondition(dataServer.Status.Conditions, v1alpha1.ConditionReady)
	if reported == nil || reported.Reason != reason || pod == nil || pod.DeletionTimestamp != nil || !isReportOf(&dataServer.Status, pod) {
		return ""
	}
	return reported.Message
}

// lacksPorts tells whether a data server waits for ports on a node's network.
func (o *observed) lacksPorts(name string) bool {
	pod, dataServer := o.podOf(name), o.dataServers[name]
	if portTaken(&dataServer, pod) != "" {
		return true
	}
	if pod == nil || o.fileServer.Spec.Network.HostNetwork == nil {
		return false
	}
	scheduled := podCondition(pod, corev1.PodScheduled)
	return scheduled != nil && scheduled.Status != corev1.ConditionTrue && strings.Contains(scheduled.Message, schedulerOnPorts)
}

// lacksAddress tells whether a data server waits for an address of its node.
func (o *observed) lacksAddress(name string) bool {
	dataServer := o.dataServers[name]
	return reportedAs(internalv1.ReasonNodeAddressMissing, &dataServer, o.podOf(name)) != ""
}

// describeAddressesIn is what the user can do about an address that a node lacks, or that two nodes have.
func describeAddressesIn(fs *v1alpha1.FileServer) string {
	networks := ""
	if network := fs.Spec.Network.HostNetwork; network != nil && len(network.AddressesIn) > 0 {
		networks = " in " + strings.Join(network.AddressesIn, ", ")
	}
	return fmt.Sprintf("; each node with a data server needs an address of its own%s: give it one, keep data servers off such nodes (spec.placement), "+
		"or name another network in spec.network.hostNetwork.addressesIn", networks)
}

// describeHostPorts is what the user can do about ports that are taken; "" without a network of nodes.
func describeHostPorts(fs *v1alpha1.FileServer) string {
	network := fs.Spec.Network.HostNetwork
	if network == nil {
		return ""
	}
	first, last := naming.HostPorts(network)
	return fmt.Sprintf("; each data server needs a node where nothing else has the TCP ports %d to %d, nor another data server of this FileServer: "+
		"set spec.network.hostNetwork.firstPort to five free ones, lower spec.replicas, or let spec.placement name more nodes", first, last)
}

// unreachableWaits says since when a data server does not answer, where it ran, and what it waits for.
func unreachableWaits(unreachable internalv1.Unreachable, nodeName string, nodes []corev1.Node, pinned, failsOver bool) string {
	text := "does not answer since " + unreachable.SinceTime.UTC().Format(time.RFC3339)
	if nodeName == "" {
		return text
	}
	at := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == nodeName })
	switch {
	case at >= 0 && nodeReady(&nodes[at]) && pinned:
		return fmt.Sprintf("%s; node %s, which has its volumes, is Ready so far: it waits for ganesha there, or for that node to come back", text, nodeName)
	case at >= 0 && nodeReady(&nodes[at]):
		return fmt.Sprintf("%s; node %s, where it runs, is Ready so far: it waits for ganesha there, or for that node's network", text, nodeName)
	case failsOver:
		return fmt.Sprintf("%s; node %s is %s", text, nodeName, nodeState(at))
	case pinned:
		return fmt.Sprintf("%s; node %s is %s, and its volumes are on that node: it waits for node %s to come back", text, nodeName, nodeState(at), nodeName)
	}
	return fmt.Sprintf("%s; node %s is %s: it waits for that node, or, once the machine is known to be off, for you to let it start elsewhere: "+
		"kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", text, nodeName, nodeState(at), nodeName)
}

// reachesNone says that a namespace server reaches no data server, while all of them are ready in their pods: the fault may be on its side; "" if
// that is not so.
func (o *observed) reachesNone(reporter string) string {
	at := slices.IndexFunc(o.namespacePods, func(p corev1.Pod) bool { return p.Name == reporter })
	if at < 0 || len(o.dataServers) < 2 {
		return ""
	}
	for name := range o.dataServers {
		if pod := o.podOf(name); o.dataServers[name].Status.Unreachable.SeenBy != reporter || pod == nil || !podReady(pod) || !o.isNodeReady(pod.Spec.NodeName) {
			return ""
		}
	}
	node := o.namespacePods[at].Spec.NodeName
	text := fmt.Sprintf("; all data servers are ready in their pods, and namespace server %s on node %s reaches none of them: look at the network of that node", reporter, node)
	if network := o.fileServer.Spec.Network.HostNetwork; network != nil && len(network.AddressesIn) > 0 {
		text += ", which must reach spec.network.hostNetwork.addressesIn, or keep namespace servers off it (spec.namespaceServers.placement)"
	}
	return text
}

func (o *observed) isNodeReady(name string) bool {
	return slices.ContainsFunc(o.nodes, func(n corev1.Node) bool { return n.Name == name && nodeReady(&n) })
}

func nodeState(at int) string {
	if at < 0 {
		return "gone"
	}
	return "not ready"
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

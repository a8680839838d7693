package fileserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/internal/admissible"
	"github.com/howdah/howdah/internal/naming"
)

// report returns the status that follows from what was observed and decided, and from the error of applying it. The
// previous status provides the transition times.
func report(o *observed, d decision, applied error, now time.Time) v1alpha1.FileServerStatus {
	fs := o.fileServer
	servers := reportServers(o, d)
	status := *fs.Status.DeepCopy()
	replicas, ready := d.input.Replicas, servingCount(servers)
	status.Replicas, status.ReadyReplicas = &replicas, &ready
	nodeAddresses := d.nodeAddresses
	status.NodeAddresses = &nodeAddresses
	status.Address = o.addresses()[naming.NamespaceService(fs.Name)]
	status.OutsideAddresses = o.outsideAddresses()[naming.NamespaceService(fs.Name)]
	status.Capacity = o.storage.Capacity(names(servers))
	status.VolumeSize = o.storage.VolumeSize()
	status.Moves = countMoves(o, d)
	if o.connections != nil {
		status.NamespaceServers.Connections = namespaceConnections(status.NamespaceServers.Connections, o.connections)
	}
	status.Servers = nil
	for _, s := range servers {
		status.Servers = append(status.Servers, s.status)
	}
	parts := []metav1.Condition{
		o.storage.Condition(d.input.Replicas, d.storage),
		serversCondition(d, servers, o.failoverNotAllowed()),
		namespaceCondition(o),
		configCondition(o.fileServer, servers, o.leftOnClaims()),
	}
	outside := o.outsideCondition(replicas)
	if outside == nil {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.FileServerOutsideAddressesAvailable)
	} else {
		parts = append(parts, *outside)
	}
	conditions.Set(&status.Conditions, fs.Generation, now, parts...)
	updated := o.updatedCondition(d)
	if updated != nil {
		conditions.Set(&status.Conditions, fs.Generation, now, *updated)
	}
	conditions.SetSummary(&status.Conditions, fs.Generation, now, readyCondition(o, d, applied, updated, parts))
	conditions.SetPaused(&status.Conditions, fs, now)
	status.Selector = metav1.FormatLabelSelector(metav1.SetAsLabelSelector(naming.SelectDataServers(fs.Name)))
	if !conditions.IsPaused(fs) && (applied == nil || conditions.IsStalled(status.Conditions)) {
		generation := fs.Generation
		status.ObservedGeneration = &generation
	}
	return status
}

// countMoves says how many directories are to move, and how many have.
func countMoves(o *observed, d decision) v1alpha1.DirectoryMoves {
	return v1alpha1.DirectoryMoves{
		Pending: ptr.To(int32(d.moves.Pending - int(d.moved))), Done: ptr.To(ptr.Deref(o.fileServer.Status.Moves.Done, 0) + d.uncounted),
	}
}

// readyCondition puts refused requests of the specification before the state of the parts, because only the user can
// resolve them.
func readyCondition(o *observed, d decision, applied error, updated *metav1.Condition, parts []metav1.Condition) metav1.Condition {
	var findings []metav1.Condition
	if inUse := inUseCondition(o); inUse != nil {
		findings = append(findings, *inUse)
	}
	if bad := badValueCondition(o.badValues); bad != nil {
		findings = append(findings, *bad)
	}
	if applied != nil {
		findings = append(findings, conditions.False(v1alpha1.ConditionReady, reasonOf(applied), applied.Error()))
	}
	if d.refused != nil {
		findings = append(findings, *d.refused)
	}
	if fault := desired.SelectorFault(o.fileServer); fault != nil {
		findings = append(findings, conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
			"spec.allowedNamespaces.selector can't be used, and shares of other namespaces are not served until it is corrected: %v", fault)))
	}
	if updated != nil && updated.Reason == v1alpha1.ReasonRolloutStopped {
		findings = append(findings, *updated)
	}
	if d.tooManyNetworks != nil {
		findings = append(findings, *d.tooManyNetworks)
	}
	if d.familyMissing != nil {
		findings = append(findings, *d.familyMissing)
	}
	findings = append(findings, conditions.Summarize(v1alpha1.ConditionReady, parts,
		v1alpha1.FileServerStorageAvailable, v1alpha1.FileServerServersAvailable, v1alpha1.FileServerNamespaceServersAvailable))
	if d.draining != nil { // Before ConfigApplied: draining takes long, and changes the data servers' configuration.
		findings = append(findings, *d.draining)
	}
	if desired.HasOutside(o.fileServer) { // After those that clients in the cluster notice, too.
		findings = append(findings, conditions.Summarize(v1alpha1.ConditionReady, parts, v1alpha1.FileServerOutsideAddressesAvailable))
	}
	config := conditions.Summarize(v1alpha1.ConditionReady, parts, v1alpha1.FileServerConfigApplied)
	worst := conditions.Worst(v1alpha1.ConditionReady, append(findings, config)...)
	if worst.Status == metav1.ConditionTrue && worst.Reason == v1alpha1.ReasonReady {
		return config // It may have a caveat.
	}
	return worst
}

// badValueCondition is about values that the API server would refuse in pods and Services; nil if there are none.
func badValueCondition(bad admissible.Faults) *metav1.Condition {
	var kept []string
	of := func(is bool, children string) {
		if is {
			kept = append(kept, children)
		}
	}
	of(len(bad.Pods) > 0, "all pods")
	of(len(bad.Pods) == 0 && len(bad.DataServers) > 0, "pods of data servers")
	of(len(bad.Pods) == 0 && len(bad.NamespaceServers) > 0, "pods of namespace servers")
	of(len(bad.Outside) > 0, "Services for clients outside the cluster")
	if len(kept) == 0 {
		return nil
	}
	c := conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
		"%s; until this is corrected, %s are made as before, or not at all", admissible.Text(bad.All()), strings.Join(kept, " and ")))
	return &c
}

func serversCondition(d decision, servers []serverReport, failoverNotAllowed string) metav1.Condition {
	const conditionType = v1alpha1.FileServerServersAvailable
	var waiting []string
	homeless, refused, lacksPorts, lacksAddress := false, false, false, false
	for _, s := range servers {
		if s.status.State != v1alpha1.ServerServing {
			homeless, refused = homeless || s.status.NodeName == "", refused || s.refused
			lacksPorts, lacksAddress = lacksPorts || s.lacksPorts, lacksAddress || s.lacksAddress
			waiting = append(waiting, fmt.Sprintf("%s is %s (%s)", s.status.Name, s.status.State, s.waits))
		}
	}
	serving := fmt.Sprintf("%d of %d data servers serve", len(servers)-len(waiting), len(servers))
	few := ""
	if d.eligible < d.input.Replicas {
		nodes := fmt.Sprintf("%d nodes are", d.eligible)
		if d.eligible == 1 {
			nodes = "1 node is"
		}
		few = fmt.Sprintf("; %s eligible for %d data servers (spec.placement, cordons and taints count)", nodes, d.input.Replicas)
	}
	switch {
	case len(servers) == 0:
		return conditions.False(conditionType, v1alpha1.ReasonTooFewNodes,
			"spec.replicas is unset and no node is eligible for a data server (spec.placement, cordons and taints count)")
	case len(waiting) == 0:
		if len(d.frozen) > 0 { // Clients wait for them.
			return conditions.True(conditionType, v1alpha1.ReasonDirectoriesFrozen, serving+"; "+conditions.List(d.frozen, maxPaths)+
				". It ends by itself when the two data servers reach each other; if the volume of the other one is lost for good, docs/operate/operations.md#directories-that-stay-frozen has the command")
		}
		if len(d.notDrained) > 0 { // Who believes that a data server is empty may take its node or its volume away.
			return conditions.True(conditionType, v1alpha1.ReasonNotDrained, serving+"; spec.drain.servers: "+conditions.List(d.notDrained, maxPaths))
		}
		if few != "" {
			return conditions.True(conditionType, v1alpha1.ReasonServersShareNodes, serving+few)
		}
		if full := nearlyFull(servers); len(full) > 0 {
			return conditions.True(conditionType, v1alpha1.ReasonConnectionsNearLimit, fmt.Sprintf(
				"%s; more than 80 %% of the connections that there may be are used of %s: raise spec.nfs.maxConnections or the memory in spec.resources",
				serving, conditions.List(full, maxPaths)))
		}
		if failoverNotAllowed != "" {
			return conditions.True(conditionType, v1alpha1.ReasonFailoverNotAllowed, serving+"; "+failoverNotAllowed)
		}
		return conditions.True(conditionType, v1alpha1.ReasonReady, serving)
	case refused:
		return conditions.False(conditionType, v1alpha1.ReasonPodsRefused, serving+": "+conditions.List(waiting, maxPaths))
	case lacksPorts:
		return conditions.False(conditionType, v1alpha1.ReasonHostPortsTaken, serving+": "+conditions.List(waiting, maxPaths)+few+describeHostPorts(d.input.FileServer))
	case lacksAddress:
		return conditions.False(conditionType, v1alpha1.ReasonNodeAddressMissing, serving+": "+conditions.List(waiting, maxPaths)+describeAddressesIn(d.input.FileServer))
	case few != "" && homeless: // One that has its node waits for that node, or for itself, and not for more nodes.
		return conditions.False(conditionType, v1alpha1.ReasonTooFewNodes, serving+": "+conditions.List(waiting, maxPaths)+few)
	}
	return conditions.False(conditionType, v1alpha1.ReasonServersNotReady, serving+": "+conditions.List(waiting, maxPaths))
}

// nearlyFull lists the servers near their connection limit, with the limit. The number of connections is left out,
// because the message would change all the time.
func nearlyFull(servers []serverReport) (names []string) {
	for _, s := range servers {
		if c := s.status.Connections; c.Used != nil && v1alpha1.ManyConnections(*c.Used, c.Limit) {
			names = append(names, fmt.Sprintf("%s (%d)", s.status.Name, c.Limit))
		}
	}
	return names
}

// namespaceConnections returns the reported connections of the namespace servers, coarse enough that not every client
// changes the status.
func namespaceConnections(earlier v1alpha1.FileServerConnections, use *connectionUse) v1alpha1.FileServerConnections {
	used := use.used
	if earlier.Used != nil && earlier.Limit == use.limit {
		used = v1alpha1.CoarseConnections(*earlier.Used, used, use.limit)
	}
	return v1alpha1.FileServerConnections{Used: &used, Limit: use.limit}
}

func namespaceCondition(o *observed) metav1.Condition {
	const conditionType = v1alpha1.FileServerNamespaceServersAvailable
	ready, wanted, waits := namespaceReady(o)
	message := fmt.Sprintf("%d of %d namespace servers are ready", ready, wanted)
	if len(waits) > 0 {
		slices.Sort(waits)
		message += ": " + conditions.List(slices.Compact(waits), maxPaths)
	}
	if ready == 0 {
		if o.namespaceRefusal != "" {
			return conditions.False(conditionType, v1alpha1.ReasonPodsRefused, message)
		}
		return conditions.False(conditionType, v1alpha1.ReasonNamespaceServersNotReady, message)
	}
	if o.connections == nil {
		// An operator that has just started repeats a warning until it has asked, or each of its starts would be news.
		if before := o.fileServer.Status.Conditions; conditions.Reason(before, conditionType) == v1alpha1.ReasonConnectionsNearLimit {
			return conditions.True(conditionType, v1alpha1.ReasonConnectionsNearLimit, conditions.Message(before, conditionType))
		}
	} else if len(o.connections.full) > 0 {
		return conditions.True(conditionType, v1alpha1.ReasonConnectionsNearLimit, fmt.Sprintf(
			"%s; more than 80 %% of the connections that there may be are used of %s: raise the memory limit in spec.namespaceServers.resources, or spec.namespaceServers.replicas",
			message, conditions.List(o.connections.full, maxPaths)))
	}
	return conditions.True(conditionType, v1alpha1.ReasonReady, message)
}

func configCondition(fs *v1alpha1.FileServer, servers []serverReport, left string) metav1.Condition {
	const conditionType = v1alpha1.FileServerConfigApplied
	var behind, early []string
	for _, s := range servers {
		if fields := s.status.RestartPending; len(fields) > 0 {
			early = append(early, s.status.Name+" ("+strings.Join(fields, ", ")+")")
		}
		if s.config != "" {
			behind = append(behind, s.status.Name+": "+s.config)
		}
	}
	if len(behind) == 0 && len(servers) > 0 {
		message := "every data server has loaded its newest configuration"
		if left != "" {
			message += "; " + left
		}
		if len(early) > 0 {
			return conditions.True(conditionType, v1alpha1.ReasonRestartPending, fmt.Sprintf(
				"%s; %d of %d use earlier values of spec.nfs until they restart: %s. To restart one after the other: kubectl -n %s rollout restart statefulset %s",
				message, len(early), len(servers), conditions.List(early, maxPaths), fs.Namespace, naming.DataServers(fs.Name)))
		}
		return conditions.True(conditionType, v1alpha1.ReasonReady, message)
	}
	return conditions.False(conditionType, v1alpha1.ReasonConfigPending,
		fmt.Sprintf("%d of %d data servers have not loaded their newest configuration: %s", len(behind), len(servers), conditions.List(behind, maxPaths)))
}

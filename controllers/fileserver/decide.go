package fileserver

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/directorymoves"
	"github.com/howdah/howdah/controllers/limits"
	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/rollout"
)

// decision is what a pass changes, and what it reports.
type decision struct {
	input desired.FileServerInput
	// eligible is the number of nodes that data servers may run on.
	eligible int32
	// storage is what the back end wants.
	storage backendapi.Decision
	// refused is set if something in the specification is not done.
	refused *metav1.Condition
	// draining is set while data servers that are to be idle are not yet idle.
	draining *metav1.Condition
	// notDrained says which data servers in spec.drain.servers are not made idle, and why.
	notDrained []string
	// frozen are directories that stay frozen because the objects of their moves were lost.
	frozen []string
	// moves are the directories to move; moved is the number of moves done in this pass, uncounted that of all that are in no status.
	moves            directorymoves.Plan
	moved, uncounted int64
	// failover is what to do about lost nodes.
	failover failover.Plan
	// rollout is how a change of the data servers' pods reaches them; templateChanged: there is a change that this pass applies.
	rollout         rollout.Plan
	templateChanged bool
	// replaceWaits is what keeps this pass from replacing a pod that is to be replaced now.
	replaceWaits string
	// deletedLost: the pods of lost data servers were deleted in this pass.
	deletedLost bool
	// nodeAddresses is how many addresses the nodes have.
	nodeAddresses int32
	// tooManyNetworks is set if the nodes have more addresses than a DataServer can hold.
	tooManyNetworks *metav1.Condition
	// familyMissing is set if spec.network.hostNetwork.addressesIn does not count.
	familyMissing *metav1.Condition
	// nodeFaults are why Services that lead to addresses of nodes lead nowhere, by data server.
	nodeFaults map[string]string
	// ends is what to do about ends of data servers, by name.
	ends map[string]endDecision
}

func decide(o *observed, images desired.Images) decision {
	d := decision{eligible: countEligible(o.nodes, o.placement())}
	replicas, refused := decideReplicas(o, d.eligible)
	d.refused, d.storage = refused, o.storage.Decide(desired.DataServerLabels(o.fileServer))
	d.moves, d.ends = o.moves.Plan(), o.decideEnds()
	d.draining, d.frozen = o.drainCondition(replicas, d.moves), o.moves.Frozen()
	d.notDrained = o.notDrained(replicas)
	addresses := desired.NodeAddresses(o.nodes)
	d.nodeAddresses = int32(len(addresses))
	var networks []netip.Prefix
	networks, d.tooManyNetworks = limitNetworks(desired.NodeNetworks(addresses, o.fileServer.Spec.AdditionalNodeNetworks), internalv1.MaxNodeNetworks)
	d.failover = failover.Decide(o.failoverInput())
	d.rollout = rollout.Decide(o.rolloutInput(replicas))
	var addressesIn []netip.Prefix
	addressesIn, d.familyMissing = o.addressesIn()
	var endpoints map[string]desired.NodeEndpoint
	endpoints, d.nodeFaults = o.nodeEndpoints(replicas, addressesIn)
	d.input = desired.FileServerInput{
		FileServer:   o.fileServer,
		Images:       images,
		Replicas:     replicas,
		ToBeIdle:     o.toBeIdle(replicas),
		Storage:      d.storage.Servers,
		Addresses:    o.addresses(),
		WaitingRooms: o.waitingRooms(d.failover.KeepOff),
		Starting:     o.starting(replicas),

		AddressesIn:   addressesIn,
		NodeEndpoints: endpoints,

		OutsideAddresses: o.outsideAddresses(),
		OutsideReplaced:  o.outsideReplaced(replicas),

		NodeNetworks: networks,

		LostNodeAddresses: o.lostNodeAddresses(),

		Near: o.nearClients(),

		DirectoryLimits: directoryLimits(o.fileServer),
		Fences:          fencesInAPI(d.failover.Fences),
		Rollout:         desired.Rollout{Replacing: d.rollout.OnDelete},
		ImageOn:         o.nodeToPull(d.rollout),
		StewardStays:    o.stewardStays(images.Server),

		CertificatesLost: o.certificatesLost(),
	}
	d.templateChanged = o.changesTemplate(d.input)
	return d
}

// limitNetworks cuts the networks to the limit. The condition names the first node that is left out; other addresses
// are not allowed in its place.
func limitNetworks(networks []netip.Prefix, limit int) ([]netip.Prefix, *metav1.Condition) {
	if len(networks) <= limit {
		return networks, nil
	}
	tooManyNetworks := conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonTooManyNodeNetworks, fmt.Sprintf(
		"the addresses of the nodes make more than %d networks, so nodes from %s on can't mount shares that let Nodes in; "+
			"name the networks that nodes are in, and no pods, in spec.additionalNodeNetworks: what is inside of them needs no place of its own",
		limit, networks[limit].Addr()))
	return networks[:limit], &tooManyNetworks
}

// namedPerOwner is how many of a server's directories a refusal names.
const namedPerOwner = 2

// decideReplicas returns the effective number of data servers (placement.Replicas), with a condition if it is not the
// requested number.
func decideReplicas(o *observed, eligible int32) (int32, *metav1.Condition) {
	existing := int32(0)
	if o.statefulSet != nil && o.statefulSet.Spec.Replicas != nil {
		existing = *o.statefulSet.Spec.Replicas
	}
	if o.isShared() {
		return o.replicasUntilIdle(existing, eligible), nil
	}
	fixed := o.moves.Fixed()
	counts, paths := fixed.Counts, fixed.Paths
	needed := o.ownersNeed(counts)
	wanted := o.fileServer.Spec.Replicas
	replicas, isRefused := placement.Replicas(wanted, existing, eligible, needed)
	if !isRefused {
		return max(replicas, o.replicasUntilIdle(existing, eligible)), nil
	}
	refused := conditions.False(v1alpha1.ConditionReady, v1alpha1.ReasonScaleInRefused,
		fmt.Sprintf("spec.replicas is %d, but data servers that would go own directories that can't move: %s; remove the directories, or set spec.replicas to %d or more",
			wanted, o.describeOwners(wanted, counts, paths), needed))
	return replicas, &refused
}

// ownersNeed is the lowest number of replicas that keeps every server with such directories.
func (o *observed) ownersNeed(counts map[string]int32) int32 {
	needed := int32(0)
	for server := range counts {
		if ordinal, ok := naming.DataServerOrdinal(o.fileServer.Name, server); ok {
			needed = max(needed, ordinal+1)
		}
	}
	return needed
}

// describeOwners lists, for each server from the ordinal on, how many directories it owns, with the names of two. The
// highest ordinals come first, because they determine the number of replicas.
func (o *observed) describeOwners(from int32, counts map[string]int32, all map[string][]string) string {
	type owner struct {
		ordinal int32
		name    string
	}
	var owners []owner
	for server := range counts {
		if ordinal, ok := naming.DataServerOrdinal(o.fileServer.Name, server); ok && ordinal >= from {
			owners = append(owners, owner{ordinal, server})
		}
	}
	slices.SortFunc(owners, func(a, b owner) int { return cmp.Compare(b.ordinal, a.ordinal) })
	described := make([]string, 0, len(owners))
	for _, owner := range owners {
		count, paths := int(counts[owner.name]), all[owner.name]
		paths = paths[:min(len(paths), namedPerOwner)]
		text := fmt.Sprintf("%s owns %d", owner.name, count)
		if len(paths) > 0 {
			text += " (" + strings.Join(paths, ", ")
			if more := count - len(paths); more > 0 {
				text += fmt.Sprintf(" and %d more", more)
			}
			text += ")"
		}
		described = append(described, text)
	}
	return conditions.List(described, maxPaths)
}

// placement is where data servers may run: as their pods have it while the specification has values that pods can't have.
func (o *observed) placement() *v1alpha1.Placement {
	if o.statefulSet == nil || !o.keepsPods() {
		return o.fileServer.Spec.Placement
	}
	pod := &o.statefulSet.Spec.Template.Spec
	kept := &v1alpha1.Placement{NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations}
	if pod.Affinity != nil {
		kept.NodeAffinity = pod.Affinity.NodeAffinity
	}
	return kept
}

// keepsPods tells whether the data servers keep the pods that they have, if any, until the specification is corrected.
func (o *observed) keepsPods() bool {
	return len(o.badValues.DataServers) > 0 || len(o.badValues.Pods) > 0
}

// countEligible counts the nodes that the scheduler would consider for a data server.
func countEligible(nodes []corev1.Node, placement *v1alpha1.Placement) int32 {
	return int32(len(nodes) - len(closedNodes(nodes, placement)))
}

// closedNodes are the nodes that the scheduler would not consider for a data server, by selectors, affinity, taints and cordons.
func closedNodes(nodes []corev1.Node, placement *v1alpha1.Placement) map[string]bool {
	if placement == nil {
		placement = &v1alpha1.Placement{}
	}
	wanted := nodeaffinity.NewRequiredNodeAffinity(placement.NodeSelector, &corev1.Affinity{NodeAffinity: placement.NodeAffinity})
	closed := map[string]bool{}
	for i := range nodes {
		node := &nodes[i]
		// An affinity that can't be read matches no node here, and the API server refuses it in the StatefulSet.
		matches, err := wanted.Match(node)
		_, untolerated := schedulingcorev1.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, placement.Tolerations, keepsPodsOff, false)
		if node.Spec.Unschedulable || node.DeletionTimestamp != nil || err != nil || !matches || untolerated {
			closed[node.Name] = true
		}
	}
	return closed
}

func keepsPodsOff(taint *corev1.Taint) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule
}

// directoryLimits are what namespace servers hold clients' mkdir to.
func directoryLimits(fileServer *v1alpha1.FileServer) internalv1.DirectoryLimits {
	exports := backend.Of(fileServer).ExportsPerShare(fileServer)
	caps := limits.Of(fileServer, desired.MaxShares(exports), exports)
	return internalv1.DirectoryLimits{Total: int32(caps.Total.Directories), PerNamespace: int32(caps.PerNamespace.Directories)}
}

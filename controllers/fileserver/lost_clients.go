package fileserver

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
)

// maxLostAddresses is the schema's limit.
const maxLostAddresses = 64

// lostNodeAddresses are, by data server, the addresses of the node from which a failover took it, until clients have had a grace period since.
func (o *observed) lostNodeAddresses() map[string][]netip.Addr {
	lost := map[string][]netip.Addr{}
	for name := range o.dataServers {
		record := o.lastFailover(name)
		isOver := record.FencedTime == nil || record.StoppedTime != nil ||
			record.ServingTime != nil && !conditions.IsFalse(o.dataServers[name].Status.Conditions, internalv1.GraceEnded)
		at := slices.IndexFunc(o.nodes, func(node corev1.Node) bool { return node.Name == record.NodeName })
		if isOver || at < 0 {
			continue
		}
		addresses := desired.NodeAddresses(o.nodes[at : at+1])
		lost[name] = addresses[:min(len(addresses), maxLostAddresses)]
	}
	return lost
}

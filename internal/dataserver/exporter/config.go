package exporter

import (
	"fmt"
	"net/netip"
	"slices"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/exportids"
	"github.com/howdah/howdah/internal/dataserver/kubeapi"
	"github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/subnet"
)

// loopback are all addresses that never leave a network namespace (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3).
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// desiredConfig is the configuration that a DataServer and exports ask for. The table has an id for each of the
// exports; the back end adds what is specific to the storage. memoryLimit is what the container may use, in bytes; 0 means no limit. The pod's own
// node connects from gateways. Ports are those of a pod with a network of its own; the exporter has others (withPorts). The clients of awaited exports
// wait.
func desiredConfig(server *internalv1.DataServer, exports, awaited []*internalv1.ShareExport, ids *exportids.Table, storage backend.Backend, own netip.Addr, memoryLimit int64, gateways ...netip.Addr) (ganesha.Config, error) {
	owner, err := serverOwner(server)
	if err != nil {
		return ganesha.Config{}, err
	}
	nodes, err := clusterNodes(server, gateways)
	if err != nil {
		return ganesha.Config{}, err
	}
	config := ganesha.Config{
		ServerScope:  server.Spec.ServerScope,
		ServerOwner:  owner,
		LeaseSeconds: server.Spec.LeaseSeconds, Limits: ganesha.LimitsFor(memoryLimit).WithConnections(uint32(server.Spec.MaxConnections)),
		AlwaysAdmitted: own, CountedAlone: countedAlone(nodes, exports, awaited),
		// Ganesha needs a grace period of at least a lease: a client that notices the restart late must still be able to reclaim.
		GraceSeconds: max(server.Spec.GraceSeconds, server.Spec.LeaseSeconds),
	}
	storage.CompleteConfig(&config)
	for _, export := range exports {
		share := kubeapi.ShareOf(export)
		rules, err := clientRules(export.Spec.Access, nodes)
		if err != nil {
			return ganesha.Config{}, fmt.Errorf("share %s: %w", share, err)
		}
		for part := range ids.Parts {
			wanted := ganesha.Export{
				ID:      ids.Parts[part][share].ExportID.ID(),
				Pseudo:  naming.ExportPseudo(share, int32(part)),
				Clients: append(loopbackClients(own), rules...),
			}
			storage.CompleteExport(&wanted, share, int32(part))
			config.Exports = append(config.Exports, wanted)
		}
	}
	for _, export := range awaited {
		config.Exports = append(config.Exports, awaitedExports(export, ids, own, nodes)...)
	}
	return config, nil
}

// awaitedExports are those of a share that belongs here and is not served. If its rules can't be read, no client finds it by its path, and clients with
// a handle wait.
func awaitedExports(export *internalv1.ShareExport, ids *exportids.Table, own netip.Addr, nodes nodes) (exports []ganesha.Export) {
	share := kubeapi.ShareOf(export)
	rules, err := clientRules(export.Spec.Access, nodes)
	if err != nil {
		rules = nil
	}
	for part := range ids.Parts {
		exports = append(exports, ganesha.Export{
			ID:      ids.Parts[part][share].ExportID.ID(),
			Pseudo:  naming.ExportPseudo(share, int32(part)),
			Clients: append(loopbackClients(own), rules...),
			Awaited: true,
		})
	}
	return exports
}

// serverOwner is the Server_Owner of a DataServer; its ordinal is in its name.
func serverOwner(server *internalv1.DataServer) (string, error) {
	ordinal, ours := naming.DataServerOrdinal(server.Spec.FileServerRef.Name, server.Name)
	if !ours {
		return "", fmt.Errorf("the DataServer's name %q is not spec.fileServerRef %q with an ordinal", server.Name, server.Spec.FileServerRef.Name)
	}
	return naming.DataServerOwner(server.Spec.ServerScope, ordinal), nil
}

// loopbackClients come before all rules of users. The exporter's own address may do everything: the exporter checks the exports from it, and
// forwards the calls of namespace servers. The rest of the loopback network may do nothing: kubectl port-forward comes from there.
func loopbackClients(own netip.Addr) []ganesha.Client {
	return []ganesha.Client{
		{Addresses: []netip.Prefix{netip.PrefixFrom(own, own.BitLen())}, Access: ganesha.ReadWrite, Squash: ganesha.SquashNone},
		{Addresses: loopback, Access: ganesha.AccessNone, Squash: ganesha.SquashAll},
	}
}

// nodes are the Nodes of access rules.
type nodes struct {
	networks []netip.Prefix
	// known is true if the operator has listed some. The pod's own node has access before that.
	known bool
}

func clusterNodes(server *internalv1.DataServer, gateways []netip.Addr) (nodes, error) {
	found := nodes{known: len(server.Spec.NodeNetworks) > 0}
	for _, text := range server.Spec.NodeNetworks {
		network, err := ganesha.ParseAddress(text)
		if err != nil {
			return nodes{}, fmt.Errorf("spec.nodeNetworks: %w", err)
		}
		found.networks = append(found.networks, network)
	}
	for _, gateway := range gateways {
		found.networks = append(found.networks, netip.PrefixFrom(gateway, gateway.BitLen()))
	}
	return found, nil
}

// countedAlone are the networks whose IPv6 addresses count as clients of their own: those of nodes, and single addresses that a rule names.
func countedAlone(nodes nodes, exports ...[]*internalv1.ShareExport) (networks []netip.Prefix) {
	for _, network := range nodes.networks {
		if network.Addr().Is6() && network.Bits() >= subnet.NodeBits {
			networks = append(networks, network)
		}
	}
	for _, export := range slices.Concat(exports...) {
		for _, rule := range export.Spec.Access {
			for _, text := range rule.Clients {
				// What is no address was refused with its rule, or is a word.
				if address, err := ganesha.ParseAddress(text); err == nil && address.Addr().Is6() && address.IsSingleIP() {
					networks = append(networks, address)
				}
			}
		}
	}
	return networks
}

// clientRules are the rules of a share for ganesha, which uses the first one that has the client's address. While no node is known, a rule for
// nodes may match any address, so the rules after it are left out: they could give a node more rights. A rule without an address is left out,
// because ganesha would apply it to every client.
func clientRules(rules []v1alpha1.AccessRule, nodes nodes) ([]ganesha.Client, error) {
	clients := make([]ganesha.Client, 0, len(rules))
	for i, rule := range rules {
		client, err := clientRule(rule, nodes.networks)
		if err != nil {
			return nil, fmt.Errorf("access rule %d: %w", i, err)
		}
		if len(client.Addresses) > 0 {
			clients = append(clients, client)
		}
		if !nodes.known && slices.Contains(rule.Clients, v1alpha1.ClientNodes) {
			break
		}
	}
	return clients, nil
}

func clientRule(rule v1alpha1.AccessRule, nodes []netip.Prefix) (ganesha.Client, error) {
	var client ganesha.Client
	// A value that this version doesn't know must not let in more than was asked for: it is an error.
	switch rule.AccessType {
	case "", v1alpha1.AccessReadWrite:
		client.Access = ganesha.ReadWrite
	case v1alpha1.AccessReadOnly:
		client.Access = ganesha.ReadOnly
	default:
		return client, fmt.Errorf("accessType %q is not known to this version", rule.AccessType)
	}
	switch rule.Squash {
	case "", v1alpha1.SquashNone:
		client.Squash = ganesha.SquashNone
	case v1alpha1.SquashRoot:
		client.Squash = ganesha.SquashRoot
	case v1alpha1.SquashAll:
		client.Squash = ganesha.SquashAll
	default:
		return client, fmt.Errorf("squash %q is not known to this version", rule.Squash)
	}
	switch rule.SourcePorts {
	case "", v1alpha1.SourcePortsAny:
	case v1alpha1.SourcePortsReserved:
		client.ReservedPorts = true
	default:
		return client, fmt.Errorf("ports %q is not known to this version", rule.SourcePorts)
	}
	for _, text := range rule.Clients {
		switch {
		case text == v1alpha1.ClientNodes && client.Addresses == nil:
			client.Addresses = slices.Clip(nodes) // One list for all shares, most of the time.
			continue
		case text == v1alpha1.ClientNodes:
			client.Addresses = append(client.Addresses, nodes...)
			continue
		}
		prefix, err := ganesha.ParseAddress(text)
		if err != nil {
			return client, err
		}
		client.Addresses = append(client.Addresses, prefix)
	}
	return client, nil
}

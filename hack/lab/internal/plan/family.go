package plan

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Family is which addresses a lab's nodes, pods and Services have. The zero value is IPv4.
type Family string

// The families. With Dual everything has an address of both; the first one, which Kubernetes takes where it has room for
// one only, is IPv4.
const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
	Dual Family = "Dual"
)

// addresses are those of one family. IPv6 ones are unique local addresses (RFC 4193): no router takes them out of a lab.
type addresses struct {
	apiServer             string
	nodeFormat, podFormat string // With the number of a node.
	nodeBits              int
	pods, services        string
	firstService, dns     string
}

var (
	four = addresses{
		apiServer: "10.88.0.1", nodeFormat: "10.88.0.%d", podFormat: "10.244.%d.0/24", nodeBits: 24,
		pods: "10.244.0.0/16", services: "10.96.0.0/16", firstService: "10.96.0.1", dns: "10.96.0.10",
	}
	// The digits of a node's number are the same in both families. /112 has as many Services as /16; the API server takes /108 at most.
	six = addresses{
		apiServer: "fd00:10:88::1", nodeFormat: "fd00:10:88::%d", podFormat: "fd00:10:244:%d::/64", nodeBits: 64,
		pods: "fd00:10:244::/48", services: "fd00:10:96::/112", firstService: "fd00:10:96::1", dns: "fd00:10:96::10",
	}
)

// ParseFamily reads the value of --ip-family.
func ParseFamily(text string) (Family, error) {
	for _, family := range []Family{IPv4, IPv6, Dual} {
		if strings.EqualFold(text, string(family)) {
			return family, nil
		}
	}
	return "", fmt.Errorf("IP family %q: want IPv4, IPv6 or Dual", text)
}

// HasIPv6 tells whether there are IPv6 addresses in the lab.
func (f Family) HasIPv6() bool { return f == IPv6 || f == Dual }

// all are the addresses of each family of a lab, the first family first.
func (f Family) all() []addresses {
	switch f {
	case IPv6:
		return []addresses{six}
	case Dual:
		return []addresses{four, six}
	}
	return []addresses{four}
}

// of are some addresses of each family, the first family first.
func (f Family) of(which func(addresses) string) []string {
	var list []string
	for _, family := range f.all() {
		list = append(list, which(family))
	}
	return list
}

// APIServerIP is where the API server listens, which has one address only: the first family's.
func (f Family) APIServerIP() string { return f.APIServerIPs()[0] }

// APIServerIPs are the addresses of the machine of the API server, the nodes' gateway.
func (f Family) APIServerIPs() []string { return f.of(func(a addresses) string { return a.apiServer }) }

// PodCIDRs have the addresses of all pods.
func (f Family) PodCIDRs() []string { return f.of(func(a addresses) string { return a.pods }) }

// ServiceCIDRs have the addresses of all Services.
func (f Family) ServiceCIDRs() []string { return f.of(func(a addresses) string { return a.services }) }

// FirstServices are the addresses of the Service kubernetes.
func (f Family) FirstServices() []string {
	return f.of(func(a addresses) string { return a.firstService })
}

// ClusterDNS are the addresses of the cluster's DNS.
func (f Family) ClusterDNS() []string { return f.of(func(a addresses) string { return a.dns }) }

// APIServerAddress is the API server's address and port inside the lab.
func (f Family) APIServerAddress() string {
	return net.JoinHostPort(f.APIServerIP(), strconv.Itoa(APIServerPort))
}

// APIServer is the API server's URL inside the lab.
func (f Family) APIServer() string { return "https://" + f.APIServerAddress() }

// Volumes is the address of the lab's network volumes.
func (f Family) Volumes() string { return net.JoinHostPort(f.APIServerIP(), strconv.Itoa(VolumesPort)) }

// nodeIPs are the addresses of a machine, by its number.
func (f Family) nodeIPs(number int) []string {
	return f.of(func(a addresses) string { return fmt.Sprintf(a.nodeFormat, number) })
}

// nodePods are the addresses of a node's pods.
func (f Family) nodePods(number int) []string {
	return f.of(func(a addresses) string { return fmt.Sprintf(a.podFormat, number) })
}

// OnLink are the arguments of "ip addr" for the address of a machine on its device. No other machine has the address, so IPv6 need not
// look for one, for a second, before the address can be used (nodad).
func OnLink(address, device string) []string {
	if strings.Contains(address, ":") {
		return []string{address + "/" + strconv.Itoa(six.nodeBits), "dev", device, "nodad"}
	}
	return []string{address + "/" + strconv.Itoa(four.nodeBits), "dev", device}
}

// Package plan turns a lab's settings into names and addresses. It touches
// nothing, so all of it can be tested without a lab.
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
)

// Every instance lives in a network namespace of its own, so all of them use
// the same addresses (Family) and none of these can clash with the host's networks.
const (
	APIServerPort = 6443
	// MTU is that of storage networks: with 1500 bytes headers take 4 % of a link.
	MTU           = 9000
	ClusterDomain = "cluster.local"
	Bridge        = "lab0"

	// VolumesPort is where the network volumes of a lab are (NBD), at the address of the API server.
	VolumesPort = 10809

	// AgentPort is where the agent in every node listens; it is below the
	// NodePort range and unused by Kubernetes.
	AgentPort = 9099

	// DefaultName is the instance that commands mean when none is named.
	DefaultName = "howdah"

	maxNodes = 50
	minPort  = 20000
	ports    = 10000
)

var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)

// Settings are what a user chooses for an instance.
type Settings struct {
	Name   string         `json:"name"`
	Nodes  int            `json:"nodes"`
	Memory string         `json:"memory"`
	Caps   map[string]int `json:"caps,omitempty"`
	// NetworkVolumes gives the lab the storage class network, whose volumes every node can use.
	NetworkVolumes bool `json:"networkVolumes,omitempty"`
	// Outside gives the lab a machine that is no node: one outside the cluster, in the nodes' network.
	Outside bool `json:"outside,omitempty"`
	// Family is which addresses everything has.
	Family Family `json:"ipFamily,omitempty"`
}

// OutsideName is the machine that is no node.
const OutsideName = "outside"

// Node is one machine of an instance.
type Node struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	// IPs and PodCIDRs have one of each family of the lab, the first family first.
	IPs      []string `json:"ips"`
	PodCIDRs []string `json:"podCIDRs,omitempty"`
	MAC      string   `json:"mac"`
	Tap      string   `json:"tap"`
	CapMbit  int      `json:"capMbit,omitempty"`
}

// IP is the machine's address of the lab's first family.
func (n Node) IP() string { return n.IPs[0] }

// ValidName reports whether name can be an instance's; it becomes part of
// paths, of a network namespace's name and of process environments.
func ValidName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("lab name %q: want at most 20 of a-z, 0-9 and '-', starting with a letter", name)
	}
	return nil
}

// Validate reports the first setting that can't work.
func (s Settings) Validate() error {
	if err := ValidName(s.Name); err != nil {
		return err
	}
	if s.Nodes < 1 || s.Nodes > maxNodes {
		return fmt.Errorf("number of nodes is %d, want 1 to %d", s.Nodes, maxNodes)
	}
	if _, err := MemoryMiB(s.Memory); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, node := range s.NodeList() {
		known[node.Name] = true
	}
	for name := range s.Caps {
		if !known[name] {
			return fmt.Errorf("cap for %q, but there is no such node", name)
		}
	}
	return nil
}

// NodeList derives every node from its number.
func (s Settings) NodeList() []Node {
	nodes := make([]Node, 0, s.Nodes)
	for i := 1; i <= s.Nodes; i++ {
		name := fmt.Sprintf("node%d", i)
		nodes = append(nodes, Node{
			Index:    i,
			Name:     name,
			IPs:      s.Family.nodeIPs(10 + i),
			PodCIDRs: s.Family.nodePods(i),
			MAC:      fmt.Sprintf("02:88:00:00:00:%02x", 10+i),
			Tap:      fmt.Sprintf("tap%d", i),
			CapMbit:  s.Caps[name],
		})
	}
	return nodes
}

// Machines are the nodes, and the machine that is none if there is one.
func (s Settings) Machines() []Node {
	machines := s.NodeList()
	if s.Outside {
		const index = 1 + maxNodes
		machines = append(machines, Node{
			Index: index, Name: OutsideName, IPs: s.Family.nodeIPs(10 + index),
			MAC: fmt.Sprintf("02:88:00:00:00:%02x", 10+index), Tap: fmt.Sprintf("tap%d", index),
		})
	}
	return machines
}

// IsNode tells whether a machine is part of the cluster.
func (n Node) IsNode() bool { return n.Name != OutsideName }

// Node finds a machine by name.
func (s Settings) Node(name string) (Node, error) {
	for _, node := range s.Machines() {
		if node.Name == name {
			return node, nil
		}
	}
	return Node{}, fmt.Errorf("lab %s has no node %q", s.Name, name)
}

// Same reports whether two settings describe the same lab.
func (s Settings) Same(other Settings) bool {
	if s.Name != other.Name || s.Nodes != other.Nodes || s.Memory != other.Memory || s.NetworkVolumes != other.NetworkVolumes || s.Outside != other.Outside ||
		cmp.Or(s.Family, IPv4) != cmp.Or(other.Family, IPv4) || len(s.Caps) != len(other.Caps) {
		return false
	}
	for name, limit := range s.Caps {
		if other.Caps[name] != limit {
			return false
		}
	}
	return true
}

// NetNS is the instance's network namespace.
func NetNS(name string) string {
	return "howdah-lab-" + name
}

// PreferredPort is the loopback port the API server is offered on. Derived from
// the name, so that a kubeconfig stays right over down and up; the caller takes
// another when it is in use.
func PreferredPort(name string) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // A hash's Write never fails.
	return minPort + int(sum.Sum32()%ports)
}

// ErrNoLab says that no instance of the name exists.
var ErrNoLab = errors.New("no such lab")

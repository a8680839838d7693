package kernels

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

const bridge = "kernels"

// family is the kind of addresses of everything: there are no others.
type family struct {
	// machines and services are what their addresses begin with; bits is the length of the machines' prefix.
	machines, services string
	bits               int
	// all has every address, apiServices those of the API server's Services.
	all, apiServices string
	// iptables is the command, add what adding an address needs besides.
	iptables, add string
	sysctls       []string
}

var (
	ipv4 = family{
		machines: "10.77.0.", services: "10.96.0.", bits: 24, all: "0.0.0.0/0", apiServices: "10.0.0.0/24", iptables: "iptables -w",
		sysctls: []string{
			"net.bridge.bridge-nf-call-iptables=1", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0",
			"net.ipv4.conf." + bridge + ".send_redirects=0",
		},
	}
	ipv6 = family{
		machines: "fd77::", services: "fd96::", bits: 64, all: "::/0", apiServices: "fd97::/112", iptables: "ip6tables -w", add: " nodad",
		sysctls: []string{"net.bridge.bridge-nf-call-ip6tables=1", "net.ipv6.conf.all.forwarding=1"},
	}
	// addresses is the family of this run.
	addresses = familyCalled(os.Getenv("HOWDAH_KERNELS_FAMILY"))
)

func familyCalled(name string) family {
	if name == "IPv6" {
		return ipv6
	}
	return ipv4
}

// Addresses. All but those of Services are on one bridge.
var (
	testAddress  = addresses.machine(1) // The test's, its API server's, and the clients' router.
	clientsRange = netip.MustParsePrefix(addresses.machine(0) + "/" + strconv.Itoa(addresses.bits)).Masked().String()
	// namespaceServers is what clients mount. No server has it: as with a Service, connections to it are led to one of the namespace
	// servers, and those that are there stay with it.
	namespaceServers = addresses.services + "1"
)

func (f family) machine(i int) string { return f.machines + strconv.Itoa(i) }

func namespaceAddress(i int) string { return addresses.machine(3 + i) }
func namespaceNetwork(i int) string { return fmt.Sprintf("namespace%d", i) }
func ownerAddress(i int) string     { return addresses.machine(11 + i) }
func ownerNetwork(i int) string     { return fmt.Sprintf("owner%d", i) }
func clientAddress(i int) string    { return addresses.machine(101 + i) }
func clientDevice(i int) string     { return fmt.Sprintf("client%d", i) }

// source is an address as it is in what is mounted, before the colon.
func source(address string) string { return strings.TrimSuffix(net.JoinHostPort(address, ""), ":") }

// host runs a command of the test's own namespaces: words divided by spaces.
func host(t testing.TB, format string, args ...any) {
	t.Helper()
	fields := strings.Fields(fmt.Sprintf(format, args...))
	if output, err := exec.Command(fields[0], fields[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(fields, " "), err, output)
	}
}

// layNetwork makes the bridge, and what servers and clients are plugged into. It is in the network
// namespace that hack/test-kernels.sh made for this test, and ends with it.
func layNetwork(t testing.TB, owners, clients int) {
	t.Helper()
	host(t, "ip link set lo up")
	host(t, "ip link add %s type bridge forward_delay 0", bridge)
	host(t, "ip address add %s/%d dev %s%s", testAddress, addresses.bits, bridge, addresses.add)
	host(t, "ip link set %s up", bridge)
	// What passes the bridge passes iptables, too: there the test loses packets, and changes the address of the namespace servers.
	for _, setting := range addresses.sysctls {
		host(t, "sysctl -qw %s", setting)
	}
	for i := range fronts {
		layServerNetwork(t, namespaceNetwork(i), namespaceAddress(i))
	}
	for i := range owners {
		layServerNetwork(t, ownerNetwork(i), ownerAddress(i))
	}
	for i := range clients {
		layClientDevice(t, i)
	}
}

// layClientDevice makes what a machine of User-mode Linux is plugged into.
func layClientDevice(t testing.TB, i int) {
	t.Helper()
	host(t, "ip tuntap add dev %s mode tap vnet_hdr", clientDevice(i))
	host(t, "ip link set %s master %s up", clientDevice(i), bridge)
}

// layServerNetwork makes the network namespace of a server.
func layServerNetwork(t testing.TB, name, address string) {
	t.Helper()
	host(t, "ip netns add %s", name)
	host(t, "ip link add %s type veth peer name eth0 netns %s", name, name)
	host(t, "ip link set %s master %s up", name, bridge)
	host(t, "ip -n %s address add %s/%d dev eth0%s", name, address, addresses.bits, addresses.add)
	host(t, "ip -n %s link set eth0 up", name)
	host(t, "ip -n %s link set lo up", name)
}

// lead leads new connections of clients to a namespace server, as kube-proxy does.
func lead(t testing.TB, i int) {
	t.Helper()
	host(t, "%s -t nat -F PREROUTING", addresses.iptables)
	host(t, "%s -t nat -A PREROUTING -d %s -p tcp --dport 2049 -j DNAT --to-destination %s", addresses.iptables, namespaceServers,
		net.JoinHostPort(namespaceAddress(i), "2049"))
}

// cut drops what goes from one address, or range, to another.
func cut(t testing.TB, from, to string) {
	t.Helper()
	for _, chain := range []string{"FORWARD", "INPUT", "OUTPUT"} {
		host(t, "%s -A %s -s %s -d %s -j DROP", addresses.iptables, chain, from, to)
	}
}

// heal takes back all that was cut.
func heal(t testing.TB) {
	t.Helper()
	host(t, "%s -F", addresses.iptables)
}

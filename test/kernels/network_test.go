package kernels

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// Addresses. All are on one bridge.
const (
	bridge           = "kernels"
	testAddress      = "10.77.0.1" // The test's, its API server's and the namespace server's own.
	namespaceServers = "10.77.0.2"
	clientsRange     = "10.77.0.0/24"
)

func ownerAddress(i int) string  { return fmt.Sprintf("10.77.0.%d", 11+i) }
func clientAddress(i int) string { return fmt.Sprintf("10.77.0.%d", 101+i) }
func ownerNetwork(i int) string  { return fmt.Sprintf("owner%d", i) }
func clientDevice(i int) string  { return fmt.Sprintf("client%d", i) }

// host runs a command of the test's own namespaces: words divided by spaces.
func host(t testing.TB, format string, args ...any) {
	t.Helper()
	fields := strings.Fields(fmt.Sprintf(format, args...))
	if output, err := exec.Command(fields[0], fields[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(fields, " "), err, output)
	}
}

// layNetwork makes the bridge, and what owners and clients are plugged into. It is in the network
// namespace that hack/test-kernels.sh made for this test, and ends with it.
func layNetwork(t testing.TB, owners, clients int) {
	t.Helper()
	host(t, "ip link set lo up")
	host(t, "ip link add %s type bridge forward_delay 0", bridge)
	host(t, "ip address add %s/24 dev %s", testAddress, bridge)
	host(t, "ip address add %s/24 dev %s", namespaceServers, bridge)
	host(t, "ip link set %s up", bridge)
	for i := range owners {
		ns := ownerNetwork(i)
		host(t, "ip netns add %s", ns)
		host(t, "ip link add %s type veth peer name eth0 netns %s", ns, ns)
		host(t, "ip link set %s master %s up", ns, bridge)
		host(t, "ip -n %s address add %s/24 dev eth0", ns, ownerAddress(i))
		host(t, "ip -n %s link set eth0 up", ns)
		host(t, "ip -n %s link set lo up", ns)
	}
	for i := range clients {
		host(t, "ip tuntap add dev %s mode tap vnet_hdr", clientDevice(i))
		host(t, "ip link set %s master %s up", clientDevice(i), bridge)
	}
}

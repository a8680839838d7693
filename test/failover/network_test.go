package failover

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	bridge = "nodes"
	// machineAddress is that of the API server and of the operator, which are on no node.
	machineAddress = "10.87.0.1"
	allPods        = "10.88.0.0/16"
	allServices    = "10.96.0.0/16"
	namespaces     = "/run/netns/"
)

func nodeName(i int) string      { return fmt.Sprintf("node%d", i) }
func nodeAddress(i int) string   { return fmt.Sprintf("10.87.0.%d", 10+i) }
func podGateway(i int) string    { return fmt.Sprintf("10.88.%d.1", i) }
func podsOfNode(i int) string    { return fmt.Sprintf("10.88.%d.0/24", i) }
func podAddress(i, n int) string { return fmt.Sprintf("10.88.%d.%d", i, n) }

// command runs a command of this machine: words divided by spaces.
func command(format string, args ...any) error {
	fields := strings.Fields(fmt.Sprintf(format, args...))
	if output, err := exec.Command(fields[0], fields[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(fields, " "), err, output)
	}
	return nil
}

func host(t testing.TB, format string, args ...any) {
	t.Helper()
	if err := command(format, args...); err != nil {
		t.Fatal(err)
	}
}

// routing has a network namespace pass packets on, whatever way the answers take.
const routing = "net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.default.send_redirects=0"

// layNetwork makes the nodes' network. It is in the network namespace of the run, and ends with it.
func layNetwork(t testing.TB, nodes int) {
	t.Helper()
	host(t, "mount -t tmpfs tmpfs /run") // For names of network namespaces, and for what iptables locks.
	host(t, "ip link add %s type bridge forward_delay 0", bridge)
	host(t, "ip address add %s/24 dev %s", machineAddress, bridge)
	host(t, "ip link set %s up", bridge)
	host(t, "sysctl -qw %s", routing)
	for i := range nodes {
		layNode(t, i, nodes)
	}
}

func layNode(t testing.TB, i, nodes int) {
	t.Helper()
	name := nodeName(i)
	host(t, "ip netns add %s", name)
	host(t, "ip link add %s type veth peer name eth0 netns %s", name, name)
	host(t, "ip link set %s master %s up", name, bridge)
	host(t, "ip route add %s via %s", podsOfNode(i), nodeAddress(i))
	host(t, "ip -n %s address add %s/24 dev eth0", name, nodeAddress(i))
	host(t, "ip -n %s link set eth0 up", name)
	host(t, "ip -n %s link set lo up", name)
	host(t, "ip -n %s route add default via %s", name, machineAddress)
	for other := range nodes {
		if other != i {
			host(t, "ip -n %s route add %s via %s", name, podsOfNode(other), nodeAddress(other))
		}
	}
	host(t, "ip netns exec %s sysctl -qw %s", name, routing)
}

// layPod makes the network of a pod: one link to its node, which is its router.
func layPod(node int, network, address string) error {
	link := "p" + network
	for _, line := range []string{
		"ip netns add %[1]s",
		"ip -n %[2]s link add %[3]s type veth peer name eth0 netns %[1]s",
		"ip -n %[2]s address add %[4]s/32 dev %[3]s",
		"ip -n %[2]s link set %[3]s up",
		"ip -n %[2]s route add %[5]s/32 dev %[3]s src %[4]s",
		"ip -n %[1]s link set lo up",
		"ip -n %[1]s address add %[5]s/32 dev eth0",
		"ip -n %[1]s link set eth0 up",
		"ip -n %[1]s route add %[4]s/32 dev eth0",
		"ip -n %[1]s route add default via %[4]s",
	} {
		if err := command(line+"%.0[1]s%.0[2]s%.0[3]s%.0[4]s%.0[5]s", network, nodeName(node), link, podGateway(node), address); err != nil {
			return err
		}
	}
	return nil
}

// inNetwork runs a function whose sockets are in a network namespace.
func inNetwork(name string, run func() error) error {
	runtime.LockOSThread()
	own, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = own.Close() }()
	other, err := os.Open(namespaces + name)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = other.Close() }()
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	failure := run()
	if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err != nil {
		return err // The thread stays locked, and ends with its goroutine.
	}
	runtime.UnlockOSThread()
	return failure
}

// dialFrom connects from a node, as its kernel does.
func dialFrom(ctx context.Context, node int, address string) (connection net.Conn, err error) {
	failure := inNetwork(nodeName(node), func() error {
		connection, err = new(net.Dialer).DialContext(ctx, "tcp", address)
		return nil
	})
	if failure != nil {
		return nil, failure
	}
	return connection, err
}

package kernels

import (
	"fmt"
	"testing"

	"github.com/howdah/howdah/internal/naming"
)

// firstWithTrunks is the first Linux whose mounts take the option max_connect.
const firstWithTrunks = "5.15"

// secondAddress is another address of owner 0.
var secondAddress = addresses.machine(61)

// readByAddress mounts an export by both addresses of its data server, reads a file by the first mount, and prints for each address the
// connections and the KiB that came by it.
const readByAddress = `mkdir -p /tmp/first /tmp/second
mount -t nfs4 -o vers=4.1,nconnect=16,max_connect=2 %[1]s:%[3]s /tmp/first
mount -t nfs4 -o vers=4.1,nconnect=16,max_connect=2 %[2]s:%[3]s /tmp/second
trap 'umount -i /tmp/second; umount -i /tmp/first' EXIT
set -e
mkdir -p -m 777 /tmp/first/a0; dd if=/dev/zero of=/tmp/first/a0/file bs=1M count=32 status=none; sync
head -c 1 /tmp/second/a0/file > /dev/null
echo 3 > /proc/sys/vm/drop_caches
received() { ss -tinH dst $1 dport = :2049 | grep -o 'bytes_received:[0-9]*' | cut -d: -f2 | { n=0; sum=0; while read bytes; do n=$((n + 1)); sum=$((sum + bytes)); done; echo $n $((sum >> 10)); }; }
a=$(received %[1]s); b=$(received %[2]s)
cat /tmp/first/a0/file > /dev/null
echo $a $b $(received %[1]s) $(received %[2]s)`

// testTrunks settles what a second address of a data server gives a client (docs/operate/host-network.md): Linux joins the two if
// max_connect is given, but makes one connection to the second address, however many the first one has.
func (w *world) testTrunks(t *testing.T) {
	w.share("trunks", 1, nil)
	host(t, "ip -n %s address add %s/%d dev eth0%s", ownerNetwork(0), secondAddress, addresses.bits, addresses.add)
	// Ganesha listens at its pod's address alone.
	rule := fmt.Sprintf("PREROUTING -d %s -j DNAT --to-destination %s", secondAddress, ownerAddress(0))
	host(t, "ip netns exec %s %s -t nat -A %s", ownerNetwork(0), addresses.iptables, rule)
	t.Cleanup(func() {
		host(t, "ip netns exec %s %s -t nat -D %s", ownerNetwork(0), addresses.iptables, rule)
		host(t, "ip -n %s address del %s/%d dev eth0", ownerNetwork(0), secondAddress, addresses.bits)
	})
	w.onEveryKernel(t, func(t *testing.T, c *kernelClient) {
		if older(c.kernel, firstWithTrunks) {
			t.Skipf("max_connect is newer than Linux %s", c.kernel)
		}
		out := c.must(t, fmt.Sprintf(readByAddress, source(ownerAddress(0)), source(secondAddress), naming.ExportPseudo("trunks", 0)))
		var connections, before, after [2]int
		if n, err := fmt.Sscan(out, &connections[0], &before[0], &connections[1], &before[1], &connections[0], &after[0], &connections[1], &after[1]); n != 8 {
			t.Fatalf("%v: %s", err, out)
		}
		first, second := after[0]-before[0], after[1]-before[1]
		t.Logf("Linux %s: %d connections to the first address brought %d KiB, %d to the second %d KiB", c.kernel, connections[0], first, connections[1], second)
		if connections != [2]int{16, 1} {
			t.Errorf("connections to the two addresses: %v, want 16 and 1", connections)
		}
		if part := float64(second) / float64(first+second); part == 0 || part > 0.2 {
			t.Errorf("the second address brought %.2f of the data, want about one of 17 parts", part)
		}
	})
}

package freeport

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A port that the kernel could give to a connection would be lost to it.
func TestAddressesAreOutsideTheRangeOfConnections(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Fatal(err)
	}
	lowest, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 100 {
		address, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := net.SplitHostPort(address)
		if port, _ := strconv.Atoi(text); port >= lowest || seen[address] {
			t.Errorf("%s is in the range from %d, or was given before", address, lowest)
		}
		seen[address] = true
	}
}

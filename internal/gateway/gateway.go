// Package gateway finds the address from which a pod's own node connects to it. A node reaches its pods through the bridge that is their
// default gateway; with most network plugins the API does not have that address.
package gateway

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"strings"
)

// The routes of this process's network namespace (proc_net(5)).
const (
	routes4 = "/proc/net/route"
	routes6 = "/proc/net/ipv6_route"
)

// Addresses are the default gateways of this process's network namespace; none if they can't be read.
func Addresses() []netip.Addr {
	text4, _ := os.ReadFile(routes4) // Without IPv4, or IPv6, there is no such file.
	text6, _ := os.ReadFile(routes6)
	return Parse(string(text4), string(text6))
}

// Parse reads the default gateways of the texts of the two tables. It leaves out link-local gateways: no node connects from one.
func Parse(text4, text6 string) (gateways []netip.Addr) {
	add := func(address netip.Addr) {
		if !address.IsUnspecified() && !address.IsLoopback() && !address.IsLinkLocalUnicast() && !address.IsMulticast() {
			gateways = append(gateways, address)
		}
	}
	for line := range strings.Lines(text4) {
		// Interface, destination, gateway, flags, three counters, mask: in the byte order of the machine, which is little-endian.
		fields := strings.Fields(line)
		if len(fields) < 8 || fields[1] != "00000000" || fields[7] != "00000000" {
			continue
		}
		if raw, err := hex.DecodeString(fields[2]); err == nil && len(raw) == 4 {
			add(netip.AddrFrom4([4]byte(binary.LittleEndian.AppendUint32(nil, binary.BigEndian.Uint32(raw)))))
		}
	}
	for line := range strings.Lines(text6) {
		// Destination, its length, source, its length, gateway.
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[1] != "00" || strings.Trim(fields[0], "0") != "" {
			continue
		}
		if raw, err := hex.DecodeString(fields[4]); err == nil && len(raw) == 16 {
			add(netip.AddrFrom16([16]byte(raw)))
		}
	}
	return gateways
}

// Package gateway tells from which address a pod's own node comes to it. Traffic of a node to a pod on it leaves by the bridge, or the
// like, that the pod has as its default gateway: with most network plugins that address is nowhere in the API.
package gateway

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"strings"
)

// Routes of this process's network, as the kernel shows them.
const (
	routes4 = "/proc/net/route"
	routes6 = "/proc/net/ipv6_route"
)

// Addresses are the default gateways of this process's network; none if there are none, or they can't be read.
func Addresses() []netip.Addr {
	text4, _ := os.ReadFile(routes4) // Without IPv4, or IPv6, there is no such file.
	text6, _ := os.ReadFile(routes6)
	return parse(string(text4), string(text6))
}

// parse reads the default routes. Link-local gateways are everywhere the same, and no address that a node comes from.
func parse(text4, text6 string) (gateways []netip.Addr) {
	add := func(address netip.Addr) {
		if !address.IsUnspecified() && !address.IsLoopback() && !address.IsLinkLocalUnicast() && !address.IsMulticast() {
			gateways = append(gateways, address)
		}
	}
	for line := range strings.Lines(text4) {
		// Interface, destination, gateway, flags, three counters, mask: numbers of the machine's, which is little-endian.
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

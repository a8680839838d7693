package rook

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// maxMonitors is the maximum number of monitor addresses for data servers. One is enough to start.
const maxMonitors = 16

// parseMonitors reads MonitorsConfigMap: "a=10.1.2.3:6789,b=[fd00::1]:3300" under data, and under outOfQuorum the names of those that Rook
// is about to replace, which are left out unless there are no others. Addresses are sorted. What can't be read is left out, as Rook does.
func parseMonitors(data map[string]string) ([]string, error) {
	var addresses, spare []string
	out := strings.Split(data["outOfQuorum"], ",")
	for _, entry := range strings.Split(data["data"], ",") {
		name, endpoint, _ := strings.Cut(strings.TrimSpace(entry), "=")
		address, err := netip.ParseAddrPort(endpoint)
		if err != nil || address.Port() == 0 || address.Addr().Zone() != "" {
			continue
		}
		if slices.Contains(out, name) {
			spare = append(spare, address.String())
		} else {
			addresses = append(addresses, address.String())
		}
	}
	if len(addresses) == 0 {
		addresses = spare
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("ConfigMap %s names no monitor with an IP address and a port: %q", MonitorsConfigMap, data["data"])
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	return addresses[:min(len(addresses), maxMonitors)], nil
}

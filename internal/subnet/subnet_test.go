package subnet

import (
	"net/netip"
	"testing"
)

func TestAnAddressOfIPv6CountsForItsSubnet(t *testing.T) {
	for address, want := range map[string]string{
		"10.1.2.3":             "10.1.2.3",
		"fd77::1":              "fd77::",
		"fd77:0:0:1:ffff::9":   "fd77:0:0:1::",
		"fe80::1%eth0":         "fe80::",
		"2001:db8:0:1::":       "2001:db8:0:1::",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::",
		"2001:db8:1:3:3:4:5:6": "2001:db8:1:3::",
	} {
		if got := Of(netip.MustParseAddr(address)); got.String() != want {
			t.Errorf("%s counts for %s, want %s", address, got, want)
		}
	}
	if got := Of(netip.Addr{}); got.IsValid() {
		t.Errorf("no address counts for %s", got)
	}
}

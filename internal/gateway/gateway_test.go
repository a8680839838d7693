package gateway

import (
	"fmt"
	"testing"
)

func TestDefaultGateways(t *testing.T) {
	const head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	for name, tc := range map[string]struct{ text4, text6, want string }{
		"a bridge": {head + "eth0\t00000000\t0103F40A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
			"eth0\t0003F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n", "", "[10.244.3.1]"},
		"Calico's, the same everywhere":          {head + "eth0\t00000000\t0101FEA9\t0003\t0\t0\t0\t00000000\t0\t0\t0\n", "", "[]"},
		"half of everything is no default route": {head + "eth0\t00000000\t0103F40A\t0003\t0\t0\t0\t00000080\t0\t0\t0\n", "", "[]"},
		"no gateway":                             {head + "eth0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n", "", "[]"},
		"IPv6": {"", "fd000001000300000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 1 0 00000001 eth0\n" +
			"00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000001000300000000000000000001 00000400 1 0 00000003 eth0\n" +
			"00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 1 0 00200200 lo\n", "[fd00:1:3::1]"},
		"nothing":  {"", "", "[]"},
		"nonsense": {"a b\nx 00000000 zz 0 0 0 0 00000000\n", "00 00\n", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(Parse(tc.text4, tc.text6)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

package nodeaddress

import (
	"fmt"
	"net/netip"
	"testing"
)

func at(prefix, on string, change ...func(*Address)) Address {
	a := Address{Prefix: netip.MustParsePrefix(prefix), Interface: on, Up: true, Running: true}
	for _, c := range change {
		c(&a)
	}
	return a
}

func TestTheAddressInANetworkIsChosenTheSameWayEachTime(t *testing.T) {
	var (
		off        = func(a *Address) { a.Up, a.Running = false, false }
		unplugged  = func(a *Address) { a.Running = false }
		secondary  = func(a *Address) { a.Secondary = true }
		unproven   = func(a *Address) { a.Unproven = true }
		deprecated = func(a *Address) { a.Deprecated = true }
	)
	slow := at("192.168.7.11/24", "eth0")
	for name, tc := range map[string]struct {
		all      []Address
		networks []string
		before   string
		want     string
		missing  string
	}{
		"one":                                 {[]Address{slow, at("10.20.0.11/16", "eth1")}, []string{"10.20.0.0/16"}, "", "[10.20.0.11]", "[]"},
		"none":                                {[]Address{slow}, []string{"10.20.0.0/16"}, "", "[]", "[10.20.0.0/16]"},
		"no address at all":                   {nil, []string{"10.20.0.0/16", "10.30.0.0/16"}, "", "[]", "[10.20.0.0/16 10.30.0.0/16]"},
		"its interface is off":                {[]Address{at("10.20.0.11/16", "eth1", off)}, []string{"10.20.0.0/16"}, "", "[]", "[10.20.0.0/16]"},
		"another machine may have it":         {[]Address{at("fd00:20::11/64", "eth1", unproven)}, []string{"fd00:20::/64"}, "", "[]", "[fd00:20::/64]"},
		"an address of a Service":             {[]Address{at("10.20.0.99/32", "kube-ipvs0"), at("10.20.0.98/32", "nodelocaldns")}, []string{"10.20.0.0/16"}, "", "[]", "[10.20.0.0/16]"},
		"the lowest of two":                   {[]Address{at("10.20.0.12/16", "eth1"), at("10.20.0.11/16", "eth2")}, []string{"10.20.0.0/16"}, "", "[10.20.0.11]", "[]"},
		"lower by number, and not by letters": {[]Address{at("10.20.0.12/16", "eth1"), at("10.20.0.9/16", "eth2")}, []string{"10.20.0.0/16"}, "", "[10.20.0.9]", "[]"},
		"the one of before stays":             {[]Address{at("10.20.0.12/16", "eth1"), at("10.20.0.11/16", "eth2")}, []string{"10.20.0.0/16"}, "10.20.0.12", "[10.20.0.12]", "[]"},
		"the one of before is gone":           {[]Address{at("10.20.0.12/16", "eth1")}, []string{"10.20.0.0/16"}, "10.20.0.11", "[10.20.0.12]", "[]"},
		"the one of before has no carrier":    {[]Address{at("10.20.0.12/16", "eth1"), at("10.20.0.11/16", "eth2", unplugged)}, []string{"10.20.0.0/16"}, "10.20.0.11", "[10.20.0.12]", "[]"},
		"not a secondary one":                 {[]Address{at("10.20.0.5/16", "eth1", secondary), at("10.20.0.11/16", "eth1")}, []string{"10.20.0.0/16"}, "", "[10.20.0.11]", "[]"},
		"not a floating one":                  {[]Address{at("10.20.0.5/32", "eth1"), at("10.20.0.11/16", "eth1")}, []string{"10.20.0.0/16"}, "", "[10.20.0.11]", "[]"},
		"one without a network, as in clouds": {[]Address{at("10.20.0.5/32", "ens5")}, []string{"10.20.0.0/16"}, "", "[10.20.0.5]", "[]"},
		"one of the loopback interface, where nodes route themselves": {[]Address{at("127.0.0.1/8", "lo"), at("10.20.0.5/32", "lo")}, []string{"10.20.0.0/16"}, "", "[10.20.0.5]", "[]"},
		"no carrier, if there is no other":                            {[]Address{at("10.20.0.11/16", "eth1", unplugged)}, []string{"10.20.0.0/16"}, "", "[10.20.0.11]", "[]"},
		"deprecated, if there is no other":                            {[]Address{at("fd00:20::11/64", "eth1", deprecated)}, []string{"fd00:20::/64"}, "", "[fd00:20::11]", "[]"},
		"not deprecated":                                              {[]Address{at("fd00:20::1/64", "eth1", deprecated), at("fd00:20::11/64", "eth1")}, []string{"fd00:20::/64"}, "", "[fd00:20::11]", "[]"},
		"the first network counts":                                    {[]Address{at("10.20.0.11/16", "eth1"), at("10.30.0.11/16", "eth2")}, []string{"10.30.0.0/16", "10.20.0.0/16"}, "10.20.0.11", "[10.30.0.11]", "[]"},
		"a network for each rack":                                     {[]Address{at("10.30.2.11/24", "eth1")}, []string{"10.30.1.0/24", "10.30.2.0/24"}, "", "[10.30.2.11]", "[]"},
		"both families":                                               {[]Address{at("fd00:20::11/64", "eth1"), at("10.20.0.11/16", "eth1")}, []string{"fd00:20::/64", "10.20.0.0/16"}, "", "[10.20.0.11 fd00:20::11]", "[]"},
		"one of both families":                                        {[]Address{at("10.20.0.11/16", "eth1")}, []string{"fd00:20::/64", "10.20.0.0/16"}, "", "[10.20.0.11]", "[fd00:20::/64]"},
		"link-local":                                                  {[]Address{at("fe80::11/64", "eth1")}, []string{"fe80::/10"}, "", "[]", "[fe80::/10]"},
	} {
		t.Run(name, func(t *testing.T) {
			var networks []netip.Prefix
			for _, text := range tc.networks {
				networks = append(networks, netip.MustParsePrefix(text))
			}
			var before []netip.Addr
			if tc.before != "" {
				before = append(before, netip.MustParseAddr(tc.before))
			}
			for range 2 { // In whatever order the kernel lists them.
				chosen, missing := Choose(tc.all, networks, before)
				if fmt.Sprint(chosen) != tc.want || fmt.Sprint(missing) != tc.missing {
					t.Errorf("%v is chosen, %v is missing; want %s and %s", chosen, missing, tc.want, tc.missing)
				}
				for i, j := 0, len(tc.all)-1; i < j; i, j = i+1, j-1 {
					tc.all[i], tc.all[j] = tc.all[j], tc.all[i]
				}
			}
		})
	}
}

package plan

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func TestParseFamily(t *testing.T) {
	for text, want := range map[string]Family{"IPv4": IPv4, "ipv6": IPv6, "dual": Dual, "Dual": Dual} {
		if got, err := ParseFamily(text); err != nil || got != want {
			t.Errorf("ParseFamily(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "6", "IPv4,IPv6"} {
		if got, err := ParseFamily(text); err == nil || !strings.Contains(err.Error(), "want IPv4, IPv6 or Dual") {
			t.Errorf("ParseFamily(%q) = %q, %v, want an error", text, got, err)
		}
	}
}

// Every address is in the network that it belongs to, and in no other one of the lab.
func TestAddressesOfFamilies(t *testing.T) {
	for family, want := range map[Family]string{"": "4", IPv4: "4", IPv6: "6", Dual: "46"} {
		settings := Settings{Name: "x", Nodes: maxNodes, Outside: true, Family: family}
		machines := settings.Machines()
		for i, digit := range want {
			is6 := digit == '6'
			pods, services := netip.MustParsePrefix(family.PodCIDRs()[i]), netip.MustParsePrefix(family.ServiceCIDRs()[i])
			gateway := netip.MustParseAddr(family.APIServerIPs()[i])
			for what, service := range map[string]string{"first": family.FirstServices()[i], "DNS": family.ClusterDNS()[i]} {
				if !services.Contains(netip.MustParseAddr(service)) {
					t.Errorf("%q: the %s Service %s is not in %s", family, what, service, services)
				}
			}
			if is6 && !netip.MustParsePrefix("fd00::/8").Contains(gateway) {
				t.Errorf("%q: %s is no unique local address", family, gateway)
			}
			link := netip.MustParsePrefix(OnLink(gateway.String(), "lab0")[0])
			seen := map[netip.Addr]string{gateway: "the API server"}
			for _, machine := range machines {
				if len(machine.IPs) != len(want) || machine.IsNode() && len(machine.PodCIDRs) != len(want) {
					t.Fatalf("%q: %s has the addresses %v and the pods %v", family, machine.Name, machine.IPs, machine.PodCIDRs)
				}
				address := netip.MustParseAddr(machine.IPs[i])
				if address.Is6() != is6 || !link.Contains(address) || seen[address] != "" {
					t.Errorf("%q: %s has %s, the other machines are in %s, %q has it", family, machine.Name, address, link, seen[address])
				}
				seen[address] = machine.Name
				if !machine.IsNode() {
					continue
				}
				own := netip.MustParsePrefix(machine.PodCIDRs[i])
				if own.Masked() != own || !pods.Contains(own.Addr()) || pods.Bits() > own.Bits() {
					t.Errorf("%q: the pods %s of %s are not in %s", family, own, machine.Name, pods)
				}
				for _, other := range machines[:machine.Index-1] {
					if own.Overlaps(netip.MustParsePrefix(other.PodCIDRs[i])) {
						t.Errorf("%q: pods of %s and %s share %s", family, machine.Name, other.Name, own)
					}
				}
			}
			if link.Overlaps(pods) || link.Overlaps(services) || pods.Overlaps(services) {
				t.Errorf("%q: %s, %s and %s overlap", family, link, pods, services)
			}
		}
	}
}

func TestURLsHaveBrackets(t *testing.T) {
	for family, want := range map[Family][2]string{
		IPv4: {"https://10.88.0.1:6443", "10.88.0.1:10809"},
		IPv6: {"https://[fd00:10:88::1]:6443", "[fd00:10:88::1]:10809"},
		Dual: {"https://10.88.0.1:6443", "10.88.0.1:10809"},
	} {
		if got := [2]string{family.APIServer(), family.Volumes()}; got != want {
			t.Errorf("%s: %v, want %v", family, got, want)
		}
	}
}

func TestOnLink(t *testing.T) {
	for address, want := range map[string][]string{
		"10.88.0.11":     {"10.88.0.11/24", "dev", "vec0"},
		"fd00:10:88::11": {"fd00:10:88::11/64", "dev", "vec0", "nodad"},
	} {
		if got := OnLink(address, "vec0"); !reflect.DeepEqual(got, want) {
			t.Errorf("OnLink(%s) = %v, want %v", address, got, want)
		}
	}
}

package lab

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/howdah/howdah/hack/lab/internal/plan"
	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// Queue of a shaped link. A tap hands over segments of up to 64 KB that were not
// cut into packets yet; tbf would drop what is larger than its burst.
const (
	tbfBurst = "256kb"
	tbfLimit = "2mb"
)

var mtu = strconv.Itoa(plan.MTU)

// ensureNetwork makes the namespace, the bridge and a tap per node, whatever of
// it is missing.
func (l *Lab) ensureNetwork() error {
	ns := plan.NetNS(l.Name)
	if err := sys.CreateNetNS(ns); err != nil {
		return err
	}
	if err := ensureBridge(ns, plan.Bridge); err != nil {
		return err
	}
	for _, address := range l.rec.Settings.Family.APIServerIPs() {
		if err := ip(ns, append([]string{"addr", "replace"}, plan.OnLink(address, plan.Bridge)...)...); err != nil {
			return err
		}
	}
	for _, node := range l.rec.Settings.Machines() {
		if err := l.ensureLink(ns, node); err != nil {
			return fmt.Errorf("network of %s: %w", node.Name, err)
		}
		if !node.IsNode() {
			continue
		}
		// The API server calls webhooks at their pods' addresses.
		for i, pods := range node.PodCIDRs {
			if err := ip(ns, "route", "replace", pods, "via", node.IPs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func ensureBridge(ns, name string) error {
	if !linkExists(ns, name) {
		if err := ip(ns, "link", "add", name, "type", "bridge", "forward_delay", "0"); err != nil {
			return err
		}
	}
	return ip(ns, "link", "set", name, "mtu", mtu, "up")
}

// ensureLink connects a node's tap to the bridge. A capped node gets a bridge of
// its own and a veth pair to the common one, so that each direction leaves by a
// device where it can be shaped: the queue of the veth's end holds what the node
// sends, that of the tap what it receives.
func (l *Lab) ensureLink(ns string, node plan.Node) error {
	bridge := plan.Bridge
	if node.CapMbit > 0 {
		bridge = fmt.Sprintf("capbr%d", node.Index)
		if err := ensureCapBridge(ns, bridge, node); err != nil {
			return err
		}
	}
	if !linkExists(ns, node.Tap) {
		if err := ip(ns, "tuntap", "add", "dev", node.Tap, "mode", "tap", "vnet_hdr"); err != nil {
			return err
		}
	}
	if err := ip(ns, "link", "set", node.Tap, "master", bridge, "mtu", mtu, "txqueuelen", "2000", "up"); err != nil {
		return err
	}
	if node.CapMbit > 0 {
		return shape(ns, node.Tap, node.CapMbit)
	}
	return nil
}

func ensureCapBridge(ns, bridge string, node plan.Node) error {
	if err := ensureBridge(ns, bridge); err != nil {
		return err
	}
	inner, outer := fmt.Sprintf("capin%d", node.Index), fmt.Sprintf("capout%d", node.Index)
	if !linkExists(ns, inner) {
		if err := ip(ns, "link", "add", inner, "type", "veth", "peer", "name", outer); err != nil {
			return err
		}
	}
	if err := ip(ns, "link", "set", inner, "master", bridge, "mtu", mtu, "up"); err != nil {
		return err
	}
	if err := ip(ns, "link", "set", outer, "master", plan.Bridge, "mtu", mtu, "up"); err != nil {
		return err
	}
	return shape(ns, inner, node.CapMbit)
}

func shape(ns, device string, mbit int) error {
	return sys.Run("tc", "-n", ns, "qdisc", "replace", "dev", device, "root", "tbf",
		"rate", strconv.Itoa(mbit)+"mbit", "burst", tbfBurst, "limit", tbfLimit)
}

func linkExists(ns, name string) bool {
	return ip(ns, "link", "show", "dev", name) == nil
}

func ip(ns string, args ...string) error {
	return sys.Run("ip", append(strings.Fields("-n "+ns), args...)...)
}

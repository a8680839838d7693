package guest

import (
	"encoding/json"
	"os"

	"github.com/howdah/howdah/hack/lab/internal/plan"
)

const uplink = "vec0"

func setUpNetwork(config Config) error {
	if err := run("ip", "link", "set", "lo", "up"); err != nil || config.Bake {
		return err
	}
	var commands [][]string
	for _, address := range config.Node.IPs {
		commands = append(commands, append([]string{"ip", "addr", "replace"}, plan.OnLink(address, uplink)...))
	}
	commands = append(commands, []string{"ip", "link", "set", uplink, "up"})
	if !config.Node.IsNode() {
		// It knows no way to pods and Services.
		return runAll(commands)
	}
	for _, gateway := range config.Family.APIServerIPs() {
		// No way out of the lab, but a packet to a service address must find a route
		// before kube-proxy's rules get to rewrite it.
		commands = append(commands, []string{"ip", "route", "replace", "default", "via", gateway})
	}
	for _, peer := range config.Peers {
		if peer.Name == config.Node.Name {
			continue
		}
		for i, pods := range peer.PodCIDRs {
			commands = append(commands, []string{"ip", "route", "replace", pods, "via", peer.IPs[i]})
		}
	}
	if err := runAll(commands); err != nil {
		return err
	}
	return writePodNetwork(config.Node)
}

func runAll(commands [][]string) error {
	for _, command := range commands {
		if err := run(command...); err != nil {
			return err
		}
	}
	return nil
}

// writePodNetwork is the CNI configuration: one bridge and one range per node,
// and plain routes between the nodes. Nothing is masqueraded, so that a server
// in a pod sees the address of its client. There is no portmap plugin: it would be
// run for every pod, and nothing in a lab uses host ports.
func writePodNetwork(node plan.Node) error {
	var ranges [][]map[string]string
	for _, pods := range node.PodCIDRs {
		ranges = append(ranges, []map[string]string{{"subnet": pods}})
	}
	config := map[string]any{
		"cniVersion": "1.0.0",
		"name":       "lab",
		"plugins": []any{
			map[string]any{
				"type":             "bridge",
				"bridge":           "cni0",
				"isDefaultGateway": true,
				"hairpinMode":      true,
				"mtu":              plan.MTU,
				"ipam": map[string]any{
					"type":   "host-local",
					"ranges": ranges,
				},
			},
		},
	}
	data, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll("/etc/cni/net.d", 0o755); err != nil {
		return err
	}
	return os.WriteFile("/etc/cni/net.d/10-lab.conflist", data, 0o644)
}

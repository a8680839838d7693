// Package guest is what runs inside a node: its first process, its services'
// keeper and the agent that answers the host.
package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/howdah/howdah/hack/lab/internal/plan"
)

// Share is the folder that a node and the host both see (hostfs).
const Share = "/lab"

// Config is what the host tells a node at boot.
type Config struct {
	Instance string      `json:"instance"`
	Token    string      `json:"token"`
	Node     plan.Node   `json:"node"`
	Peers    []plan.Node `json:"peers"`
	// Bake makes the node import the archives of its inbox into its disk and switch
	// itself off, instead of joining a cluster.
	Bake bool `json:"bake,omitempty"`
	// NetworkVolumes runs the CSI node plugin of the lab's network volumes.
	NetworkVolumes bool `json:"networkVolumes,omitempty"`
	// Family is which addresses the lab has.
	Family plan.Family `json:"ipFamily,omitempty"`
}

func readConfig() (Config, error) {
	var config Config
	data, err := os.ReadFile(filepath.Join(Share, "config.json"))
	if err != nil {
		return config, err
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return config, fmt.Errorf("config.json: %w", err)
	}
	return config, nil
}

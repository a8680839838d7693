package plan

import (
	"fmt"
	"strconv"
	"strings"
)

const minMemoryMiB = 700 // Below this, kubelet evicts the system's own pods.

// ParseCaps reads the value of --nic-cap: one number of Mbit/s for every node,
// or a list such as node1=160,node2=80. Nodes that are absent, and 0, are not
// capped.
func ParseCaps(text string, nodes int) (map[string]int, error) {
	caps := map[string]int{}
	text = strings.TrimSpace(text)
	if text == "" {
		return caps, nil
	}
	if !strings.Contains(text, "=") {
		limit, err := parseMbit(text)
		if err != nil {
			return nil, err
		}
		for i := 1; limit > 0 && i <= nodes; i++ {
			caps[fmt.Sprintf("node%d", i)] = limit
		}
		return caps, nil
	}
	for _, item := range strings.Split(text, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(item), "=")
		if !found || name == "" {
			return nil, fmt.Errorf("cap %q: want NODE=MBIT", item)
		}
		if _, twice := caps[name]; twice {
			return nil, fmt.Errorf("two caps for %s", name)
		}
		limit, err := parseMbit(value)
		if err != nil {
			return nil, err
		}
		if limit > 0 {
			caps[name] = limit
		}
	}
	return caps, nil
}

func parseMbit(text string) (int, error) {
	limit, err := strconv.Atoi(strings.TrimSuffix(text, "mbit"))
	if err != nil || limit < 0 || limit > 100_000 {
		return 0, fmt.Errorf("cap %q: want 0 to 100000 Mbit/s", text)
	}
	return limit, nil
}

// MemoryMiB reads a size such as 1500M or 2G.
func MemoryMiB(text string) (int, error) {
	if text == "" {
		return 0, fmt.Errorf("memory is empty, want a size such as 1500M")
	}
	digits, factor := text[:len(text)-1], 1
	switch text[len(text)-1] {
	case 'M', 'm':
	case 'G', 'g':
		factor = 1024
	default:
		return 0, fmt.Errorf("memory %q: want a size such as 1500M or 2G", text)
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n <= 0 || n > 1<<20 {
		return 0, fmt.Errorf("memory %q: want a size such as 1500M or 2G", text)
	}
	if n*factor < minMemoryMiB {
		return 0, fmt.Errorf("memory %q: a node needs at least %dM", text, minMemoryMiB)
	}
	return n * factor, nil
}

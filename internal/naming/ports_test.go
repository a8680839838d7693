package naming

import (
	"testing"

	"github.com/howdah/howdah/api/v1alpha1"
)

func TestPortsOnANodesNetworkFollowEachOther(t *testing.T) {
	if got, want := DataServerPorts(0), (Ports{2049, 9590, 9587, 9588, 9586}); got != want {
		t.Errorf("a pod's own: %+v, not %+v", got, want)
	}
	if got, want := DataServerPorts(20490), (Ports{20490, 20491, 20492, 20493, 20494}); got != want {
		t.Errorf("a node's: %+v, not %+v", got, want)
	}
	// The schema has a maximum of the first, so that the last is a port.
	if first, last := HostPorts(&v1alpha1.HostNetwork{FirstPort: 65531}); first != 65531 || last != 65535 {
		t.Errorf("%d to %d", first, last)
	}
}

package fileserver

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// waitingRooms are the addresses of the namespace servers' pods that are ready, sorted, or if none is, of those that run: a waiting room
// is open as soon as the program runs.
func (o *observed) waitingRooms() []netip.Addr {
	var ready, running []netip.Addr
	for i := range o.namespacePods {
		pod := &o.namespacePods[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, ip := range pod.Status.PodIPs {
			address, err := netip.ParseAddr(ip.IP)
			if err != nil || !address.IsGlobalUnicast() {
				continue // The API takes no others in an EndpointSlice (loopback, link-local), and the whole pass would fail.
			}
			running = append(running, address)
			if podReady(pod) {
				ready = append(ready, address)
			}
		}
	}
	if len(ready) == 0 {
		ready = running
	}
	slices.SortFunc(ready, netip.Addr.Compare)
	return slices.Compact(ready)
}

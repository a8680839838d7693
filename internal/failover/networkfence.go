package failover

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// What csi-addons writes into NetworkFences (csiaddons.openshift.io/v1alpha1).
const (
	stateFenced     = "Fenced"
	stateUnfenced   = "Unfenced"
	resultSucceeded = "Succeeded"
)

// NetworkFence is a NetworkFence of csi-addons: an order to a storage to refuse addresses.
type NetworkFence struct {
	Name string
	// Storage is what is ordered. It has no driver if the fence names a class that does not exist.
	Storage StorageOf
	CIDRs   []string
	// State is what is ordered, Result what the driver answered.
	State, Result string
	// Generation is 1 as long as the order is the one that it was made with. Nothing says which order a result is about.
	Generation int64
	Made       time.Time
	Ending     bool
}

// StorageOf is a CSI driver, with the parameters that say which of its storages is meant (for Ceph: clusterID).
type StorageOf struct {
	Driver     string
	Parameters map[string]string
}

// has reports whether a volume is in this storage: it must be of the driver, and have all parameters.
func (s StorageOf) has(volume Volume) bool {
	for key, value := range s.Parameters {
		if got, exists := volume.Attributes[key]; !exists || got != value {
			return false
		}
	}
	return s.Driver != "" && s.Driver == volume.Driver
}

// StorageClient is from where a node uses a storage, as its driver there reports to csi-addons.
type StorageClient struct {
	Node    string
	Storage StorageOf
	CIDRs   []string
}

// StorageFences is what csi-addons knows.
type StorageFences struct {
	Fences  []NetworkFence
	Clients []StorageClient
	// Fault is why it can't be read; "" if it was, or if csi-addons is not installed.
	Fault string
}

// Judge adds to a node whether the storage of all volumes of a data server refuses it, or why that is not known. A taint says more, and stays.
func (s StorageFences) Judge(name string, node Node, volumes []Volume) Node {
	if node.Off != "" {
		return node
	}
	if s.Fault != "" {
		node.Doubt = s.Fault
		return node
	}
	fences := s.about(name, node)
	if len(fences) == 0 {
		return node
	}
	by := map[string]bool{}
	if node.Doubt = doubtUnfenced(fences, node); node.Doubt == "" && len(volumes) == 0 {
		node.Doubt = "the volumes are not known"
	}
	for _, volume := range volumes {
		if node.Doubt == "" {
			node.Doubt = s.doubt(name, node, volume, fences, by)
		}
	}
	if node.Doubt == "" {
		names := make([]string, 0, len(by))
		for fence := range by {
			names = append(names, fence)
		}
		node.Off, node.By = NetworkFenced, "NetworkFence "+list(names)
	}
	return node
}

// about are the fences that name an address of a node.
func (s StorageFences) about(name string, node Node) (fences []NetworkFence) {
	addresses := slices.Clone(node.Addresses)
	for _, client := range s.Clients {
		if client.Node == name {
			addresses = append(addresses, client.CIDRs...)
		}
	}
	for i := range s.Fences {
		if slices.ContainsFunc(addresses, func(address string) bool { return s.Fences[i].touches(address) }) {
			fences = append(fences, s.Fences[i])
		}
	}
	slices.SortFunc(fences, func(a, b NetworkFence) int { return strings.Compare(a.Name, b.Name) })
	return fences
}

// doubtUnfenced: the entries of a storage have no owner, and drivers can share one, so a fence that is lifted may lift the others of
// an address.
func doubtUnfenced(fences []NetworkFence, node Node) string {
	for i := range fences {
		if fences[i].State == stateUnfenced {
			return fmt.Sprintf("NetworkFence %s is Unfenced, so the storage may accept %s again, whatever other fences say: delete it once nothing needs it",
				fences[i].Name, list(slices.DeleteFunc(slices.Clone(node.Addresses), func(a string) bool { return !fences[i].touches(a) })))
		}
	}
	return ""
}

// doubt is why it is not known that the storage of a volume refuses all addresses of a node; "" if it does. It adds those that say so.
func (s StorageFences) doubt(name string, node Node, volume Volume, fences []NetworkFence, by map[string]bool) string {
	if volume.Driver == "" {
		return fmt.Sprintf("volume %s is not known to be of a CSI driver, which alone can be fenced", describeVolume(volume))
	}
	needed := slices.Clone(node.Addresses)
	if len(needed) == 0 {
		return fmt.Sprintf("Node %s has no address", name)
	}
	reported := 0
	for _, client := range s.Clients {
		if client.Node == name && client.Storage.has(volume) {
			needed, reported = append(needed, client.CIDRs...), reported+len(client.CIDRs)
		}
	}
	good, fault := sound(name, node, volume, fences)
	if len(good) == 0 {
		return fault
	}
	if reported == 0 {
		return fmt.Sprintf("csi-addons does not report from which addresses node %s uses the storage of volume %s: its driver %s needs a NetworkFenceClass, and a CSIAddonsNode there with networkFenceClientStatus",
			name, describeVolume(volume), volume.Driver)
	}
	var names, covered, missing []string
	for i := range good {
		names = append(names, good[i].Name)
	}
	slices.Sort(needed)
	for _, address := range slices.Compact(needed) {
		if slices.ContainsFunc(good, func(f NetworkFence) bool { return f.covers(address) }) {
			covered = append(covered, bare(address))
		} else {
			missing = append(missing, bare(address))
		}
	}
	if len(missing) > 0 {
		text := fmt.Sprintf("NetworkFence %s covers %s, not %s of node %s", list(names), list(slices.Compact(covered)), list(slices.Compact(missing)), name)
		if fault != "" {
			text += "; " + fault
		}
		return text
	}
	for _, fence := range names {
		by[fence] = true
	}
	return ""
}

// sound are the fences that say something of a volume, and why another one does not: of the volume's own storage, if there is one.
func sound(name string, node Node, volume Volume, fences []NetworkFence) (good []NetworkFence, fault string) {
	isOwn := false
	for i := range fences {
		found, own := fences[i].fault(name, node, volume), fences[i].Storage.has(volume)
		switch {
		case found == "":
			good = append(good, fences[i])
		case fault == "" || own && !isOwn:
			fault, isOwn = fmt.Sprintf("NetworkFence %s %s", fences[i].Name, found), own
		}
	}
	return good, fault
}

// fault is why a fence says nothing of a volume on a node; "" if the storage refuses its addresses.
func (f NetworkFence) fault(name string, node Node, volume Volume) string {
	switch {
	case f.Ending:
		return "is being deleted"
	case f.Storage.Driver == "":
		return "has no driver: its NetworkFenceClass does not exist"
	case f.Storage.Driver != volume.Driver:
		return fmt.Sprintf("is for driver %s, and volume %s is of %s", f.Storage.Driver, describeVolume(volume), volume.Driver)
	case !f.Storage.has(volume):
		return fmt.Sprintf("is for another storage of driver %s than that of volume %s: its parameters are not those of the volume", volume.Driver, describeVolume(volume))
	case f.State != stateFenced:
		return fmt.Sprintf("has fenceState %q", f.State)
	case f.Generation != 1:
		return "was changed after it was made, so it is not known which order its result is about: delete it and make it again"
	case f.Result == "":
		return "has no result yet"
	case f.Result != resultSucceeded:
		return fmt.Sprintf("has the result %s", f.Result)
	case node.Reported.IsZero():
		return fmt.Sprintf("may be older than the last report of the kubelet of node %s, which is not known", name)
	case !f.Made.After(node.Reported):
		return fmt.Sprintf("was made before the kubelet of node %s reported last, at %s, and may have been lifted since: delete it and make it again",
			name, node.Reported.UTC().Format(time.RFC3339))
	}
	return ""
}

// covers reports whether all of an address, or of a CIDR block, is fenced.
func (f NetworkFence) covers(address string) bool {
	wanted, ok := block(address)
	return ok && slices.ContainsFunc(f.CIDRs, func(cidr string) bool {
		fenced, err := netip.ParsePrefix(cidr)
		return err == nil && fenced.Bits() <= wanted.Bits() && fenced.Contains(wanted.Addr())
	})
}

// touches reports whether some of it is named by the fence.
func (f NetworkFence) touches(address string) bool {
	wanted, ok := block(address)
	return ok && slices.ContainsFunc(f.CIDRs, func(cidr string) bool {
		fenced, known := block(cidr)
		return known && fenced.Overlaps(wanted)
	})
}

// block is an address as the smallest CIDR block, or a CIDR block.
func block(text string) (netip.Prefix, bool) {
	if address, err := netip.ParseAddr(text); err == nil {
		address = address.Unmap().WithZone("")
		return netip.PrefixFrom(address, address.BitLen()), true
	}
	prefix, err := netip.ParsePrefix(text)
	return prefix, err == nil
}

// bare is a CIDR block of one address as this address.
func bare(text string) string {
	if prefix, ok := block(text); ok && prefix.IsSingleIP() {
		return prefix.Addr().String()
	}
	return text
}

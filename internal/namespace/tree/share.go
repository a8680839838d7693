package tree

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/hotdirectories"
)

// SquashedID is the user and group that squashed callers become, as in ganesha.
const SquashedID = 65534

// Share is what the tree needs of a FileShare. It is never changed after it was made.
type Share struct {
	// Name is the share's key (naming.ShareKey).
	Name       string
	UID        string
	Path       string
	Generation int64
	// Tenant is the Kubernetes namespace whose limits on directories it counts for, "" if that is the FileServer's own.
	Tenant string
	// Single: the share's root is a junction. Else directories at Depth are.
	Single bool
	Depth  int
	// MaxDirectories is how many ShareDirectories the share may have.
	MaxDirectories int
	// IgnoreDataOn are data servers that the share has given up: nothing is placed there.
	IgnoreDataOn []string
	// Hot says which directories several data servers serve.
	Hot hotdirectories.Rules
	// Search says when others are found to be hot.
	Search hotdirectories.Search
	Owner  uint32
	Group  uint32
	Mode   uint32
	// InventoryGeneration is that of the inventories that the operator waits for. Inventoried: no data server can have a directory
	// of the share that has no ShareDirectory.
	InventoryGeneration int64
	Inventoried         bool
	// AcceptedLosses are the losses of directories that the user gives up.
	AcceptedLosses []string
	// Created is the object's creation time; of two shares with conflicting paths the older one counts.
	Created time.Time

	rules []rule
	// nodes are the Nodes of rules; nil: none.
	nodes *clientNodes
}

// rule is an AccessRule with its addresses parsed.
type rule struct {
	clients []netip.Prefix
	// nodes: the cluster's nodes, too.
	nodes bool
	// unknown: this version can't read all of the rule, so it may be for any address.
	unknown bool
	// anyPort: the client need not come from a reserved port.
	anyPort bool
	Access
}

// Access is what an access rule gives to a client.
type Access struct {
	ReadOnly bool
	Squash   v1alpha1.Squash
}

// NewShare takes what the tree needs from a share, which has the schema's defaults.
func NewShare(o fleet.Share) *Share {
	s := &Share{
		Name: o.Key, UID: o.UID, Path: o.Path, Generation: o.Generation, Tenant: o.Tenant,
		Single: o.Layout == v1alpha1.LayoutSingle, Depth: int(o.Depth), MaxDirectories: int(o.MaxDirectories), IgnoreDataOn: o.IgnoreDataOn,
		Owner: uint32(*o.UserID), Group: uint32(*o.GroupID), Mode: ParseMode(o.Mode), Created: o.Created,
		InventoryGeneration: o.InventoryGeneration, Inventoried: o.Inventoried, AcceptedLosses: o.AcceptedLosses, Search: o.HotSearch(),
	}
	// The operator reports what can't be expanded.
	s.Hot, _ = hotdirectories.Parse(o.HotEntries(), s.Depth)
	if o.Access == nil {
		s.rules = []rule{{nodes: true, anyPort: true, Access: Access{Squash: v1alpha1.SquashNone}}}
	}
	for _, r := range o.Access {
		s.rules = append(s.rules, newRule(r))
	}
	return s
}

func (s *Share) attributes() attributes { return attributes{s.Owner, s.Group, s.Mode} }

// newRule parses an access rule. One with something that this version does not know (the schema refuses it) gives no access.
func newRule(r v1alpha1.AccessRule) rule {
	out := rule{anyPort: r.SourcePorts == "" || r.SourcePorts == v1alpha1.SourcePortsAny, Access: Access{ReadOnly: r.AccessType == v1alpha1.AccessReadOnly, Squash: r.Squash}}
	out.unknown = r.AccessType != "" && r.AccessType != v1alpha1.AccessReadWrite && r.AccessType != v1alpha1.AccessReadOnly
	for _, text := range r.Clients {
		if text == v1alpha1.ClientNodes {
			out.nodes = true
		} else if prefix, err := netip.ParsePrefix(text); err == nil {
			out.clients = append(out.clients, prefix.Masked())
		} else if addr, err := netip.ParseAddr(text); err == nil {
			out.clients = append(out.clients, netip.PrefixFrom(addr, addr.BitLen()))
		} else {
			out.unknown = true
		}
	}
	return out
}

// reservedPorts are below this: IPPORT_RESERVED, which is ganesha's bound for its option PrivilegedPort, too.
const reservedPorts = 1024

// Access is what the first rule that has the client's address gives; false: the client does not see the share, for its
// address or for the port that it comes from. A rule that may have the address, because no node is known yet, lets no later one decide, as on data servers.
func (s *Share) Access(client netip.Addr, port uint16) (Access, bool) {
	client = client.Unmap().WithZone("")
	for i := range s.rules {
		rule := &s.rules[i]
		switch {
		case rule.unknown:
			return Access{}, false
		case slices.ContainsFunc(rule.clients, func(p netip.Prefix) bool { return p.Contains(client) }) || rule.nodes && s.nodes.has(client):
			if !rule.anyPort && (port == 0 || port >= reservedPorts) {
				return Access{}, false
			}
			return rule.Access, true
		case rule.nodes && s.nodes.areUnknown():
			return Access{}, false
		}
	}
	return Access{}, false
}

// ParseMode reads a mode as the API has it (octal, the schema checks it).
func ParseMode(text string) uint32 {
	v, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return 0
	}
	return uint32(v) & 0o7777
}

// FormatMode writes a mode as the API has it.
func FormatMode(mode uint32) string {
	text := strconv.FormatUint(uint64(mode&0o7777), 8)
	return strings.Repeat("0", max(0, 4-len(text))) + text
}

package desired

import (
	"cmp"
	"slices"

	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
)

// defaultMode is the permission of a share's root when the share has none.
const defaultMode = "0755"

// DataServer is the record of a data server: what it exports to whom. Every data
// server exports every live share, whether or not it owns a directory of it yet, so that the
// first directory that a client makes on it waits for no reload.
func DataServer(in FileServerInput, ordinal int32) *internalv1ac.DataServerApplyConfiguration {
	name := naming.DataServer(in.name(), ordinal)
	meta := labels(naming.SelectDataServers(in.name()))
	meta[v1alpha1.DataServerLabel] = name
	lease, grace := nfsTimes(in.FileServer.Spec.NFS)
	spec := internalv1ac.DataServerSpec().
		WithFileServerRef(internalv1ac.FileServerReference().WithName(in.name())).
		WithServerScope(string(in.FileServer.UID)).
		WithLeaseSeconds(lease).
		WithGraceSeconds(grace).
		WithMaxConnections(MaxConnections(in.FileServer)).
		WithVolumes(in.perServer()).
		WithNamespaceServers(sortedUnique(in.NamespaceAddresses)...).
		WithExports(exports(in.Shares)...).
		WithRemovals(removals(in.Shares)...)
	if address := in.Addresses[name]; address != "" {
		spec.WithAddress(address)
	}
	return internalv1ac.DataServer(name, in.namespace()).WithLabels(meta).WithSpec(spec)
}

func nfsTimes(options *v1alpha1.NFSOptions) (lease, grace int32) {
	lease, grace = DefaultLeaseSeconds, DefaultGraceSeconds
	if options == nil {
		return lease, grace
	}
	if options.LeaseSeconds != 0 {
		lease = options.LeaseSeconds
	}
	if options.GraceSeconds != 0 {
		grace = options.GraceSeconds
	}
	return lease, grace
}

// LiveShares are the shares that data servers export: not being deleted, and of
// those whose paths conflict the oldest, by the rule that the namespace servers use. Sorted by name.
func LiveShares(shares []v1alpha1.FileShare) []v1alpha1.FileShare {
	var candidates []*tree.Share
	for i := range shares {
		if shares[i].DeletionTimestamp == nil {
			candidates = append(candidates, tree.NewShare(&shares[i]))
		}
	}
	won := map[string]bool{}
	for _, winner := range tree.Winners(candidates) {
		won[winner.Name] = true
	}
	return sharesByName(shares, func(s *v1alpha1.FileShare) bool { return won[s.Name] })
}

func sharesByName(shares []v1alpha1.FileShare, keep func(*v1alpha1.FileShare) bool) []v1alpha1.FileShare {
	var kept []v1alpha1.FileShare
	for i := range shares {
		if keep(&shares[i]) {
			kept = append(kept, shares[i])
		}
	}
	slices.SortFunc(kept, func(a, b v1alpha1.FileShare) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return kept
}

func exports(shares []v1alpha1.FileShare) []*internalv1ac.ShareExportApplyConfiguration {
	var out []*internalv1ac.ShareExportApplyConfiguration
	for _, share := range LiveShares(shares) {
		mode := share.Spec.Mode
		if mode == "" {
			mode = defaultMode
		}
		out = append(out, internalv1ac.ShareExport().
			WithShareName(share.Name).
			WithUID(orZero(share.Spec.UID)).
			WithGID(orZero(share.Spec.GID)).
			WithMode(mode).
			WithAccess(accessRules(share.Spec.Access)...))
	}
	return out
}

// accessRules spells out every rule, so that a data server needs no default of its own.
func accessRules(rules []v1alpha1.AccessRule) []v1alpha1.AccessRule {
	if len(rules) == 0 {
		rules = []v1alpha1.AccessRule{{Clients: []string{"0.0.0.0/0", "::/0"}}}
	}
	out := make([]v1alpha1.AccessRule, 0, len(rules))
	for _, rule := range rules {
		rule.AccessType = cmp.Or(rule.AccessType, v1alpha1.AccessReadWrite)
		rule.Squash = cmp.Or(rule.Squash, v1alpha1.SquashNone)
		out = append(out, rule)
	}
	return out
}

// removals are the deleted shares whose data is to go. A share stays among them until its finalizer is gone.
func removals(shares []v1alpha1.FileShare) []string {
	var names []string
	for _, share := range sharesByName(shares, func(s *v1alpha1.FileShare) bool {
		return s.DeletionTimestamp != nil && s.Spec.ReclaimPolicy == v1alpha1.ReclaimDelete
	}) {
		names = append(names, share.Name)
	}
	return names
}

func sortedUnique(values []string) []string {
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Compact(values)
}

func orZero(v *int64) int64 {
	if v == nil {
		return 0
	}
	return *v
}

package fileshare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/limits"
	"github.com/howdah/howdah/internal/fleet"
	"github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
)

// What the limits of a FileServer allow a share is written into its status (limitsUsed) and counts from then on. The
// ledger (ledger.go) has the sums, so a pass reads no other share.

// lookForRoom is how often a refused share checks the limits again without a change of another share: data of deleted
// shares may have been removed.
const lookForRoom = 10 * time.Minute

// demandOf returns what a share has. A share from before there were limits has what its status counts.
func demandOf(share *v1alpha1.FileShare, known account, actual int) limits.Demand {
	demand := limits.Demand{Key: naming.KeyOf(share), Tenant: naming.TenantOf(share), Created: share.CreationTimestamp.Time}
	used := share.Status.LimitsUsed
	switch {
	case known.granted != nil:
		demand.Admitted, demand.Has = true, *known.granted
	case used.AccessNetworks != nil:
		demand.Admitted = true
		demand.Has = limits.Usage{Shares: 1, Directories: int(ptr.Deref(used.Directories, 0)), AccessNetworks: int(*used.AccessNetworks)}
	case share.Status.InventoryGeneration > 0:
		demand.Admitted = true
		count := max(actual, int(ptr.Deref(share.Status.Directories.Count, 0)))
		demand.Has = limits.Usage{Shares: 1, Directories: count, AccessNetworks: limits.AccessNetworks(share.Spec.Access)}
	}
	return demand
}

// wantsOf returns what a share's specification requests, plus existing directories. If the specification can't be read,
// or requests more than the share's own limit, nothing is made and only existing directories count.
func wantsOf(share *v1alpha1.FileShare, present map[string]*internalv1.ShareDirectory) limits.Usage {
	wants := limits.Usage{Shares: 1, AccessNetworks: limits.AccessNetworks(share.Spec.Access)}
	for path := range present {
		if path != tree.RootPath {
			wants.Directories++
		}
	}
	paths, err := declaredPaths(share)
	if err != nil || share.Spec.Layout == v1alpha1.LayoutSingle {
		return wants
	}
	above := parents(paths)
	if len(above)+len(paths) > int(share.Spec.MaxDirectories) {
		return wants
	}
	for _, list := range [][]string{above, paths} {
		for _, path := range list {
			if present[path] == nil {
				wants.Directories++
			}
		}
	}
	return wants
}

// mayWait reports whether the share is not admitted and only limits can be the reason.
func mayWait(share *v1alpha1.FileShare, allowed func(namespace string) bool) bool {
	if share.DeletionTimestamp != nil {
		return false
	}
	switch conditions.Reason(share.Status.Conditions, v1alpha1.FileSharePlaced) {
	case v1alpha1.ReasonLimitReached, v1alpha1.ReasonTooManyShares:
		return true
	case "": // No pass has looked at it yet.
		return !naming.IsForeign(share) || allowed(share.Namespace)
	}
	return false
}

// makesRoom reports whether a share uses less than before, or no longer waits for more.
func makesRoom(before, after *v1alpha1.FileShare) bool {
	was, is := demandOf(before, account{}, 0), demandOf(after, account{}, 0)
	if was.Admitted {
		return is.Has.Directories < was.Has.Directories || is.Has.AccessNetworks < was.Has.AccessNetworks
	}
	everywhere := func(string) bool { return true }
	return mayWait(before, everywhere) && !mayWait(after, everywhere) && !is.Admitted
}

func isRecorded(share *v1alpha1.FileShare, u limits.Usage) bool {
	used := share.Status.LimitsUsed
	return used.AccessNetworks != nil && int(*used.AccessNetworks) == u.AccessNetworks && int(ptr.Deref(used.Directories, 0)) == u.Directories
}

// record writes the grant into the status.
func record(status *v1alpha1.FileShareStatus, grant limits.Grant) {
	if grant.Admitted {
		status.LimitsUsed = v1alpha1.ShareLimitsUsed{Directories: ptr.To(int32(grant.Has.Directories)), AccessNetworks: ptr.To(int32(grant.Has.AccessNetworks))}
	}
}

// asksForRoom reports whether only the limits can refuse the share.
func asksForRoom(o *observed) bool {
	switch {
	case o.unwatched, o.refused, o.fileServer == nil, o.share.DeletionTimestamp != nil:
		return false
	case naming.IsForeign(o.share) && !isAttached(o):
		return o.fileServer.DeletionTimestamp == nil && takenBy(o) == nil
	}
	return fleet.Older(asSeen(o), o.conflicts) == nil
}

// observeLimits grants the share what its FileServer's limits allow.
func (r *Reconciler) observeLimits(ctx context.Context, o *observed) error {
	if !asksForRoom(o) {
		return nil
	}
	s := &cachedSurroundings{ctx: ctx, r: r, o: o, known: map[string]bool{}}
	o.grant = r.ledger.admit(o, limits.Of(o.fileServer, maxShares(o), backend.Of(o.fileServer).ExportsPerShare(o.fileServer)), s)
	return s.failed
}

// cachedSurroundings reads the cache, for one pass.
type cachedSurroundings struct {
	ctx    context.Context //nolint:containedctx // It lives no longer than the call that it is for.
	r      *Reconciler
	o      *observed
	known  map[string]bool
	failed error
}

func (s *cachedSurroundings) allows(namespace string) bool {
	answer, asked := s.known[namespace]
	if !asked {
		var err error
		answer, err = s.r.allows(s.ctx, s.o.fileServer, namespace)
		s.known[namespace], s.failed = answer, errors.Join(s.failed, err)
	}
	return answer
}

func (s *cachedSurroundings) retained() limits.Taken {
	taken, err := s.r.retainedElsewhere(s.ctx, s.o)
	s.failed = errors.Join(s.failed, err)
	return taken
}

// retainedElsewhere counts directories of shares that were deleted and left their data.
func (r *Reconciler) retainedElsewhere(ctx context.Context, o *observed) (limits.Taken, error) {
	var taken limits.Taken
	var list internalv1.ShareDirectoryList
	err := r.Client.List(ctx, &list, client.InNamespace(o.namespace()), index.Retained(o.fileServer.Name), client.UnsafeDisableDeepCopy)
	if err != nil {
		return taken, fmt.Errorf("listing ShareDirectories of deleted shares: %w", err)
	}
	for i := range list.Items {
		if key := list.Items[i].Spec.FileShareRef.Name; key != o.key() {
			tenant, _ := naming.ShareOfKey(o.namespace(), key)
			taken.Add(tenant, limits.Usage{Directories: 1})
		}
	}
	return taken, nil
}

// findLimit returns the limit that refuses the share; nil if there is none.
func findLimit(o *observed) *finding {
	refused := o.grant.Refused
	switch {
	case refused == nil:
		return nil
	case refused.Tenant == "" && refused.Unit == "shares" && refused.Limit == maxShares(o):
		return &finding{v1alpha1.ReasonTooManyShares, fmt.Sprintf(
			"FileServer %s can have %d shares and has that many older ones; delete one of them, or delete this share and make it on another FileServer",
			o.fileServer.Name, refused.Limit)}
	}
	return &finding{v1alpha1.ReasonLimitReached, refused.Message(o.fileServer.Name)}
}

// describeGrowth is the message for a served share that may not have more.
func describeGrowth(o *observed, what string, refused *limits.Refusal) *finding {
	return &finding{v1alpha1.ReasonGrowthRefused, what + ": " + refused.Message(o.fileServer.Name)}
}

// maxShares is the maximum number of shares of the FileServer, whatever its limits are.
func maxShares(o *observed) int {
	return desired.MaxShares(backend.Of(o.fileServer).ExportsPerShare(o.fileServer))
}

package fileshare

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/limits"
	"github.com/howdah/howdah/internal/naming"
)

// ledger has what the shares of each FileServer use of its limits, so that a pass need not add it up: with 4,096 shares
// that took longer than all else in a pass. The events of FileShares keep it (see, forget). It also has the grants that
// no event has shown yet. Passes run in parallel and must not grant the same room twice.
//
// The zero value is ready.
type ledger struct {
	sync.Mutex
	shares map[types.NamespacedName]account
	// books are by FileServer.
	books map[types.NamespacedName]*book
}

// book has the shares of a FileServer.
type book struct {
	// taken is what admitted shares have.
	taken limits.Taken
	// waiting has the shares that may be admitted later.
	waiting map[types.NamespacedName]*v1alpha1.FileShare
}

// account is what is known of a share.
type account struct {
	uid types.UID
	// granted is the last grant; nil if the status has it.
	granted *limits.Usage
	// wants is what its specification requests, for one generation; nil if not computed yet.
	wants      *limits.Usage
	generation int64
	// in is the FileServer in whose book it is. tenant and has are what it counts as there, if it is admitted.
	in     types.NamespacedName
	tenant string
	has    *limits.Usage
}

// see notes the newest state of a share. The share must not be changed afterwards.
func (l *ledger) see(share *v1alpha1.FileShare) {
	l.Lock()
	defer l.Unlock()
	l.keep(share, l.of(share))
}

// forget drops a share that is gone, unless there is another one of its name.
func (l *ledger) forget(share types.NamespacedName, uid types.UID) {
	l.Lock()
	defer l.Unlock()
	if l.shares[share].uid == uid {
		l.strike(share)
		delete(l.shares, share)
	}
}

// known is the UID of the share of a name, "" if none is known.
func (l *ledger) known(share types.NamespacedName) types.UID {
	l.Lock()
	defer l.Unlock()
	return l.shares[share].uid
}

// of is the account of a share. l is locked.
func (l *ledger) of(share *v1alpha1.FileShare) account {
	if found := l.shares[client.ObjectKeyFromObject(share)]; found.uid == share.UID {
		if found.granted != nil && isRecorded(share, *found.granted) {
			found.granted = nil
		}
		return found
	}
	return account{uid: share.UID}
}

// keep notes an account, and what the share counts as. l is locked.
func (l *ledger) keep(share *v1alpha1.FileShare, a account) {
	if l.shares == nil {
		l.shares, l.books = map[types.NamespacedName]account{}, map[types.NamespacedName]*book{}
	}
	key := client.ObjectKeyFromObject(share)
	l.strike(key)
	a.in = types.NamespacedName{Namespace: naming.ServerNamespace(share), Name: share.Spec.FileServerRef.Name}
	a.tenant, a.has = naming.TenantOf(share), nil
	in := l.books[a.in]
	if in == nil {
		in = &book{waiting: map[types.NamespacedName]*v1alpha1.FileShare{}}
		l.books[a.in] = in
	}
	switch demand := demandOf(share, a, 0); {
	case demand.Admitted:
		a.has = &demand.Has
		in.taken.Add(a.tenant, demand.Has)
	default:
		in.waiting[key] = share
	}
	l.shares[key] = a
}

// strike takes a share out of its FileServer's book. l is locked.
func (l *ledger) strike(key types.NamespacedName) {
	a := l.shares[key]
	in := l.books[a.in]
	if in == nil {
		return
	}
	if a.has != nil {
		in.taken.Remove(a.tenant, *a.has)
	}
	delete(in.waiting, key)
	if len(in.waiting) == 0 && in.taken.Total.Shares == 0 {
		delete(l.books, a.in)
	}
}

// surroundings are what the ledger does not know of a FileServer. They are read only if a share needs more than it has.
type surroundings interface {
	// allows reports whether the FileServer allows shares of a Kubernetes namespace.
	allows(namespace string) bool
	// retained returns what deleted shares left.
	retained() limits.Taken
}

// admit gives a share what there is room for, and remembers it.
func (l *ledger) admit(o *observed, caps limits.Caps, s surroundings) limits.Grant {
	l.Lock()
	defer l.Unlock()
	known := l.of(o.share)
	own := demandOf(o.share, known, len(o.directories))
	own.Wants = wantsOf(o.share, o.directories)
	if isOfShare(o) {
		own.Admitted = true
	}
	if own.Admitted {
		// Directories that clients made exist, whatever was recorded.
		own.Has.Directories = max(own.Has.Directories, directories(o))
	}
	var waiting []limits.Demand
	var taken limits.Taken
	if own.Needs() {
		waiting, taken = l.others(o, !own.Admitted, s)
	}
	grant := caps.Admit(own, waiting, taken)
	known.granted = nil
	if grant.Admitted && !isRecorded(o.share, grant.Has) {
		known.granted = &grant.Has
	}
	l.keep(o.share, known)
	return grant
}

// others returns what the FileServer's other shares have, existing or not, and if the share is not admitted yet, the
// demands of waiting ones. l is locked.
func (l *ledger) others(o *observed, lettingIn bool, s surroundings) ([]limits.Demand, limits.Taken) {
	taken := s.retained()
	key := client.ObjectKeyFromObject(o.share)
	in := l.books[types.NamespacedName{Namespace: o.namespace(), Name: o.share.Spec.FileServerRef.Name}]
	if in == nil {
		return nil, taken
	}
	taken = in.taken.Plus(taken)
	if own := l.shares[key]; own.has != nil {
		taken.Remove(own.tenant, *own.has)
	}
	var waiting []limits.Demand
	for other, share := range in.waiting {
		if !lettingIn || other == key || !mayWait(share, s.allows) {
			continue
		}
		known := l.of(share)
		if known.wants == nil || known.generation != share.Generation {
			known.wants, known.generation = ptr.To(wantsOf(share, nil)), share.Generation
			l.shares[other] = known
		}
		demand := demandOf(share, known, 0)
		demand.Wants = *known.wants
		waiting = append(waiting, demand)
	}
	return waiting, taken
}

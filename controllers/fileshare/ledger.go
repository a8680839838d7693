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
	// waiting has the shares that may be admitted later. asked is what all of them together request.
	waiting map[types.NamespacedName]*v1alpha1.FileShare
	asked   limits.Taken
}

// account is what is known of a share.
type account struct {
	uid types.UID
	// granted is the last grant; nil if the status has it.
	granted *limits.Usage
	// wants is what its specification requests, for one generation; nil if it was never among the waiting.
	wants      *limits.Usage
	generation int64
	// in is the FileServer in whose book it is. tenant is whose it counts as there, and has what it counts as, if it is
	// admitted; if not, it is among the waiting with wants.
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
		if a.wants == nil || a.generation != share.Generation {
			a.wants, a.generation = ptr.To(wantsOf(share, nil)), share.Generation
		}
		in.waiting[key] = share
		in.asked.Add(a.tenant, *a.wants)
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
	if in.waiting[key] != nil {
		in.asked.Remove(a.tenant, *a.wants)
		delete(in.waiting, key)
	}
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
		var asked limits.Taken
		taken, asked = l.others(o, s)
		// Who is older matters only if there is no room for all. Looking through all that wait in each of their passes
		// took a seventh of the operator's CPU with 4,096 new shares.
		if !own.Admitted && caps.Fits(ptr.To(taken.Plus(asked)), own.Tenant, own.Wants) != nil {
			waiting = l.waiting(o, s)
		}
	}
	grant := caps.Admit(own, waiting, taken)
	known.granted = nil
	if grant.Admitted && !isRecorded(o.share, grant.Has) {
		known.granted = &grant.Has
	}
	l.keep(o.share, known)
	return grant
}

// book is the FileServer's of a pass; nil if no share of it is known. l is locked.
func (l *ledger) book(o *observed) *book {
	return l.books[types.NamespacedName{Namespace: o.namespace(), Name: o.share.Spec.FileServerRef.Name}]
}

// others returns what the FileServer's other shares have, existing or not, and the most that those that wait may get. l
// is locked.
func (l *ledger) others(o *observed, s surroundings) (taken, asked limits.Taken) {
	taken = s.retained()
	in := l.book(o)
	if in == nil {
		return taken, asked
	}
	taken, asked = in.taken.Plus(taken), in.asked.Plus(asked)
	key := client.ObjectKeyFromObject(o.share)
	switch own := l.shares[key]; {
	case own.has != nil:
		taken.Remove(own.tenant, *own.has)
	case in.waiting[key] != nil:
		asked.Remove(own.tenant, *own.wants)
	}
	return taken, asked
}

// waiting returns the demands of the FileServer's other shares that wait. l is locked.
func (l *ledger) waiting(o *observed, s surroundings) (waiting []limits.Demand) {
	in := l.book(o)
	if in == nil {
		return nil
	}
	for key, share := range in.waiting {
		if key == client.ObjectKeyFromObject(o.share) || !mayWait(share, s.allows) {
			continue
		}
		known := l.of(share)
		demand := demandOf(share, known, 0)
		demand.Wants = *known.wants
		waiting = append(waiting, demand)
	}
	return waiting
}

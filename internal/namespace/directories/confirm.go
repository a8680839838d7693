package directories

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// confirmWithin is how long the watch may take to deliver this server's own writes.
const confirmWithin = 30 * time.Second

// unconfirmed has ShareDirectories that this server wrote and shows, and that the watch has not delivered yet. If one
// is deleted while the watch is interrupted, the watch never delivers it. So it is read after confirmWithin.
type unconfirmed struct {
	mu          sync.Mutex
	directories map[types.UID]shown
	// listeners want to know which versions of a ShareDirectory the watch delivers.
	listeners map[types.UID][]*listener
}

// listener waits for the watch to deliver a version of a ShareDirectory. The watch keeps the order of all changes (client-go's
// InOrderInformers), so what was written before it was delivered, too. After a watch was lost, everything is delivered in any order.
type listener struct {
	heard chan uint64
}

// listen must be called before the version is written.
func (s *Service) listen(uid types.UID) *listener {
	l := &listener{heard: make(chan uint64, 1)}
	u := &s.unconfirmed
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.listeners == nil {
		u.listeners = map[types.UID][]*listener{}
	}
	u.listeners[uid] = append(u.listeners[uid], l)
	return l
}

// await waits for a version that was written, and ends listening. false: it did not come in time.
func (s *Service) await(ctx context.Context, l *listener, o *internalv1.ShareDirectory) bool {
	defer s.unlisten(l, o.UID)
	timer := s.Clock.NewTimer(learnWithin)
	defer timer.Stop()
	version := tree.NewDirectory(o).Version
	for {
		select {
		case heard := <-l.heard:
			if heard >= version {
				return true
			}
		case <-timer.C():
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (s *Service) unlisten(l *listener, uid types.UID) {
	u := &s.unconfirmed
	u.mu.Lock()
	defer u.mu.Unlock()
	u.listeners[uid] = slices.DeleteFunc(u.listeners[uid], func(other *listener) bool { return other == l })
	if len(u.listeners[uid]) == 0 {
		delete(u.listeners, uid)
	}
}

// tell gives a version to its listener. Only the newest counts.
func (l *listener) tell(version uint64) {
	select {
	case <-l.heard:
	default:
	}
	l.heard <- version
}

type shown struct {
	share, path string
	since       time.Time
}

// show puts a ShareDirectory that this server wrote into the tree before the watch delivers it.
func (s *Service) show(o *internalv1.ShareDirectory) {
	u := &s.unconfirmed
	u.mu.Lock()
	if u.directories == nil {
		u.directories = map[types.UID]shown{}
	}
	u.directories[o.UID] = shown{o.Spec.FileShareRef.Name, o.Spec.Path, s.Clock.Now()}
	u.mu.Unlock()
	// The watch may be faster than the API's answer. It fills the tree first and then confirms.
	if r, ok := s.Tree.Directory(o.Spec.FileShareRef.Name, o.Spec.Path); ok && r.UID == string(o.UID) {
		s.Confirm(o)
	}
	s.Tree.SetDirectory(o)
}

// Confirm must be called with every ShareDirectory that the watch delivers, deleted ones included. From then on the
// watch will deliver its deletion.
func (s *Service) Confirm(o *internalv1.ShareDirectory) {
	s.unconfirmed.mu.Lock()
	defer s.unconfirmed.mu.Unlock()
	delete(s.unconfirmed.directories, o.UID)
	for _, l := range s.unconfirmed.listeners[o.UID] {
		l.tell(tree.NewDirectory(o).Version)
	}
}

// CheckUnconfirmed reads ShareDirectories that the watch does not deliver, until the context ends.
func (s *Service) CheckUnconfirmed(ctx context.Context) {
	s.every(ctx, confirmWithin, s.checkUnconfirmed)
}

func (s *Service) checkUnconfirmed(ctx context.Context) {
	u := &s.unconfirmed
	u.mu.Lock()
	overdue := map[types.UID]shown{}
	for uid, r := range u.directories {
		if s.Clock.Since(r.since) >= confirmWithin {
			overdue[uid] = r
		}
	}
	u.mu.Unlock()
	for uid, r := range overdue {
		bounded, cancel := context.WithTimeout(ctx, s.Timeout)
		o, err := s.get(bounded, r.share, r.path)
		cancel()
		if err != nil && !apierrors.IsNotFound(err) {
			continue // the API does not answer; the next round tries again
		}
		if err != nil || o.UID != uid {
			s.Tree.DeleteDirectory(r.share, r.path, string(uid))
			u.mu.Lock()
			delete(u.directories, uid)
			u.mu.Unlock()
		}
	}
}

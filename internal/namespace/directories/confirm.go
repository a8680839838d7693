package directories

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// confirmWithin is how long the watch may take to deliver this server's own writes.
const confirmWithin = 30 * time.Second

// unconfirmed has ShareDirectories that this server wrote and shows, and that the watch has not delivered yet. If one
// is deleted while the watch is interrupted, the watch never delivers it. So it is read after confirmWithin.
type unconfirmed struct {
	mu          sync.Mutex
	directories map[types.UID]shown
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
}

// CheckUnconfirmed reads ShareDirectories that the watch does not deliver, until the context ends.
func (s *Service) CheckUnconfirmed(ctx context.Context) {
	ticker := s.Clock.NewTicker(confirmWithin)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			s.checkUnconfirmed(ctx)
		}
	}
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

package directories

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// confirmWithin is how long the watch may take to tell of this server's own writes.
const confirmWithin = 30 * time.Second

// unconfirmed are ShareDirectories that this server shows because it wrote them, and that the watch has not shown
// of yet. If one is deleted while the watch is interrupted, the watch never will: after
// confirmWithin it is looked up.
type unconfirmed struct {
	mu          sync.Mutex
	directories map[types.UID]shown
}

type shown struct {
	share, path string
	since       time.Time
}

// show puts a ShareDirectory that this server made into the tree, ahead of the watch.
func (s *Service) show(o *internalv1.ShareDirectory) {
	u := &s.unconfirmed
	u.mu.Lock()
	if u.directories == nil {
		u.directories = map[types.UID]shown{}
	}
	u.directories[o.UID] = shown{o.Spec.FileShareRef.Name, o.Spec.Path, s.Clock.Now()}
	u.mu.Unlock()
	// The watch may have been faster than the API's answer: it fills the tree first, and confirms then.
	if r, ok := s.Tree.Directory(o.Spec.FileShareRef.Name, o.Spec.Path); ok && r.UID == string(o.UID) {
		s.Confirm(o)
	}
	s.Tree.SetDirectory(o)
}

// Confirm is to be called with every ShareDirectory that the watch tells of, deleted ones included. From
// then on the watch is sure to tell of its deletion.
func (s *Service) Confirm(o *internalv1.ShareDirectory) {
	s.unconfirmed.mu.Lock()
	defer s.unconfirmed.mu.Unlock()
	delete(s.unconfirmed.directories, o.UID)
}

// CheckUnconfirmed looks after ShareDirectories that the watch does not tell of, until the context ends.
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
			continue // the API can't be asked now; the next round does
		}
		if err != nil || o.UID != uid {
			s.Tree.DeleteDirectory(r.share, r.path, string(uid))
			u.mu.Lock()
			delete(u.directories, uid)
			u.mu.Unlock()
		}
	}
}

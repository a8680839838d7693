package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// behindFor is how long a cache may lag behind a status that was written. An object that is older after that is of a restored API.
const behindFor = time.Minute

// Statuses writes statuses, and knows for a while what it has written: a cache that does not have that yet shows a status that is no more. The zero
// value is ready.
type Statuses struct {
	mutex   sync.Mutex
	written map[types.UID]versionAt
}

// versionAt is a resourceVersion, and when it was written.
type versionAt struct {
	version string
	time    time.Time
}

// counts tells whether a cache may lag behind it. One that lies far ahead is of a clock that was wrong.
func (v versionAt) counts(now time.Time) bool {
	age := now.Sub(v.time)
	return age > -behindFor && age < behindFor
}

// Write writes the status of after as one merge patch against before, which must be the object as it was read. Nothing
// is sent if the statuses are equal. The patch has before's resourceVersion: on a conflict the object has changed, and
// the pass must be repeated (return the error; the controller requeues). after gets the new resourceVersion.
//
// A before that is older than what was written last is a conflict as well, also if the statuses are equal: the newer one, which nothing is
// sent for, would stay for as long as nothing else changes.
func (s *Statuses) Write(ctx context.Context, c client.Client, before, after client.Object, now time.Time) error {
	if s.isBehind(before, now) {
		return apierrors.NewConflict(schema.GroupResource{}, before.GetName(), fmt.Errorf("the cache has resourceVersion %s, and a newer status was written", before.GetResourceVersion()))
	}
	was := before.GetResourceVersion()
	if err := writeStatus(ctx, c, before, after); err != nil {
		return err
	}
	if version := after.GetResourceVersion(); version != was {
		s.note(before.GetUID(), version, now)
	}
	return nil
}

// isBehind tells whether an object is older than the status that was written for it.
func (s *Statuses) isBehind(object client.Object, now time.Time) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	last, known := s.written[object.GetUID()]
	if !known {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), last.version)
	if err == nil && order < 0 && last.counts(now) {
		return true
	}
	delete(s.written, object.GetUID())
	return false
}

// note keeps what was written, and forgets what is old: objects that were deleted are not asked for again.
func (s *Statuses) note(uid types.UID, version string, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.written == nil {
		s.written = map[types.UID]versionAt{}
	}
	for other, last := range s.written {
		if !last.counts(now) {
			delete(s.written, other)
		}
	}
	s.written[uid] = versionAt{version, now}
}

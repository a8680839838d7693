package directories

import (
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/namespace/tree"
)

// If a change gets no answer, it may or may not have been made. The client must try again (NFS4ERR_DELAY). When
// it does, what it finds may be its own change, and not another client's. So a namespace server remembers unfinished
// changes for some time. The Leader finishes those that the client does not repeat.

const (
	// attemptsFor is longer than the Leader takes to finish a change.
	attemptsFor = 2 * abandonedAfter
	// maxAttempts bounds the memory. The Leader finishes a forgotten change, and the client may get NFS4ERR_EXIST or
	// NFS4ERR_NOENT for its own change.
	maxAttempts = 4096
)

// attempts has unfinished changes. The zero value is ready.
type attempts struct {
	mu    sync.Mutex
	begun map[string]attempt
}

type attempt struct {
	// mark identifies the attempt's object: its annotation, its identity, or its UID and version.
	mark string
	at   time.Time
}

// put remembers an attempt.
func (a *attempts) put(key, mark string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, other := range a.begun {
		if now.Sub(other.at) > attemptsFor {
			delete(a.begun, key)
		}
	}
	if a.begun == nil {
		a.begun = map[string]attempt{}
	}
	if len(a.begun) < maxAttempts {
		a.begun[key] = attempt{mark, now}
	}
}

// take returns an attempt to the one caller that continues it; "" if there is none.
func (a *attempts) take(key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	mark := a.begun[key].mark
	delete(a.begun, key)
	return mark
}

// of returns an attempt, and leaves it where it is; "" if there is none.
func (a *attempts) of(key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.begun[key].mark
}

// hasAny reports whether there is an attempt to continue whose key begins like this.
func (a *attempts) hasAny(prefix string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.begun {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// has reports whether there is an attempt to continue.
func (a *attempts) has(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.begun[key]
	return ok
}

// claimKey is the key of an attempt to create a name. An equal request of another client may continue it; one of the
// two gets the answer of the first.
func claimKey(share, rel string, spec *internalv1.ShareDirectorySpec) string {
	if spec.RenamedFrom != "" {
		return strings.Join([]string{"claim", share, spec.RenamedFrom, rel}, "\x00")
	}
	r := tree.NewDirectory(&internalv1.ShareDirectory{Spec: *spec})
	return makeKeys(share, rel) + fmt.Sprintf("%d %d %o", r.Owner, r.Group, r.Mode)
}

// makeKeys is what the keys of all attempts to make a name begin with.
func makeKeys(share, rel string) string {
	return strings.Join([]string{"make", share, rel, ""}, "\x00")
}

func renameKey(share, from, to string) string {
	return strings.Join([]string{"rename", share, from, to}, "\x00")
}

func removeKey(share, rel string) string { return strings.Join([]string{"remove", share, rel}, "\x00") }

// lockKey is that of the lock of a rename on the old name.
func lockKey(share, rel string) string { return strings.Join([]string{"lock", share, rel}, "\x00") }

// removalOf is the mark of a removal or a lock: the ShareDirectory has not been changed since, if it is the same still.
func removalOf(o *internalv1.ShareDirectory) string { return string(o.UID) + " " + o.ResourceVersion }

// rememberRemoval keeps a removal whose outcome is not known.
func (s *Service) rememberRemoval(o *internalv1.ShareDirectory) {
	s.attempts.put(removeKey(o.Spec.FileShareRef.Name, o.Spec.Path), removalOf(o), s.Clock.Now())
}

// newMark is what an attempt writes into its object.
func newMark() string { return string(uuid.NewUUID()) }

// refusedByAPI reports whether the API refused a request for good. After any other error it is unknown whether the
// request was carried out.
func refusedByAPI(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

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

// A change whose answer never came may have been made. The client is asked to try again (NFS4ERR_DELAY), and when it does, what
// it finds is its own doing: not another's directory in the way, and not a directory that another client removed. So
// a namespace server remembers for a while what it could not settle. What the client does not come back for the Leader settles.

const (
	// attemptsFor is longer than the Leader takes: then there is nothing left to settle.
	attemptsFor = 2 * abandonedAfter
	// maxAttempts bounds the memory. The Leader finishes what is forgotten, and the client may get the answer that its
	// directory exists already, or not any more.
	maxAttempts = 4096
)

// attempts are changes that were begun and not settled. The zero value is ready.
type attempts struct {
	mu    sync.Mutex
	begun map[string]attempt
}

type attempt struct {
	// mark tells the attempt's object from others': its annotation or its UID.
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

// take gives an attempt to the one caller that goes on with it; "": there is none.
func (a *attempts) take(key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	mark := a.begun[key].mark
	delete(a.begun, key)
	return mark
}

// has tells whether an attempt waits to be gone on with.
func (a *attempts) has(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.begun[key]
	return ok
}

// claimKey names the attempt to get a name. Another's request for the same name that asks for the same may go on with it: one
// of them gets the answer that it was done, as if it had been the first.
func claimKey(share, rel string, spec *internalv1.ShareDirectorySpec) string {
	if spec.RenamedFrom != "" {
		return renameKey(share, spec.RenamedFrom, rel)
	}
	r := tree.NewDirectory(&internalv1.ShareDirectory{Spec: *spec})
	return fmt.Sprintf("make\x00%s\x00%s\x00%d %d %o", share, rel, r.Owner, r.Group, r.Mode)
}

func renameKey(share, from, to string) string {
	return strings.Join([]string{"rename", share, from, to}, "\x00")
}

func removeKey(o *internalv1.ShareDirectory) string { return "remove\x00" + string(o.UID) }

// newMark is what an attempt writes into its object.
func newMark() string { return string(uuid.NewUUID()) }

// refusedByAPI tells whether the API answered that it did not, and will not, do what it was asked for. Any other error says
// nothing about whether it was done.
func refusedByAPI(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

package steward

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/steward/snapshots"
)

// snapper makes and removes snapshots. It has its own connection, so that neither shares nor fencing wait for a snapshot,
// which takes seconds.
type snapper struct {
	api       *api
	connector *connector
	log       *slog.Logger
	now       func() time.Time

	// tried is when each snapshot that is due was last tried.
	tried map[types.UID]time.Time
}

// passBudget is how long a pass may take before it looks at what is due now. Ceph refuses snapshots of a share beyond a
// number, and a tenant can ask for thousands.
const passBudget = 10 * time.Second

// run works until the context ends.
func (s *snapper) run(ctx context.Context) error {
	defer s.connector.close()
	wait := retryFirst
	retry := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.api.snapped:
			wait = retryFirst
		case <-retry.C:
		}
		again := lookEvery
		switch done, more := s.pass(ctx); {
		case more:
			again, wait = 0, retryFirst
		case done:
			wait = retryFirst
		default:
			again, wait = wait, min(2*wait, retryMost)
		}
		retry.Reset(again)
	}
}

// pass handles the snapshots that are due. It returns done if nothing is left to do, and more if its time was not enough for
// those that were never tried.
func (s *snapper) pass(ctx context.Context) (done, more bool) {
	w, err := s.api.read(ctx)
	if err != nil || w.steward == nil {
		return ctx.Err() == nil && err == nil, false
	}
	var due []*internalv1.ShareSnapshot
	for _, snapshot := range w.snapshots {
		if snapshots.IsDue(snapshot) {
			due = append(due, snapshot)
		}
	}
	s.tried = stillDue(s.tried, due)
	if len(due) == 0 {
		return true, false
	}
	reconciler := &snapshots.Reconciler{
		API: s.api.client, Ceph: &snapshotCeph{connector: s.connector, steward: w.steward},
		FileSystem: w.steward.Spec.Ceph.FileSystem, UID: w.steward.Spec.FileServerUID, Now: s.now,
		ShareOf: func(subvolume string) string { return shareOf(w, subvolume) },
	}
	begun := s.now()
	done = true
	for _, snapshot := range inTurn(due, s.tried) {
		if _, again := s.tried[snapshot.UID]; s.now().Sub(begun) > passBudget {
			return false, !again
		}
		s.tried[snapshot.UID] = s.now()
		err := reconciler.Pass(ctx, snapshot)
		if err == nil {
			continue
		}
		done = false
		s.log.Warn("can't make or remove a snapshot; trying again", "snapshot", snapshot.Name, "err", err)
		if isDenied(err) {
			s.connector.expired = true
		}
		if isOutage(err) {
			s.connector.close()
		}
	}
	return done, false
}

// stillDue is what was tried, without what is not due any more.
func stillDue(tried map[types.UID]time.Time, due []*internalv1.ShareSnapshot) map[types.UID]time.Time {
	left := map[types.UID]time.Time{}
	for _, snapshot := range due {
		if at, was := tried[snapshot.UID]; was {
			left[snapshot.UID] = at
		}
	}
	return left
}

// inTurn orders snapshots: those first that were never tried, one of each share before the second of any, and then those that
// were tried longest ago.
func inTurn(due []*internalv1.ShareSnapshot, tried map[types.UID]time.Time) []*internalv1.ShareSnapshot {
	rank, ofShare := map[types.UID]int{}, map[string]int{}
	for _, snapshot := range due {
		if _, was := tried[snapshot.UID]; !was {
			rank[snapshot.UID] = ofShare[snapshot.Spec.FileShareRef.Name]
			ofShare[snapshot.Spec.FileShareRef.Name]++
		}
	}
	ordered := slices.Clone(due)
	slices.SortStableFunc(ordered, func(a, b *internalv1.ShareSnapshot) int {
		return cmp.Or(tried[a.UID].Compare(tried[b.UID]), cmp.Compare(rank[a.UID], rank[b.UID]))
	})
	return ordered
}

// shareOf returns the name of the share that a subvolume belongs to, or "".
func shareOf(w request, subvolume string) string {
	for _, storage := range w.storages {
		if share := storage.Spec.FileShareRef.Name; ceph.Subvolume(w.steward.Spec.FileServerUID, share) == subvolume {
			_, name := naming.ShareOfKey(storage.Namespace, share)
			return name
		}
	}
	return ""
}

// snapshotCeph implements snapshots.Ceph with a steward's connection.
type snapshotCeph struct {
	connector *connector
	steward   *internalv1.Steward
}

// Command sends a command to Ceph with the provisioning account.
func (c *snapshotCeph) Command(ctx context.Context, command ceph.Command) (string, error) {
	connection, err := c.connector.connected(ctx, &c.steward.Spec.Ceph)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return connection.Command(ctx, command)
}

// List lists a share's directory as the share's user, because the provisioning account has no permission to read it.
func (c *snapshotCeph) List(ctx context.Context, user, root, path string) ([]string, error) {
	answer, err := c.Command(ctx, ceph.GetUser(user))
	if err != nil {
		return nil, err
	}
	key, err := ceph.ParseKey(answer, user)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	own, err := c.connector.connect(ctx, &c.steward.Spec.Ceph, credential{user, key})
	if err != nil {
		return nil, fmt.Errorf("connecting as the share's user: %w", err)
	}
	defer own.Close()
	return own.List(ctx, client.Directory{FileSystem: c.steward.Spec.Ceph.FileSystem, Root: root}, path)
}

package steward

import (
	"context"
	"fmt"
	"log/slog"
	"time"

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
}

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
		if s.pass(ctx) {
			wait = retryFirst
		} else {
			again, wait = wait, min(2*wait, retryMost)
		}
		retry.Reset(again)
	}
}

// pass handles all snapshots that are due. It returns true if nothing is left to do.
func (s *snapper) pass(ctx context.Context) bool {
	w, err := s.api.read(ctx)
	if err != nil || w.steward == nil {
		return ctx.Err() == nil && err == nil
	}
	var due []*internalv1.ShareSnapshot
	for _, snapshot := range w.snapshots {
		if snapshots.IsDue(snapshot) {
			due = append(due, snapshot)
		}
	}
	if len(due) == 0 {
		return true
	}
	reconciler := &snapshots.Reconciler{
		API: s.api.client, Ceph: &snapshotCeph{connector: s.connector, steward: w.steward},
		FileSystem: w.steward.Spec.Ceph.FileSystem, UID: w.steward.Spec.FileServerUID, Now: s.now,
		ShareOf: func(subvolume string) string { return shareOf(w, subvolume) },
	}
	done := true
	for _, snapshot := range due {
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
	return done
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

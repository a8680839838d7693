package steward

import (
	"context"
	"fmt"
	"slices"
	"strings"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

// A steward that has just started must know the whole content of its Secret before it replaces it. Paths and users are in the
// statuses of ShareStorages, and the monitors have the keys. Neither managers nor metadata servers nor the subvolumes are
// needed for that. So a broken share keeps its entry, and does not delay the entries of others.

// recall restores, before any subvolume is checked, what the Secret had before this start. If Ceph refuses a key, the share's
// status has the error. The returned error means that Ceph does not answer.
func (s *steward) recall(ctx context.Context, m *placeMaker, w request) error {
	if s.written != nil {
		return nil
	}
	for _, storage := range w.storages {
		share := storage.Spec.FileShareRef.Name
		if _, known := s.places[share]; known || storage.Status.Path == "" || storage.DeletionTimestamp != nil {
			continue
		}
		user := ceph.ShareUser(m.uid, share)
		answer, err := m.ask(ctx, ceph.GetUser(user))
		if isAbsent(err) {
			s.lost[share] = true // Its key is invalid.
			continue
		}
		key := ""
		if err == nil {
			key, err = ceph.ParseNewestKey(answer, user)
		}
		if err != nil {
			err = s.denied(refused(err, "asking for the key of client."+user, m.user))
			s.sights[storage.Name] = sight{reason: internalv1.ReasonCephUnusable, words: err.Error()}
			if isOutage(err) {
				return err
			}
			continue
		}
		// Without a generation, so that this pass checks the subvolume.
		s.places[share] = known{uid: storage.UID, place: place{storage.Status.Path, user, key}}
	}
	return nil
}

// unrecalled returns the shares that may have an entry in the Secret that could not be restored. Shares in lost don't count.
func unrecalled(storages []*internalv1.ShareStorage, places map[string]place, lost map[string]bool) []string {
	var shares []string
	for _, storage := range storages {
		share := storage.Spec.FileShareRef.Name
		if _, known := places[share]; storage.Status.Path != "" && storage.DeletionTimestamp == nil && !known && !lost[share] {
			shares = append(shares, share)
		}
	}
	return shares
}

// errUnrecalled is the error that is reported for all shares that wait for the given ones.
func errUnrecalled(shares []string) error {
	const most = 3
	named := strings.Join(shares[:min(most, len(shares))], ", ")
	if more := len(shares) - most; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("the key of share %s is not among the answers of Ceph, so the Secret of the data servers can't be updated: see the status of the ShareStorage of that share", named)
}

// isStuck reports whether Ceph did not answer about a share the last time. Such shares are handled last, after the others
// were published.
func (s *steward) isStuck(storage *internalv1.ShareStorage) bool {
	return s.stuck[storage.Spec.FileShareRef.Name]
}

// stuckLast splits the shares into those to handle first and those that are stuck.
func (s *steward) stuckLast(storages []*internalv1.ShareStorage) (well, stuck []*internalv1.ShareStorage) {
	well = slices.DeleteFunc(slices.Clone(storages), s.isStuck)
	stuck = slices.DeleteFunc(slices.Clone(storages), func(storage *internalv1.ShareStorage) bool { return !s.isStuck(storage) })
	return well, stuck
}

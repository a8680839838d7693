package steward

import (
	"context"
	"fmt"
	"slices"
	"strings"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

// A steward that has just started must know all that its Secret may have before it replaces it. Paths and users are in the statuses of
// ShareStorages, and keys are the monitors' to tell: whether a place is well, and whether managers and metadata servers answer, is not asked
// for that. So one share that is ill keeps no other from its entry, and keeps its own.

// recall finds again what data servers have been told of before this start, before any place is looked at. What Ceph refuses to tell is
// noted at its share; an error is that Ceph does not answer.
func (s *steward) recall(ctx context.Context, k *keeper, w wish) error {
	if s.written != nil {
		return nil
	}
	for _, storage := range w.storages {
		share := storage.Spec.FileShareRef.Name
		if _, known := s.places[share]; known || storage.Status.Path == "" || storage.DeletionTimestamp != nil {
			continue
		}
		user := ceph.ShareUser(k.uid, share)
		answer, err := k.ask(ctx, ceph.GetUser(user))
		if isAbsent(err) {
			s.lost[share] = true // Nobody can use its key any more.
			continue
		}
		key := ""
		if err == nil {
			key, err = ceph.ParseNewestKey(answer, user)
		}
		if err != nil {
			err = s.denied(refused(err, "asking for the key of client."+user, k.user))
			s.told[storage.Name] = sight{reason: internalv1.ReasonCephUnusable, words: err.Error()}
			if isOutage(err) {
				return err
			}
			continue
		}
		// Its generation is none: the place is looked at in this pass.
		s.places[share] = known{uid: storage.UID, place: place{storage.Status.Path, user, key}}
	}
	return nil
}

// unrecalled are the shares of which the Secret may have something that is not known again. A place that is lost for sure is known to be.
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

// errUnrecalled is what all say who wait for these shares.
func errUnrecalled(shares []string) error {
	const most = 3
	named := strings.Join(shares[:min(most, len(shares))], ", ")
	if more := len(shares) - most; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("the keys that data servers have are not told by Ceph for share %s, so what they have stays, and nothing new reaches them: the ShareStorage of that share says why", named)
}

// isStuck tells whether Ceph did not answer about a share the last time. Such shares come after all others, and after these were published.
func (s *steward) isStuck(storage *internalv1.ShareStorage) bool {
	return s.stuck[storage.Spec.FileShareRef.Name]
}

// stuckLast are the shares to do first, and those that are stuck.
func (s *steward) stuckLast(storages []*internalv1.ShareStorage) (well, stuck []*internalv1.ShareStorage) {
	well = slices.DeleteFunc(slices.Clone(storages), s.isStuck)
	stuck = slices.DeleteFunc(slices.Clone(storages), func(storage *internalv1.ShareStorage) bool { return !s.isStuck(storage) })
	return well, stuck
}

package steward

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/steward/clones"
)

const (
	// lookEvery is how often healthy subvolumes are checked: whether they exist, and how much is used.
	lookEvery = 3 * time.Minute
	// retryFirst to retryMost is the wait before a pass with a fault is tried again.
	retryFirst = time.Second
	retryMost  = 30 * time.Second
	// publishEvery is the minimum time between two writes of the Secret while shares are being made.
	publishEvery = 2 * time.Second
	// credentialEvery is how often the mounted Secret is checked for a changed account. Before that, the kubelet takes up to
	// 90 s to update the mount.
	credentialEvery = 5 * time.Second
)

// known is a share's place that is in order.
type known struct {
	uid        types.UID
	generation int64
	place      place
	lookedAt   time.Time
}

// steward makes what ShareStorages ask for and reports it in their statuses. Only one goroutine may use it.
type steward struct {
	api       *api
	connector *connector
	log       *slog.Logger
	now       func() time.Time

	// places has the places that belong in the Secret, by share. lost has the shares whose subvolume or user is missing, and
	// stuck those that Ceph did not answer about the last time; these are handled last.
	places map[string]known
	lost   map[string]bool
	stuck  map[string]bool
	// recovery has the keys of the recovery users, sights the result of this pass by the name of the ShareStorage.
	recovery   map[string]string
	recoveryAt time.Time
	sights     map[string]sight
	// room is how many bytes of the Secret new shares may take.
	room int
	// written is the content of the Secret; nil if it is not known. revision changes with each write.
	written   map[string][]byte
	writtenAt time.Time
	revision  string
}

// run works until the context ends.
func (s *steward) run(ctx context.Context) error {
	defer s.connector.close()
	wait := retryFirst
	retry, credentials := time.NewTimer(0), time.NewTicker(credentialEvery)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.api.changed:
			wait = retryFirst
		case <-credentials.C:
			if !s.connector.hasNewCredential() {
				continue
			}
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

// pass reads the API, does what is to be done, and reports. It returns true if nothing is left to do.
func (s *steward) pass(ctx context.Context) bool {
	w, err := s.api.read(ctx)
	if err != nil || w.steward == nil {
		return ctx.Err() == nil && err == nil
	}
	return s.carryOut(ctx, w)
}

// carryOut does what the request asks for, and reports. It returns true if nothing is left to do.
func (s *steward) carryOut(ctx context.Context, w request) bool {
	s.sights = map[string]sight{}
	s.forget(w)
	reason, fault := s.work(ctx, w)
	if ctx.Err() != nil {
		return false
	}
	words := fmt.Sprintf("client.%s keeps %d shares in file system %s", s.connector.as.user, len(s.places), w.steward.Spec.Ceph.FileSystem)
	if fault != nil {
		words = fault.Error()
		s.log.Warn("can't make or remove everything; trying again", "err", fault)
	}
	done := fault == nil
	now := metav1.NewTime(s.now())
	for _, storage := range w.storages {
		seen, looked := s.sights[storage.Name]
		if fault != nil && seen.reason == "" && !s.isPublished(storage) {
			// This share waits because of a fault that concerns all shares.
			seen.reason, seen.words, looked = reason, words, true
		}
		if !looked {
			continue
		}
		done = done && (seen.reason == "" || seen.removed)
		if err := s.api.reportStorage(ctx, storage, storageStatus(storage, seen, now)); err != nil {
			s.log.Warn("can't write a status; trying again", "err", err)
			done = false
		}
	}
	if err := s.api.reportSteward(ctx, w.steward, stewardStatus(w.steward, reason, words, s.revision, now)); err != nil {
		s.log.Warn("can't write a status; trying again", "err", err)
		done = false
	}
	return done
}

// forget drops what is known about shares that are deleted or have a new ShareStorage.
func (s *steward) forget(w request) {
	live := map[string]types.UID{}
	for _, storage := range w.storages {
		if storage.DeletionTimestamp == nil {
			live[storage.Spec.FileShareRef.Name] = storage.UID
		}
	}
	for share, at := range s.places {
		if live[share] != at.uid {
			delete(s.places, share)
		}
	}
	for _, marked := range []map[string]bool{s.lost, s.stuck} {
		maps.DeleteFunc(marked, func(share string, _ bool) bool { return live[share] == "" })
	}
}

// maxTimeouts is how many commands may time out before a pass ends: one share may be stuck while Ceph works.
const maxTimeouts = 2

// work handles everything, and stops if Ceph does not answer. It returns a reason and an error for faults that concern more
// than one share.
func (s *steward) work(ctx context.Context, w request) (string, error) {
	m, err := s.connected(ctx, w)
	if err != nil {
		return internalv1.ReasonCephUnusable, err
	}
	if err := s.keepRecovery(ctx, m, w); err != nil {
		s.connector.close()
		return internalv1.ReasonCephUnusable, err
	}
	if err := s.recall(ctx, m, w); err != nil {
		s.connector.close()
		return internalv1.ReasonCephUnusable, err
	}
	well, stuck := s.stuckLast(w.storages)
	timeouts := 0
	for _, group := range [][]*internalv1.ShareStorage{well, stuck} {
		for _, storage := range group {
			if reason, err := s.publishNowAndThen(ctx, w); err != nil {
				return reason, err
			}
			err := s.handle(ctx, m, storage)
			if !isOutage(err) {
				delete(s.stuck, storage.Spec.FileShareRef.Name)
				continue
			}
			s.stuck[storage.Spec.FileShareRef.Name] = true
			s.connector.close()
			if timeouts++; timeouts >= maxTimeouts {
				return internalv1.ReasonCephUnusable, err
			}
			if m, err = s.connected(ctx, w); err != nil {
				return internalv1.ReasonCephUnusable, err
			}
		}
		if reason, err := s.publish(ctx, w); err != nil {
			return reason, err
		}
	}
	return "", nil
}

// connected returns a placeMaker with a working connection.
func (s *steward) connected(ctx context.Context, w request) (*placeMaker, error) {
	connection, err := s.connector.connected(ctx, &w.steward.Spec.Ceph)
	if err != nil {
		return nil, err
	}
	return newPlaceMaker(connection, s.connector.as.user, w.steward), nil
}

// keepRecovery makes the users for the recovery records of all data servers and remembers their keys.
func (s *steward) keepRecovery(ctx context.Context, m *placeMaker, w request) error {
	if s.now().Sub(s.recoveryAt) >= lookEvery-time.Second {
		s.recovery, s.recoveryAt = nil, s.now() // Ask Ceph again: a user may have been removed.
	}
	wanted := map[string]string{}
	for _, server := range w.servers {
		ordinal, ours := naming.DataServerOrdinal(w.steward.Spec.FileServerRef.Name, server.Name)
		if !ours || server.DeletionTimestamp != nil {
			continue
		}
		user, key := ceph.RecoveryUser(m.uid, ordinal), ""
		if key = s.recovery[user]; key == "" {
			var err error
			if key, err = m.recoveryKey(ctx, user, w.steward.Spec.Ceph.RecoveryPool, ceph.Node(m.uid, ordinal)); err != nil {
				return err
			}
		}
		wanted[user] = key
	}
	s.recovery = wanted
	return nil
}

// handle handles one share and stores the result in sights.
func (s *steward) handle(ctx context.Context, m *placeMaker, storage *internalv1.ShareStorage) error {
	share := storage.Spec.FileShareRef.Name
	if storage.DeletionTimestamp != nil {
		if isEnded(storage) {
			return nil
		}
		kept, err := false, s.api.stillEnding(ctx, storage)
		if err == nil {
			kept, err = m.end(ctx, storage)
		}
		seen := sight{removed: err == nil, kept: kept, reason: internalv1.ReasonRemovalFailing}
		if err != nil {
			seen.words = err.Error()
		}
		s.sights[storage.Name] = seen
		return s.denied(err)
	}
	if at, ok := s.places[share]; ok && at.generation == storage.Generation && s.now().Sub(at.lookedAt) < lookEvery-time.Second && storage.Status.Path == at.place.path {
		return nil
	}
	found, info, words, err := m.ensure(ctx, storage)
	seen := sight{user: found.user, info: info, words: words}
	fault := (*clones.Fault)(nil)
	switch {
	case err == nil:
		delete(s.lost, share)
		s.places[share] = known{storage.UID, storage.Generation, found, s.now()}
	case errors.Is(err, errLost):
		seen.reason, seen.words, s.lost[share] = internalv1.ReasonStorageLost, err.Error(), true
		delete(s.places, share)
	case errors.As(err, &fault):
		seen.reason, seen.words, seen.begin = fault.Reason, err.Error(), fault.Begin
	case errors.Is(err, errBusy):
		seen.reason, seen.words = v1alpha1.ReasonProgressing, err.Error()
	default:
		seen.reason, seen.words = internalv1.ReasonCephUnusable, err.Error()
	}
	if seen.user == "" && info != nil {
		seen.user = ceph.ShareUser(m.uid, share)
	}
	s.sights[storage.Name] = seen
	return s.denied(err)
}

// denied makes the next pass connect again if permissions are missing, because they may be granted meanwhile.
func (s *steward) denied(err error) error {
	if isDenied(err) {
		s.connector.expired = true
	}
	return err
}

// isPublished reports whether the Secret has an entry of a share that is not being deleted.
func (s *steward) isPublished(storage *internalv1.ShareStorage) bool {
	_, ok := s.written[storage.Spec.FileShareRef.Name+".json"]
	return ok && storage.DeletionTimestamp == nil
}

// publishNowAndThen writes the Secret during a pass, so that finished shares don't wait for all others.
func (s *steward) publishNowAndThen(ctx context.Context, w request) (string, error) {
	if s.written == nil || s.now().Sub(s.writtenAt) <= publishEvery {
		return "", nil
	}
	return s.publish(ctx, w)
}

// fitting are those of the places that go into the Secret. The shares of the others get to know it, and nothing else waits for them.
func (s *steward) fitting(w request, places map[string]place) (map[string]place, error) {
	fit, err := fitting(w.storages, places, s.written, s.room)
	if err != nil {
		return nil, err
	}
	for _, storage := range w.storages {
		share := storage.Spec.FileShareRef.Name
		_, known := places[share]
		_, fits := fit[share]
		seen := s.sights[storage.Name]
		switch {
		case !known || storage.DeletionTimestamp != nil || seen.reason != "" && seen.reason != v1alpha1.ReasonTooManyShares:
			continue
		case !fits:
			seen.reason, seen.words = v1alpha1.ReasonTooManyShares, fmt.Sprintf("Secret %s, by which data servers get the keys of shares, has no room for another one: "+
				"delete a share of FileServer %s, or make this share on another FileServer", w.steward.Spec.Ceph.SharesSecretName, w.steward.Spec.FileServerRef.Name)
		case isLeftOut(storage) || seen.reason != "":
			seen.reason, seen.words = "", ""
		default:
			continue
		}
		s.sights[storage.Name] = seen
	}
	return fit, nil
}

// publish writes the Secret for data servers if its content has changed and is completely known.
func (s *steward) publish(ctx context.Context, w request) (string, error) {
	places := map[string]place{}
	for share, at := range s.places {
		places[share] = at.place
	}
	if s.written == nil {
		if shares := unrecalled(w.storages, places, s.lost); len(shares) > 0 {
			return internalv1.ReasonCephUnusable, errUnrecalled(shares)
		}
	}
	places, err := s.fitting(w, places)
	if err != nil {
		return internalv1.ReasonCephUnusable, err
	}
	entries, err := contents(places, s.recovery)
	if err != nil {
		return internalv1.ReasonCephUnusable, err
	}
	secret := w.steward.Spec.Ceph.SharesSecretName
	same := s.written != nil && sameContents(entries, s.written)
	if same && s.now().Sub(s.writtenAt) < lookEvery-time.Second {
		return "", nil
	}
	// An unchanged Secret is also written from time to time, to repair it if it was deleted or changed.
	switch err := s.api.writeSecret(ctx, w.steward, entries); {
	case apierrors.IsNotFound(err):
		s.written = nil
		return internalv1.ReasonSecretMissing, fmt.Errorf("there is no Secret %s: the operator makes it again", secret)
	case err != nil:
		s.written = nil
		return v1alpha1.ReasonApplyFailed, fmt.Errorf("writing Secret %s: %w", secret, err)
	}
	s.written, s.writtenAt = entries, s.now()
	if same {
		return "", nil
	}
	s.revision = rand.Text()
	s.log.Info("wrote the Secret of the data servers", "secret", secret, "shares", len(places))
	return "", nil
}

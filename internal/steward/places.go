package steward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/steward/clones"
)

// placeMaker makes and removes the subvolumes and users of shares through one connection.
type placeMaker struct {
	connection *client.Client
	// user is the connected Ceph user, for messages.
	user   string
	uid    string
	volume ceph.Volume
}

func newPlaceMaker(connection *client.Client, user string, steward *internalv1.Steward) *placeMaker {
	uid := steward.Spec.FileServerUID
	return &placeMaker{connection, user, uid, ceph.Volume{FileSystem: steward.Spec.Ceph.FileSystem, Group: ceph.Group(uid)}}
}

// ask sends a command to Ceph and returns Ceph's error unchanged.
func (m *placeMaker) ask(ctx context.Context, command ceph.Command) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return m.connection.Command(ctx, command)
}

// errLost means that a subvolume that existed before is missing.
var errLost = errors.New("lost")

// errBusy means that a subvolume can't be used now, because Ceph clones or removes it.
var errBusy = errors.New("busy")

// ensure makes the subvolume and the user of a share, sets the quota, and returns what there is. It keeps existing data:
// a share whose data was retained has it again.
func (m *placeMaker) ensure(ctx context.Context, storage *internalv1.ShareStorage) (place, *ceph.SubvolumeInfo, string, error) {
	subvolume := ceph.Subvolume(m.uid, storage.Spec.FileShareRef.Name)
	clone := m.unfinished(storage)
	if clone != nil {
		if err := m.explained(clone.Make(ctx, m.ask), "making subvolume "+subvolume); err != nil {
			return place{}, nil, "", err
		}
	}
	info, err := m.subvolume(ctx, subvolume, storage.Status.Path, clone == nil)
	if err != nil {
		return place{}, nil, "", err
	}
	user := ceph.ShareUser(m.uid, storage.Spec.FileShareRef.Name)
	key, err := m.key(ctx, user, func() error {
		_, err := m.ask(ctx, m.volume.Authorize(subvolume, user))
		return err
	})
	if err != nil {
		return place{}, &info, "", err
	}
	words := ""
	if info.QuotaBytes != storage.Spec.QuotaBytes {
		words, err = m.resize(ctx, subvolume, storage.Spec.QuotaBytes, &info)
	}
	return place{info.Path, user, key}, &info, words, err
}

// unfinished returns the clone that a share starts with, or nil if the subvolume was ready before or starts empty.
func (m *placeMaker) unfinished(storage *internalv1.ShareStorage) *clones.Clone {
	source := storage.Spec.Source
	if source.SnapshotName == "" || storage.Status.Path != "" {
		return nil
	}
	clone := &clones.Clone{
		Volume: m.volume, Subvolume: ceph.Subvolume(m.uid, storage.Spec.FileShareRef.Name), Source: ceph.Subvolume(m.uid, source.FileShareRef.Name), Snapshot: source.SnapshotName,
	}
	_, clone.Share = naming.ShareOfKey(storage.Namespace, source.FileShareRef.Name)
	if at := storage.Status.CloneBeginTime; at != nil {
		clone.Begun = &at.Time
	}
	return clone
}

// explained adds an explanation to an error about a clone; a *clones.Fault has one already.
func (m *placeMaker) explained(err error, what string) error {
	if err == nil || errors.As(err, new(*clones.Fault)) {
		return err
	}
	return refused(err, what, m.user)
}

// subvolume finds the subvolume of a share. If there is none, it makes an empty one, if empty is set and there was none
// before (before is its path).
func (m *placeMaker) subvolume(ctx context.Context, subvolume, before string, empty bool) (ceph.SubvolumeInfo, error) {
	answer, err := m.ask(ctx, m.volume.Info(subvolume))
	if isAbsent(err) && before != "" {
		return ceph.SubvolumeInfo{}, fmt.Errorf("%w: subvolume %s of group %s had the share's data, at %s, and is missing in file system %s. Howdah does not make it again, as it would be empty. "+
			"Bring it back in Ceph under this name, or delete the share", errLost, subvolume, m.volume.Group, before, m.volume.FileSystem)
	}
	if isAbsent(err) && empty {
		for _, command := range []ceph.Command{m.volume.CreateGroup(), m.volume.Create(subvolume)} {
			if _, err := m.ask(ctx, command); err != nil {
				return ceph.SubvolumeInfo{}, refused(err, fmt.Sprintf("making subvolume %s in group %s of file system %s", subvolume, m.volume.Group, m.volume.FileSystem), m.user)
			}
		}
		answer, err = m.ask(ctx, m.volume.Info(subvolume))
	}
	if err != nil {
		return ceph.SubvolumeInfo{}, refused(err, "looking at subvolume "+subvolume, m.user)
	}
	info, err := ceph.ParseInfo(answer, subvolume)
	if err == nil && !info.Ready {
		err = fmt.Errorf("%w: subvolume %s can't be used yet: Ceph clones or removes it (ceph fs subvolume info %s %s --group_name %s)", errBusy, subvolume, m.volume.FileSystem, subvolume, m.volume.Group)
	}
	return info, err
}

// key returns the key of a user for data servers. It calls make if there is no such user.
func (m *placeMaker) key(ctx context.Context, user string, make func() error) (string, error) {
	answer, err := m.ask(ctx, ceph.GetUser(user))
	if isAbsent(err) {
		if err := make(); err != nil {
			return "", refused(err, "making user client."+user, m.user)
		}
		answer, err = m.ask(ctx, ceph.GetUser(user))
	}
	if err != nil {
		return "", refused(err, "asking for the key of client."+user, m.user)
	}
	return ceph.ParseNewestKey(answer, user)
}

// resize sets the quota. Ceph refuses a quota below the used size; the share then keeps its old quota, and words says why.
func (m *placeMaker) resize(ctx context.Context, subvolume string, quota int64, info *ceph.SubvolumeInfo) (words string, err error) {
	if _, err := m.ask(ctx, m.volume.Resize(subvolume, quota)); err != nil {
		err = refused(err, fmt.Sprintf("setting the quota to %d bytes", quota), m.user)
		if isOutage(err) {
			return "", err
		}
		return err.Error(), nil
	}
	info.QuotaBytes = quota
	return "", nil
}

// end ends the sessions of a share's user, removes the user, and removes the subvolume if the data policy is Delete.
func (m *placeMaker) end(ctx context.Context, storage *internalv1.ShareStorage) (kept bool, err error) {
	share := storage.Spec.FileShareRef.Name
	subvolume, user := ceph.Subvolume(m.uid, share), ceph.ShareUser(m.uid, share)
	if clone := m.unfinished(storage); clone != nil {
		if ended, err := clone.End(ctx, m.ask); err != nil || ended {
			return false, m.explained(err, "removing subvolume "+subvolume)
		}
	}
	// Evict first: the metadata servers would otherwise wait five minutes for a client that is gone or has no key.
	steps := []struct {
		what    string
		command ceph.Command
	}{
		{"ending the sessions of client." + user, m.volume.Evict(subvolume, user)},
		{"ending user client." + user, m.volume.Deauthorize(subvolume, user)},
		{"removing subvolume " + subvolume, m.volume.Remove(subvolume)},
	}
	kept = storage.Spec.DataPolicy != internalv1.DataDelete
	if !kept {
		if kept, err = m.isOfLater(ctx, subvolume, storage.Status.Path); err != nil {
			return false, err
		}
	}
	if kept {
		steps = steps[:2]
	}
	for _, step := range steps {
		if _, err := m.ask(ctx, step.command); err != nil && !isAbsent(err) {
			return false, refused(err, step.what, m.user)
		}
	}
	return kept, nil
}

// isOfLater reports whether the subvolume is another than the share had: an API that was restored from a backup can show the
// end of an earlier share of this name once more. Ceph gives each subvolume a path of its own.
func (m *placeMaker) isOfLater(ctx context.Context, subvolume, before string) (bool, error) {
	if before == "" {
		return false, nil
	}
	answer, err := m.ask(ctx, m.volume.Info(subvolume))
	if isAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, refused(err, "looking at subvolume "+subvolume+" before it is removed", m.user)
	}
	var now struct {
		Path string `json:"path"` // One whose snapshots alone are left has none.
	}
	if err := json.Unmarshal([]byte(answer), &now); err != nil {
		return false, fmt.Errorf("reading Ceph's answer about subvolume %s before it is removed: %w", subvolume, err)
	}
	return now.Path != "" && now.Path != before, nil
}

// recoveryKey returns the key of the user for a data server's recovery records.
func (m *placeMaker) recoveryKey(ctx context.Context, user, pool, node string) (string, error) {
	return m.key(ctx, user, func() error {
		_, err := m.ask(ctx, ceph.CreateRecoveryUser(user, pool, node))
		return err
	})
}
